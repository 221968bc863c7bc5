"""How far must one look for a change of f to show above its noise? Bracketing the radius."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.history import robust_deviation
from scgd.problem import Problem
from scgd.strategies.asks import Asking
from scgd.strategies.comparison import deviation
from scgd.strategies.regression import Evaluations
from scgd.strategies.verification import share_that_agrees
from scgd.typing import Floats

FIRST = 0.25
FARTHEST, FARTHEST_BOUNDED = 10.0, 2.0
"""Radii, in units of x, that are tried unasked; two units are half of a bounded range."""
NEAREST = 1e-4
DOUBLINGS = 20
"""How often the farthest radius may be doubled down a slope that shows and pays."""
MOST_LEVELS = 12
ASKED = 3
"""How often repeats are asked while fewer than two have a value, and a level without a pair: one
failure is no sign of noise, nor of a radius that is too large."""
GROWS = 1.5
"""How much the odd part grows at least where the radius doubles, down a slope (there by 2)."""
ROUGH = 0.5
"""The radius where f gets no smoother nearer by, in units of x: half of a typical size."""


@dataclass(frozen=True)
class Surroundings:
    """What is known of f around a point.

    Attributes
    ----------
    radius
        Where slope and bend weigh alike, in units of x.
    deviation
        The standard deviation of the noise.
    base
        The median at the point.
    signal
        The odd part of f at the last level, in standard deviations of the noise.
    clearest
        The largest one at any level.
    seen
        Whether anything showed above the noise.
    rough
        Whether f gets no smoother nearer by (a jump, chaos), so that the base means little.
    flat
        Whether neither bend nor slope showed at any level, as far as one may look unasked.
    farthest
        How far a coordinate was moved, in units of x.
    agreed
        The largest part of the values at the point that are equal.
    values
        The values at the point.
    """

    radius: float
    deviation: float
    base: float
    signal: float
    clearest: float
    seen: bool
    rough: bool
    flat: bool
    farthest: float
    agreed: float
    values: Floats


def noise_level(values: Floats) -> float:
    """Return the standard deviation of repeats; one outlier does not count.

    Examples
    --------
    >>> noise_level(np.array([1.0, 2.0, 3.0]))
    1.0
    >>> noise_level(np.array([1.0, 1.1, 0.9, 1.05, 1e9])) < 1
    True
    """
    seen = values[np.isfinite(values)]
    if len(seen) < 2:
        return 0.0
    away = seen - np.median(seen)
    largest = float(np.abs(away).max())
    if not 0 < largest < np.inf:
        return 0.0
    plain = largest * float(np.std(away / largest, ddof=1))  # squares of 1e300 are infinite
    robust = robust_deviation(away)
    return min(plain, 3 * robust) if robust > 0 else plain


class Levels:
    """Odd and even parts of f at each radius so far, and where they lead."""

    def __init__(self, problem: Problem, repeats: Floats, n_pairs: int, pooled: float) -> None:
        self.bounded, self.n_pairs = bool(problem.lower.size), n_pairs
        finite = repeats[np.isfinite(repeats)]
        self.n_repeats = max(1, len(finite))
        self.base = float(np.median(finite)) if len(finite) else np.inf
        known = problem.noise
        if known is None:
            known = deviation(finite, pooled) if pooled > 0 else noise_level(repeats)
        least = 1e-15 * abs(self.base) if np.isfinite(self.base) else 0.0
        self.deviation = max(known, least)
        self.radius, self.way, self.signal, self.clearest = FIRST, 0, 0.0, 0.0
        self.seen = self.rough = self.flat = self.over = False
        self.bends: list[float] = []  # even parts of levels that went down
        self.odds: list[float] = []
        self.lengths: list[float] = []  # real lengths of pairs: walls shorten them

    def learn(self, rows: Floats, length: float) -> None:
        """Take the values of a level: plus, minus and, where pairs had to move, middles."""
        moved = rows.shape[1] > 2
        rows = rows[~np.isnan(rows).any(axis=1)]
        odd, even, fell = 0.0, np.inf, False  # without a value: too far
        if len(rows):
            odds = (rows[:, 0] - rows[:, 1]) / 2
            level = rows[:, 2] if moved else self.base
            odd = float(np.median(np.abs(odds)) if len(rows) > 2 else np.sqrt(np.mean(odds**2)))
            even = float(np.median((rows[:, 0] + rows[:, 1]) / 2 - level))
            fell = bool(rows[:, :2].min(axis=1).max() < self.base - 3 * self.deviation)
        error = self.deviation * np.sqrt(0.5 / self.n_pairs)
        error += self.deviation / np.sqrt(self.n_pairs if moved else self.n_repeats)
        bent = bool(even > max(odd, 3 * error))
        visible = bool(odd > 3 * self.deviation / np.sqrt(2))
        self.signal = odd / self.deviation if self.deviation > 0 else 0.0
        self.clearest = max(self.clearest, self.signal)
        self.seen = self.seen or bent or visible
        grows = self._grows(odd, length)
        self.odds.append(odd)
        self.lengths.append(length)
        if bent:
            self._go_down(even)
        elif self.way < 0:
            self.over = True
        else:
            self._go_up(pays=visible and fell, grows=grows)

    def _grows(self, odd: float, length: float) -> bool:
        """Tell whether the odd part grew as a slope's does with the real length of pairs."""
        shorter = [k for k, seen in enumerate(self.lengths) if seen < length / 1.2]
        if not shorter:
            return odd > 0 and not self.odds
        ratio = length / max(self.lengths[k] for k in shorter)
        needed = 1 + (GROWS - 1) * min(1.0, ratio - 1)
        return odd > needed * max(self.odds[k] for k in shorter)

    def _go_down(self, even: float) -> None:
        self.bends.append(even)
        self.over = self.way > 0
        last = self.bends[-3:]
        if len(last) == 3 and last[2] > 0.7 * last[1] > 0.49 * last[0] and np.isfinite(last).all():
            self.rough, self.over, self.radius = True, True, ROUGH
            return
        self.way = -1
        self.radius /= 2
        self.over = self.over or self.radius < NEAREST

    def _go_up(self, *, pays: bool, grows: bool) -> None:
        self.way = 1
        farthest = FARTHEST_BOUNDED if self.bounded else FARTHEST
        if 2 * self.radius > farthest and (self.bounded or not pays):
            # walls end the growth of a slope that shows
            self.over, self.flat = True, not grows and not self.bounded
        elif 2 * self.radius > FARTHEST * 2.0**DOUBLINGS:
            self.over = True
        else:
            self.radius *= 2


