"""How far to look under noise: a ladder of radii that is climbed only while that pays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scgd.problem import Problem
from scgd.questions import EVERYWHERE, Point, Question, here, joint
from scgd.searches.agreed import share_that_agrees
from scgd.searches.archive import Archive
from scgd.searches.base import Finding, Search, Standing
from scgd.typing import Floats

__all__ = ["Footing", "Ladder"]

FIRST = 0.25
FARTHEST, FARTHEST_BOUNDED = 10.0, 2.0
"""Radii, in units of x, that are tried unasked; two units are half of a bounded range."""
NEAREST = 1e-4
DOUBLINGS = 20
"""How often the farthest radius may be doubled down a slope that shows and pays."""
MOST_LEVELS = 12
BLIND, BLIND_BOUNDED = 2.0, 1.0
"""The radius where nothing showed at any level: the guess of the unit is all there is."""
GROWS = 1.5
"""How much the odd part at the last level exceeds those before, at least, down a slope (by 2)."""
ROUGH = 0.5
"""The radius where f does not get smoother nearer by."""


@dataclass(frozen=True)
class Footing(Finding):
    """What is known of f around the start.

    Attributes
    ----------
    radius
        Where slope and bend weigh alike, in units of x.
    deviation
        The standard deviation of the noise.
    base
        The median at the start.
    signal
        The odd part of f at the last level, in standard deviations of the noise.
    seen
        Whether anything showed above the noise.
    rough
        Whether f does not get smoother nearer by (a jump, chaos), so that the base means little.
    farthest
        How far a coordinate was moved, in units of x.
    agreed
        The largest part of the values at the start that are equal.
    flat
        Whether f was not bent at any level, as far as it may look unasked, nor did its odd part
        grow with the radius as that of a slope does.
    """

    radius: float
    deviation: float
    base: float
    signal: float
    seen: bool
    rough: bool
    farthest: float
    agreed: float = 0.0
    flat: bool = False


class Ladder(Search):
    r"""Find the radius at which the slope of f and its bend weigh alike, and the noise.

    After repeats at x a level asks a few pairs :math:`x \pm h z` with Gaussian z of length
    :math:`\sqrt p`: their odd part tells the slope, their even part the bend. The radius doubles
    while f does not look bent and halves while it does. Beyond 10 units of x (beyond 2 within
    bounds never) it doubles only if the slope shows above the noise and every pair found a value
    below the base by three standard deviations. Where x is too near a bound for a pair, the pair
    moves inwards and its middle is asked too.

    Parameters
    ----------
    problem, point
        What is known, and where to look.
    rng
        Where directions come from.
    budget
        Evaluations of the run.
    archive
        Where points and values are added.
    """

    name: ClassVar[str] = "ladder"
    found: ClassVar[type[Finding]] = Footing
    memory: ClassVar[tuple[str, ...]] = (
        "repeats", "radius", "way", "bends", "odds", "n_levels", "signal", "seen", "rough", "flat",
        "far", "rng",
    )  # fmt: skip

    def __init__(
        self,
        problem: Problem,
        point: Point,
        rng: np.random.Generator,
        budget: int,
        archive: Archive | None = None,
    ) -> None:
        super().__init__(point)
        self.problem, self.rng, self.budget = problem, rng, budget
        self.archive = Archive.empty(problem.n_coords, 0) if archive is None else archive
        self.repeats: list[float] = []
        self.bends: list[float] = []  # even parts of the levels that went down
        self.odds: list[float] = []  # odd parts of all levels
        self.radius, self.way, self.n_levels = FIRST, 0, 0
        self.signal, self.far = 0.0, 0.0
        self.seen = self.rough = self.flat = False

    @property
    def n_repeats(self) -> int:
        """Evaluations at x itself; where the noise is known they only tell the base."""
        if self.problem.noise is not None:
            return int(np.clip(self.budget // 100, 1, 3))
        return int(np.clip(self.budget // 50, min(3, max(1, self.budget // 4)), 10))

    @property
    def n_pairs(self) -> int:
        """Pairs of a level."""
        return 1 if self.budget < 40 else 2 if self.budget < 2000 else 3

    @property
    def most_levels(self) -> int:
        """Levels, at most: half of a tiny budget."""
        return int(np.clip(self.budget // (4 * self.n_pairs) - 1, 1, MOST_LEVELS))

    @property
    def cost(self) -> int:
        """Evaluations of the next question."""
        return (3 if self._cramped() else 2) * self.n_pairs if self.n_posed else self.n_repeats

    def _cramped(self) -> bool:
        """Tell whether pairs of this radius must move inwards; the radius must not depend on z."""
        problem, x = self.problem, self.point.x
        reach = 2 * self.radius * problem.unit
        return bool(problem.lower.size) and not np.array_equal(problem.centred(x, reach)[0], x)

    def ask(self) -> Question:
        """Return repeats of x, then the pairs of a level (and the middles of those that moved)."""
        if not self.n_posed:
            return here(self.point, self.n_repeats)
        x, problem, rows = self.point.x, self.problem, []
        cramped = self._cramped()
        for _ in range(self.n_pairs):
            z = self.rng.standard_normal(x.size)
            z *= self.radius * np.sqrt(x.size) / np.linalg.norm(z)
            if problem.lower.size:
                z = np.clip(z, -2 * self.radius, 2 * self.radius)
            middle, reach = problem.centred(x, np.abs(z) * problem.unit)
            move = np.copysign(reach, z)
            rows += [middle + move, middle - move, *([middle] if cramped else [])]
        return joint(self.point, EVERYWHERE, problem.clipped(np.stack(rows)), far=True)

    def tell(self, question: Question, values: Floats) -> None:
        """Take repeats or a level."""
        if not self.repeats:
            self.archive.add(np.tile(self.point.x, (len(values), 1)), values)
            self.repeats = values[~np.isnan(values)].tolist() or [float("inf")]
            self.report(self.base)
            return
        self.archive.add(question.entries, values)
        moves = np.abs(question.entries - self.problem.x0) / self.problem.unit
        self.far = max(self.far, float(moves.max()))
        rows = values.reshape(self.n_pairs, -1)
        rows = rows[~np.isnan(rows).any(axis=1)]
        odd, even, fell = 0.0, float("inf"), False  # without a value: too far
        if len(rows):
            odds, middles = (rows[:, 0] - rows[:, 1]) / 2, rows[:, 2:].T
            level = middles[0] if len(middles) else self.base
            odd = float(np.median(np.abs(odds)) if len(rows) > 2 else np.sqrt(np.mean(odds**2)))
            even = float(np.median((rows[:, 0] + rows[:, 1]) / 2 - level))
            lowest = rows[:, :2].min(axis=1).max()
            fell = bool(lowest < self.base - 3 * self._plain_deviation())
        self._judge(odd, even, fell, cramped=question.entries.shape[0] > 2 * self.n_pairs)

    def _judge(self, odd: float, even: float, fell: bool, *, cramped: bool) -> None:
        """Go down from a level that is bent and up from one that is not; end where they meet."""
        deviation = self.deviation
        error = deviation * np.sqrt(0.5 / self.n_pairs)
        error += deviation / np.sqrt(self.n_pairs if cramped else len(self.repeats))
        bent = bool(even > max(odd, 3 * error))
        visible = bool(odd > 3 * deviation / np.sqrt(2))
        self.n_levels += 1
        self.signal = odd / deviation if deviation > 0 else 0.0
        self.seen = self.seen or bent or visible
        self.finished = self.n_levels >= self.most_levels
        if bent:
            self._go_down(even)
        elif self.way < 0:
            self.finished = True
        else:
            self._go_up(pays=visible and fell, grows=odd > GROWS * max(self.odds, default=0.0))
        self.odds.append(odd)

    def _go_down(self, even: float) -> None:
        self.bends.append(even)
        self.finished = self.finished or self.way > 0
        last = self.bends[-3:]
        if len(last) == 3 and last[2] > 0.7 * last[1] > 0.49 * last[0] and np.isfinite(last).all():
            self.rough, self.finished, self.radius = True, True, ROUGH
            return
        self.way = -1
        self.radius /= 2
        self.finished = self.finished or self.radius < NEAREST

    def _go_up(self, *, pays: bool, grows: bool) -> None:
        self.way = 1
        bounded = bool(self.problem.lower.size)
        farthest = FARTHEST_BOUNDED if bounded else FARTHEST
        if 2 * self.radius > farthest and (bounded or not pays):
            self.finished, self.flat = True, not grows
        elif 2 * self.radius > FARTHEST * 2.0**DOUBLINGS:
            self.finished = True
        else:
            self.radius *= 2

    @property
    def base(self) -> float:
        """The median at x."""
        return float(np.median(self.repeats))

    def _plain_deviation(self) -> float:
        known = self.problem.noise
        if known is not None:
            return known
        away = np.array(self.repeats) - self.base
        largest = float(np.abs(away).max())
        if len(away) < 2 or not 0 < largest < np.inf:
            return 0.0
        return largest * float(np.std(away / largest, ddof=1))  # squares of 1e300 are infinite

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise; one outlier does not count."""
        plain = self._plain_deviation()
        if self.problem.noise is None:
            usual = 1.4826 * float(np.median(np.abs(np.array(self.repeats) - self.base)))
            plain = min(plain, 3 * usual) if usual > 0 else plain
        return max(plain, 1e-15 * abs(self.base) if np.isfinite(self.base) else 0.0)

    @property
    def standing(self) -> Standing:
        """The start and what was seen of it."""
        seen = np.array(self.repeats)
        return Standing(self.point.x, seen[np.isfinite(seen)])

    def finding(self) -> Footing:
        """Return the radius and the noise."""
        blind = BLIND_BOUNDED if self.problem.lower.size else BLIND
        radius = self.radius if self.seen else blind
        return Footing(
            radius, self.deviation, self.base, self.signal, self.seen, self.rough, self.far,
            share_that_agrees(self.repeats), self.flat,
        )  # fmt: skip
