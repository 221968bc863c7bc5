"""One radius per coordinate: where f rises by a few standard deviations of the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scgd.estimators import random_signs
from scgd.problem import Problem
from scgd.questions import Point, Question, here, moved, single
from scgd.searches.arms.box import REACH
from scgd.searches.base import Finding, Search
from scgd.typing import Floats, Ints

__all__ = ["OwnRadii", "Radii"]

ENOUGH, AIM, TOO_MUCH = 4.0, 8.0, 16.0
"""Rises, in standard deviations of the noise: from which to which one is right, and the best."""
MOST_DOUBLINGS = 3
MOST_QUESTIONS = 8
VISIBLE = 4.0
CROOKED = 2.5
"""Squared deviations of odd parts from straight lines, in those that noise explains, from which f
is no quadratic: a mean of eight exceeds it once in a hundred times."""


@dataclass(frozen=True)
class OwnRadii(Finding):
    """What was found out about radii.

    Attributes
    ----------
    n_resolved
        Coordinates with a radius of their own.
    joint
        How much wider joint moves of all of them may be.
    seen
        Whether a joint move showed above the noise.
    base
        The mean at the point; NaN where nothing was seen of it.
    steep
        Whether f rises faster than a quadratic at twice that radius, or its odd part bends.
    """

    n_resolved: int
    joint: float
    seen: bool
    base: float
    steep: bool = False


class Radii(Search):
    r"""Find for every coordinate the radius at which f rises by about 4 to 16 :math:`\sigma`.

    All unresolved coordinates are asked together, two evaluations each, at radii that double (or
    shrink) from one question to the next. Where nothing shows, they stay within the common one and
    what searches look at around x0: 10 units, or twice as far as the point has come. Coordinates
    that never rise so far take the radius which their mean curvature foretells, where that shows;
    else they keep the common one. Then the joint radius of all resolved ones together is doubled
    while f grows like a square. Where odd parts do not double with it, slopes of joint moves are
    biased, and it becomes as narrow as weighs that against the noise (:func:`narrower`).

    Parameters
    ----------
    problem, point
        What is known, and where to look.
    rng
        Where directions come from.
    unit
        The common radius of each coordinate.
    n_levels
        Questions per coordinate, at most.
    n_repeats
        Evaluations at x itself.
    n_pairs
        Pairs along random signs at each joint radius.
    n_steps
        Pairs that will be taken at the radius found; 0 where bias does not matter.
    """

    name: ClassVar[str] = "radii"
    found: ClassVar[type[Finding]] = OwnRadii
    memory: ClassVar[tuple[str, ...]] = (
        "turn", "repeats", "radii", "resolved", "barred", "grown", "sums", "n_asked", "joint",
        "rises", "slopes", "seen", "steep", "key", "rng",
    )  # fmt: skip

    def __init__(
        self,
        problem: Problem,
        point: Point,
        rng: np.random.Generator,
        unit: Floats,
        n_levels: int,
        n_repeats: int,
        n_pairs: int,
        n_steps: int,
    ) -> None:
        super().__init__(point)
        self.problem, self.rng = problem, rng
        self.unit, self.n_levels, self.n_repeats, self.n_pairs = unit, n_levels, n_repeats, n_pairs
        self.n_steps = n_steps
        self.turn = "repeats"
        self.repeats: list[float] = []
        self.radii: Floats = unit.copy()
        self.resolved = np.zeros(unit.size, np.bool_)
        self.barred = np.zeros(unit.size, np.bool_)  # as wide as may be, and nothing showed
        self.grown = np.zeros(unit.size)
        self.sums: Floats = np.zeros((5, unit.size))  # of powers of radii, and rises
        self.n_asked = 0
        self.joint = 1.0
        self.seen = self.steep = False
        self.key = 0
        self.rises: list[float] = []
        self.slopes: list[float] = []

    @property
    def widest(self) -> Floats:
        """How wide radii may become while nothing shows."""
        problem, x = self.problem, self.point.x
        reach = max(REACH, 2 * problem.away(x))
        return np.maximum(self.unit, reach * problem.unit - np.abs(x - problem.x0))

    @property
    def open(self) -> Ints:
        """The coordinates that are asked next."""
        return np.flatnonzero(~self.resolved & ~self.barred)

    @property
    def cost(self) -> int:
        """Evaluations of the next question."""
        if self.turn == "repeats":
            return self.n_repeats
        return 2 * len(self.open) if self.turn == "single" else 2

    def ask(self) -> Question:
        """Return repeats, two sides of every unresolved coordinate, or a joint pair."""
        x, problem = self.point.x, self.problem
        if self.turn == "repeats":
            return here(self.point, self.n_repeats)
        if self.turn == "single":
            open_ = self.open
            entries = np.concatenate([x[open_] - self.radii[open_], x[open_] + self.radii[open_]])
            coords = np.tile(open_, 2)
            if problem.lower.size:
                entries = np.clip(entries, problem.lower[coords], problem.upper[coords])
            return single(self.point, coords, entries, far=True)
        if not self.rises:
            self.key = int(self.rng.integers(2**62))
        again = np.random.default_rng([self.key, len(self.rises) % self.n_pairs])
        signs = random_signs(x.size, again)  # the same at every radius
        moves = self.joint * np.where(self.resolved, self.radii, 0.0) * signs
        return moved(self.point, np.stack([moves, -moves]), problem.lower, problem.upper, far=True)

    def tell(self, question: Question, values: Floats) -> None:
        """Take what was asked."""
        if self.turn == "repeats":
            self.repeats = values[~np.isnan(values)].tolist()
            self.turn = "single"
            self.finished = len(self.repeats) < 2
            if self.n_levels == 0:
                self.resolved[:] = True
                self.turn = "joint"
        elif self.turn == "single":
            self._resolve(values)
        else:
            self._grow(values)

    def _resolve(self, values: Floats) -> None:
        """Accept radii whose rise is right, widen or narrow the others; lost ones are too wide."""
        self.n_asked += 1
        open_, widest = self.open, self.widest
        sigma, base = float(np.std(self.repeats, ddof=1)), float(np.mean(self.repeats))
        n = len(open_)
        rises = 0.5 * (values[:n] + values[n:]) - base
        lost = np.isnan(rises)
        rises = np.where(lost, np.inf, rises)
        large, right = rises > TOO_MUCH * sigma, rises > ENOUGH * sigma
        grew, shrank = self.grown[open_] > 0, self.grown[open_] < 0
        done = ~lost & ((right & ~large) | (large & grew) | (~right & shrank))
        least = max(AIM * sigma, 1e-300)
        narrower = np.maximum(np.sqrt(least / np.maximum(rises, least)), 0.1)
        factor = np.where(done, 1.0, np.where(large, np.where(lost, 0.25, narrower), 2.0))
        self._add(open_, np.where(lost, 0.0, rises))
        self.barred[open_] = ~done & ~large & (self.radii[open_] >= widest[open_])
        self.radii[open_] = np.minimum(self.radii[open_] * factor, widest[open_])
        self.grown[open_] = np.where(large, -1.0, 1.0)
        self.resolved[open_[done]] = True
        if self.n_asked == self.n_levels or not len(self.open):
            self._end_single()

    def _add(self, coords: Ints, rises: Floats) -> None:
        """Take note of rises at the radii that were asked."""
        squares = (self.radii[coords] / self.unit[coords]) ** 2
        ones = np.ones_like(squares)
        self.sums[:, coords] += np.stack([ones, squares, squares**2, rises, rises * squares])

    def _foretell(self) -> None:
        """Resolve coordinates that never rose by the mean curvature that they show together.

        It is the slope of all their rises over the squares of radii; the intercept is free, for
        small radii tell the base better than its few repeats do.
        """
        faint, sigma = ~self.resolved & (self.grown > 0), float(np.std(self.repeats, ddof=1))
        n, squares, fourths, rises, products = self.sums[:, faint].sum(axis=1).tolist()
        spread = fourths - squares**2 / max(n, 1.0)
        bend = (products - squares * rises / max(n, 1.0)) / max(spread, 1e-300)
        if spread > 0 and bend > VISIBLE * sigma / np.sqrt(2 * spread):  # of means of two values
            self.resolved |= faint
            root = np.sqrt(np.count_nonzero(self.resolved))  # joint moves are as much narrower
            foretold = self.unit[faint] * np.sqrt(AIM * sigma / bend)
            self.radii[faint] = np.minimum(foretold, root * self.widest[faint])

    def _end_single(self) -> None:
        self._foretell()
        self.radii[~self.resolved] = self.unit[~self.resolved]
        n = int(np.count_nonzero(self.resolved))
        self.joint = 1 / np.sqrt(max(n, 1))
        self.n_asked, self.turn = 0, "joint"
        self.finished = n == 0

    def finding(self) -> OwnRadii:
        """Return how many radii were found, and how wide joint moves may be."""
        base = float(np.mean(self.repeats)) if self.repeats else float("nan")
        n = int(self.resolved.sum())
        return OwnRadii(n, float(self.joint), self.seen, base, self.steep)

    def _grow(self, values: Floats) -> None:
        """Double the joint radius while the signal grows and the rise is a square or unseen."""
        base, lost = float(np.mean(self.repeats)), bool(np.isnan(values).any())
        self.rises.append(np.inf if lost else float(values.mean()) - base)
        self.slopes.append(0.0 if lost else float(values[0] - values[1]))
        if len(self.rises) % self.n_pairs:
            return
        rises, slopes = (
            np.mean(np.reshape(seen, (-1, self.n_pairs)), axis=1)
            for seen in (self.rises, np.abs(self.slopes))
        )
        sigma = float(np.std(self.repeats, ddof=1))
        least = VISIBLE * sigma * float(np.sqrt(0.5 / self.n_pairs + 1 / len(self.repeats)))
        n_seen = int(np.count_nonzero(rises > least))
        self.seen = n_seen > 0
        shows = rises[-1] > least or slopes[-1] > VISIBLE * sigma
        widest = self.joint
        if len(rises) > 1 and not quadratic(rises, slopes, least, 2 * sigma):
            self.joint /= 2
            self.finished = True
        elif n_seen == MOST_DOUBLINGS + 1 or len(rises) == MOST_QUESTIONS:
            self.finished = True
        elif not shows and np.any(self.resolved & (2 * self.joint * self.radii > self.widest)):
            self.finished = True
        else:
            self.joint *= 2
        if self.finished and len(rises) > 1:
            crooked = crookedness(np.reshape(self.slopes, (-1, self.n_pairs))[-2:] / 2, sigma)
            self.steep = crooked > CROOKED or too_steep(rises, least)
            n_coords = int(np.count_nonzero(self.resolved))
            self.joint = min(self.joint, narrower(crooked, n_coords, self.n_steps) * widest)


def quadratic(rises: Floats, slopes: Floats, rise: float, slope: float) -> bool:
    """Tell whether the last doubling looked like a quadratic's: rises times 4, slopes times 2.

    Rises and slopes below the last two arguments do not show above the noise.
    """
    if too_steep(rises, rise) or slopes[-1] > 4 * max(slopes[-2], slope):
        return False
    if rises[-2] > rise:
        return bool(rises[-1] + 0.5 * rise >= 3 * (rises[-2] - 0.5 * rise))
    return bool(slopes[-2] < slope or slopes[-1] >= 1.4 * slopes[-2])


def too_steep(rises: Floats, rise: float) -> bool:
    """Tell whether the last doubling made more of a rise than a quadratic's times 4.

    Examples
    --------
    >>> too_steep(np.array([10.0, 40.0]), 1.0), too_steep(np.array([10.0, 100.0]), 1.0)
    (False, True)
    """
    return bool(rises[-1] - 0.5 * rise > 6 * max(rises[-2], rise))


def crookedness(odds: Floats, sigma: float) -> float:
    r"""Return how much more the odd parts of f bend than noise explains.

    Two rows of :math:`(f(x + h s) - f(x - h s)) / 2` for the same signs s, at h and at 2 h. Those
    of a quadratic double; the variance of :math:`o(2h) - 2 o(h)` is then
    :math:`\frac52 \sigma^2`.

    Examples
    --------
    >>> crookedness(np.array([[1.0, -1.0], [2.0, -2.0]]), 1.0)
    0.0
    >>> crookedness(np.array([[1.0, -1.0], [7.0, 3.0]]), 1.0)
    10.0
    """
    off = odds[1] - 2 * odds[0]
    return float(np.mean(off**2) / (2.5 * max(sigma, 1e-300) ** 2))


def narrower(crooked: float, n_coords: int, n_steps: int) -> float:
    r"""Return the part of the wider radius at which bias and noise of joint slopes cost least.

    Odd parts that bend like cubes, :math:`\frac43 b` at the wider radius with
    :math:`b^2 = \frac52 \sigma^2 (T - 1)`, move the minimum; that costs
    :math:`(\frac43 b)^2 p / 4e` where f rises by e, and falls with the fourth power of the radius.
    Noise costs :math:`\sigma^2 p^2 / 8ne` after n pairs, and grows with its inverse square. The
    sum is least at the sixth root of half the ratio.

    Examples
    --------
    >>> narrower(1.0, 20, 5000)
    1.0
    >>> round(narrower(8.0, 20, 5000), 3)
    0.178
    """
    if crooked <= CROOKED or not n_steps:
        return 1.0
    ratio = n_coords / (4 * n_steps * (16 / 9) * 2.5 * (crooked - 1))
    return float(min(1.0, ratio ** (1 / 6)))