def trust_region_radius(
    problem: Problem, x: Floats, rng: np.random.Generator, budget: int, data: Evaluations,
    pooled: float = 0.0,
) -> Asking:  # fmt: skip
    r"""Find the radius at which the slope of f and its bend weigh alike, and the noise level.

    After repeats at x a level asks a few pairs :math:`x \pm h z` with Gaussian z of length
    :math:`\sqrt p`: their odd part tells the slope, their even part the bend. The radius doubles
    while f does not look bent and halves while it does. Beyond 10 units of x (beyond 2 within
    bounds never) it doubles only if the slope shows above the noise and every pair found a value
    below the base by three standard deviations. Where x is too near a bound for a pair, the pair
    moves inwards and its middle is asked too.

    Parameters
    ----------
    problem, x, rng
        What is known, where to look, and where directions come from.
    budget
        Evaluations of the run: up to 2 % of them are repeats.
    data
        Takes all points and values.
    pooled
        The standard deviation of the noise elsewhere, which few repeats do not contradict.

    Returns
    -------
    found
        A :class:`Surroundings`.
    """
    n_repeats = int(np.clip(budget // 50, min(3, max(1, budget // 4)), 10))
    if problem.noise is not None:  # then they only tell the base
        n_repeats = int(np.clip(budget // 100, 1, 3))
    n_pairs = 1 if budget < 40 else 2 if budget < 2000 else 3
    most_levels = int(np.clip(budget // (4 * n_pairs) - 1, 1, MOST_LEVELS))
    rows, repeats = np.broadcast_to(x, (n_repeats, 1, x.size)), np.empty(0)
    wanted = 1 if problem.noise is not None else min(2, n_repeats)
    for _ in range(ASKED):
        if np.count_nonzero(np.isfinite(repeats)) < wanted:
            values = (yield rows)[:, 0]
            data.add(rows[:, 0], values)
            repeats = np.append(repeats, values)
    levels, farthest = Levels(problem, repeats, n_pairs, pooled), 0.0
    for _ in range(most_levels):
        values = np.full((1, 1), np.nan)
        for _ in range(ASKED):
            if np.isnan(values).any(axis=1).all():
                points, length = level_points(problem, x, levels.radius, n_pairs, rng)
                values = yield points
                data.add(points.reshape(-1, x.size), values.reshape(-1))
        farthest = max(farthest, problem.away(points.reshape(-1, x.size)))
        levels.learn(values, length)
        if levels.over:
            break
    finite, blind = (
        repeats[np.isfinite(repeats)],
        1.0 if levels.bounded else 2.0,
    )  # the guess of the unit is all there is
    return Surroundings(
        levels.radius if levels.seen else blind, levels.deviation, levels.base, levels.signal,
        levels.clearest, levels.seen, levels.rough, levels.flat, farthest,
        share_that_agrees(finite.tolist()), finite,
    )  # fmt: skip


def level_points(
    problem: Problem, x: Floats, radius: float, n_pairs: int, rng: np.random.Generator
) -> tuple[Any, float]:
    """Return pairs along Gaussian directions, middles where walls move them, and their length."""
    bounded, unit, rows, squares = bool(problem.lower.size), problem.unit, [], 0.0
    moved = bounded and not np.array_equal(problem.centred(x, 2 * radius * unit)[0], x)
    for _ in range(n_pairs):
        z = rng.standard_normal(x.size)
        z *= radius * np.sqrt(x.size) / np.linalg.norm(z)
        if bounded:
            z = np.clip(z, -2 * radius, 2 * radius)
        middle, reach = problem.centred(x, np.abs(z) * unit)
        move = np.copysign(reach, z)
        squares += float(np.mean((move / unit) ** 2)) / n_pairs
        rows.append(np.stack([middle + move, middle - move, *([middle] if moved else [])]))
    return problem.clipped(np.stack(rows)), float(np.sqrt(squares))
