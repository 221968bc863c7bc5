"""One radius per coordinate: where f rises by a few standard deviations of the noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scgd.estimators import random_signs
from scgd.problem import Problem
from scgd.strategies.asks import Along, Asking
from scgd.typing import Array, Floats, Ints

ENOUGH, AIM, TOO_MUCH = 4.0, 8.0, 16.0
"""Rises, in standard deviations of the noise: from which to which one is right, and the best."""
MOST_LEVELS = 8
FARTHEST = 10.0
"""Units of x within which radii stay while nothing shows, as other searches do."""
VISIBLE = 4.0
"""Standard errors that no slope or rise reaches by luck."""
CROOKED = 2.5
"""Squared deviations of odd parts from straight lines, in those that noise explains, from which f
is no quadratic: a mean of eight exceeds it once in a hundred times."""


@dataclass(frozen=True)
class CoordinateRadii:
    """What was found out about radii.

    Attributes
    ----------
    radii
        One per coordinate.
    resolved
        Which of them are their own; the others have the common one.
    joint
        How much wider joint moves of all of those may be.
    seen
        Whether a joint move showed above the noise.
    base
        The mean at the point; NaN where nothing was seen of it.
    steep
        Whether f rises faster than a quadratic at twice that radius, or its odd part bends.
    """

    radii: Floats
    resolved: Array
    joint: float
    seen: bool
    base: float
    steep: bool = False


def coordinate_radii(
    problem: Problem, x: Floats, rng: np.random.Generator, common: Floats, *,
    n_levels: int, n_repeats: int, n_pairs: int, n_steps: int,
) -> Asking:  # fmt: skip
    r"""Find for every coordinate the radius at which f rises by about 4 to 16 :math:`\sigma`.

    All unresolved coordinates are asked together, two evaluations each, at radii that double (or
    shrink) from level to level. Then the joint radius of all resolved ones together is doubled
    while f grows like a square. Where odd parts do not double with it, slopes of joint moves are
    biased, and it becomes as narrow as weighs that against the noise (:func:`narrower`).

    Parameters
    ----------
    problem, x, rng
        What is known, where to look, and where signs come from.
    common
        The common radius of each coordinate.
    n_levels
        Levels per coordinate, at most; 0: only the joint radius.
    n_repeats
        Evaluations at x itself.
    n_pairs
        Pairs along random signs at each joint radius.
    n_steps
        Pairs that will be taken at the radius found; 0 where bias does not matter.
    """
    values = (yield np.broadcast_to(x, (n_repeats, 1, x.size)))[:, 0]
    repeats = values[np.isfinite(values)]
    none = np.zeros(x.size, np.bool_)
    if len(repeats) < 2:
        base = float(repeats.mean()) if len(repeats) else np.nan
        return CoordinateRadii(common, none, 1.0, False, base)
    base, sigma = float(repeats.mean()), float(repeats.std(ddof=1))
    own = Levels(problem, x, common, base, sigma)
    if n_levels:
        for _ in range(n_levels):
            coords = own.open
            if not len(coords):
                break
            values = yield own.points(coords)
            own.learn(coords, values)
        own.foretell()
        own.radii = np.where(own.resolved, own.radii, common)
    else:
        own.resolved[:] = True
    n = int(np.count_nonzero(own.resolved))
    if not n:
        return CoordinateRadii(own.radii, own.resolved, 1.0, False, base)
    radii = np.where(own.resolved, own.radii, 0.0)
    first = 1 / np.sqrt(n) if n_levels else 1.0
    sizes = base, sigma, len(repeats)
    found = yield from joint_radius(
        problem, x, rng, radii, own.widest, sizes, n_pairs, n_steps, first
    )
    return CoordinateRadii(own.radii, own.resolved, found[0], found[1], base, found[2])


class Levels:
    """Radii of all coordinates, and rises at each so far."""

    def __init__(self, problem: Problem, x: Floats, common: Floats, base: float, sigma: float):
        self.problem, self.x, self.common, self.base, self.sigma = problem, x, common, base, sigma
        reach = max(FARTHEST, 2 * problem.away(x))
        self.widest = np.maximum(common, reach * problem.unit - np.abs(x - problem.x0))
        self.radii = common.copy()
        self.resolved = np.zeros(x.size, np.bool_)
        self.barred = np.zeros(x.size, np.bool_)  # as wide as may be, and nothing showed
        self.grown = np.zeros(x.size)
        self.sums: Floats = np.zeros((5, x.size))  # of powers of radii, and rises

    @property
    def open(self) -> Ints:
        """The coordinates that are asked next."""
        return np.flatnonzero(~self.resolved & ~self.barred)

    def points(self, coords: Ints) -> Along:
        """Return two sides of some coordinates."""
        x, radii, twice = self.x[coords], self.radii[coords], np.tile(coords, 2)
        entries = np.concatenate([x - radii, x + radii])
        if self.problem.lower.size:
            entries = np.clip(entries, self.problem.lower[twice], self.problem.upper[twice])
        return Along(self.x, twice, entries)

    def learn(self, coords: Ints, values: Floats) -> None:
        """Accept radii whose rise is right, widen or narrow the others (a failed one narrows)."""
        n, sigma, radii = len(coords), self.sigma, self.radii[coords]
        rises = 0.5 * (values[:n] + values[n:]) - self.base
        failed = np.isnan(rises)
        rises = np.where(failed, np.inf, rises)
        large, right = rises > TOO_MUCH * sigma, rises > ENOUGH * sigma
        grew, shrank = self.grown[coords] > 0, self.grown[coords] < 0
        done = ~failed & ((right & ~large) | (large & grew) | (~right & shrank))
        least = max(AIM * sigma, 1e-300)
        narrower = np.maximum(np.sqrt(least / np.maximum(rises, least)), 0.1)
        factor = np.where(done, 1.0, np.where(large, np.where(failed, 0.25, narrower), 2.0))
        squares, seen = (radii / self.common[coords]) ** 2, np.where(failed, 0.0, rises)
        ones = np.ones_like(squares)
        self.sums[:, coords] += np.stack([ones, squares, squares**2, seen, seen * squares])
        self.barred[coords] = ~done & ~large & (radii >= self.widest[coords])
        self.radii[coords] = np.minimum(radii * factor, self.widest[coords])
        self.grown[coords] = np.where(large, -1.0, 1.0)
        self.resolved[coords[done]] = True

    def foretell(self) -> None:
        """Resolve coordinates that never rose by the mean curvature that they show together.

        It is the slope of all their rises over the squares of radii; the intercept is free, for
        small radii tell the base better than its few repeats do.
        """
        faint = ~self.resolved & (self.grown > 0)
        n, squares, fourths, rises, products = self.sums[:, faint].sum(axis=1).tolist()
        spread = fourths - squares**2 / max(n, 1.0)
        bend = (products - squares * rises / max(n, 1.0)) / max(spread, 1e-300)
        if spread > 0 and bend > VISIBLE * self.sigma / np.sqrt(2 * spread):  # means of two values
            self.resolved |= faint
            root = np.sqrt(np.count_nonzero(self.resolved))  # joint moves are as much narrower
            foretold = self.common[faint] * np.sqrt(AIM * self.sigma / bend)
            self.radii[faint] = np.minimum(foretold, root * self.widest[faint])


def joint_radius(
    problem: Problem, x: Floats, rng: np.random.Generator, radii: Floats, widest: Floats,
    sizes: tuple[float, float, int], n_pairs: int, n_steps: int, first: float,
) -> Asking:  # fmt: skip
    """Double the joint radius while the signal grows and the rise is a square or unseen.

    Return it, whether anything showed, and whether f is steeper than a quadratic there. ``sizes``
    are the base, the noise level and the repeats that told them.
    """
    base, sigma, n_repeats = sizes
    signs = [random_signs(x.size, rng) for _ in range(n_pairs)]  # the same at every radius
    least = VISIBLE * sigma * float(np.sqrt(0.5 / n_pairs + 1 / n_repeats))
    joint, rises, slopes, odds = first, list[float](), list[float](), list[Floats]()
    n_seen, tried, over = 0, first, False
    while not over and len(rises) < MOST_LEVELS:
        moves = [joint * radii * sign for sign in signs]
        pairs = np.stack([np.stack([x + move, x - move]) for move in moves])
        values = yield problem.clipped(pairs)
        failed = np.isnan(values).any(axis=1)
        up = np.where(failed, np.inf, values.mean(axis=1) - base)
        odd = np.where(failed, 0.0, values[:, 0] - values[:, 1])
        rises.append(float(np.mean(up)))
        slopes.append(float(np.mean(np.abs(odd))))
        odds.append(odd / 2)
        n_seen, tried = n_seen + (rises[-1] > least), joint
        shows = rises[-1] > least or slopes[-1] > VISIBLE * sigma
        if len(rises) > 1 and not quadratic(np.array(rises), np.array(slopes), least, 2 * sigma):
            joint, over = joint / 2, True
        elif n_seen == 4:  # three doublings of a rise that shows
            over = True
        elif not shows and np.any(2 * joint * radii > np.where(radii > 0, widest, np.inf)):
            over = True
        elif len(rises) < MOST_LEVELS:
            joint *= 2
    steep = False
    if len(rises) > 1:
        crooked = crookedness(np.array(odds[-2:]), sigma)
        steep = crooked > CROOKED or too_steep(np.array(rises), least)
        narrow = narrower(crooked, int(np.count_nonzero(radii)), n_steps)
        joint = min(joint, narrow * tried)
    return float(joint), n_seen > 0, steep


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
