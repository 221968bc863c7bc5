"""Global searches along single coordinates, for functions that are sums over them."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Generator
from itertools import pairwise
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from scgd.strategies.asks import Along, Report
from scgd.strategies.box import Box
from scgd.strategies.precision import ROUNDED, Precision
from scgd.typing import Array, Floats, Ints

POLISHES = 14
"""Parabolas at the end of a line, at most: their order of 1.3 takes fewer to rounding."""
POOR = 12
"""Evaluations per line below which lines are searched by shrinking parabolas alone."""
PART, FEWEST, MOST = 0.35, 4, 40
"""The part of the evaluations for a search of each line, and how few and many those may be."""
WIDE = 4.0
"""First half-width of a line, in units of the length scale: f falls up to three of them."""
FINEST = 1e-9
"""The narrowest interval that is divided, in widths of the line: f moves by its square, less than
rounding shows."""
NARROWER, FEWER = 0.5, 8
"""What later sweeps multiply the width of lines with, and the fewest evaluations of a line there:
an interval that was halved, and room for parabolas at its best point."""
FARTHEST = 2e3
"""How far a vertex may lie, in widths of its parabola: beyond, its curvature is rounding."""
EXACT = 1e-6
"""By how much a parabola may mispredict a value, as a part of what f changes by, and be called
exact: what a third derivative leaves over a thousandth of its own length."""
NEXT, MOST_NEXT, LEAST_NEXT = (0.3, 0.7), 4.0, 0.1
"""The next radius of a parabola in parts of the last move, of the first sweep and of later ones,
and its limits in parts of the last radius: steps of a sequence that converges linearly."""
SumTest = Callable[[Floats, float, int], Generator[Any, Any, bool]]
"""Asks so many times whether f is a sum at a point where it has some value."""


def per_line(left: int, n_lines: int) -> int:
    """Return the evaluations for each of some lines.

    Examples
    --------
    >>> [per_line(left, 10) for left in (0, 200, 10_000)]
    [4, 7, 40]
    """
    return int(min(MOST, max(FEWEST, PART * left / n_lines)))


class Line:
    """Points that differ from x in coordinate i, sorted, and their values.

    Parameters
    ----------
    x, f, i
        The first point, its value, and the coordinate.
    width
        Half of what is looked at; much shorter intervals are not divided.
    box
        Where the line ends; bounds may widen on the way.
    spread
        Takes the largest change of f.
    """

    def __init__(self, x: Floats, f: float, i: int, width: float, box: Box, spread: Floats) -> None:
        self.x, self.i, self.box, self.spread = x, i, box, spread
        self.t, self.f, self.width, self.least = [float(x[i])], [f], width, FINEST * width
        self.bends: list[float] = []  # of the intervals; made when somebody asks
        self.lowest = self.highest = self.first = f

    @property
    def ends(self) -> tuple[float, float]:
        """The walls as they are now."""
        return float(self.box.lower[self.i]), float(self.box.upper[self.i])

    def add(self, t: float) -> Generator[Any, Any, None]:
        """Evaluate a point."""
        value = yield Along(self.x, [self.i], [t], single=True)
        if isfinite(value):
            self.spread[self.i] = max(self.spread[self.i], abs(value - self.first))
        place = bisect(self.t, t)
        self.t.insert(place, t)
        self.f.insert(place, value)
        if self.bends and self.lowest <= value <= self.highest and 0 < place < len(self.t) - 1:
            self.bends[place - 1 : place] = self._bend(place - 1), self._bend(place)
        else:
            self.bends = []

    @property
    def best(self) -> int:
        """The place of the lowest value."""
        return self.f.index(min(self.f))

    def easiest(self) -> float | None:
        """Return the middle of the interval that may hide a better value most easily.

        It is the one in which a parabola that touches just below the lowest value bends least.
        """
        if not self.bends:
            self.lowest = min(self.f)
            self.highest = max(value for value in self.f if value < inf)
            if self.highest == self.lowest:
                return self._nearer()
            self.bends = [self._bend(k) for k in range(len(self.t) - 1)]
        flattest = min(self.bends)
        k = self.bends.index(flattest)
        return (self.t[k] + self.t[k + 1]) / 2 if flattest < inf else None

    def _bend(self, k: int) -> float:
        """Return the root of the curvature in the k-th interval; failed values count as highest."""
        gap, low, high = self.t[k + 1] - self.t[k], self.lowest, self.highest
        if not 0.0 < gap >= self.least:
            return inf
        left, right, spare = min(self.f[k], high), min(self.f[k + 1], high), 1e-9 * (high - low)
        return (sqrt(right - low + spare) + sqrt(left - low + spare)) / gap

    def _nearer(self) -> float | None:
        """Return the middle of the widest interval with one failed end: f is flat, or a point."""
        widest, middle = self.least, None
        for (a, b), (left, right) in zip(pairwise(self.t), pairwise(self.f), strict=True):
            if isfinite(left) != isfinite(right) and b - a > widest:
                widest, middle = b - a, (a + b) / 2
        return middle


def search_line(
    line: Line, n: int, precision: Precision
) -> Generator[Any, Any, tuple[float, float]]:
    """Return the best point on a line and f there, from about n evaluations.

    STEP: halve the interval in which the parabola that touches just below the best value needs the
    least curvature; then polish by parabolas.
    """
    t, (low, high) = line.t[0], line.ends
    for edge in (max(t - line.width, low), min(t + line.width, high)):
        if edge != t:
            yield from line.add(edge)
    if len(line.t) > 1:
        yield from widen(line, n)
        while len(line.t) <= n and (middle := line.easiest()) is not None:
            yield from line.add(middle)
        yield from polish(line, precision)
    return line.t[line.best], line.f[line.best]


def widen(line: Line, n: int) -> Generator[Any, Any, None]:
    """Go on outwards while the best value lies at an edge that is no wall."""
    while len(line.t) <= n:
        span, best, (low, high) = line.t[-1] - line.t[0], line.best, line.ends
        if best == 0 and line.f[0] < line.f[1] and line.t[0] > low:
            yield from line.add(max(line.t[0] - span, low))
        elif best == len(line.t) - 1 and line.f[-1] < line.f[-2] and line.t[-1] < high:
            yield from line.add(min(line.t[-1] + span, high))
        else:
            return


def polish(line: Line, precision: Precision) -> Generator[Any, Any, None]:
    """Put parabolas through the best point and its neighbours."""
    for _ in range(POLISHES):
        k = line.best
        if k in (0, len(line.t) - 1):
            return
        (left, t, right), (f_left, f, f_right) = line.t[k - 1 : k + 2], line.f[k - 1 : k + 2]
        span = right - left
        if span < line.least / 10 or f_left - f + f_right - f <= precision.level(f):
            return
        new = vertex(left, t, right, f_left, f, f_right)
        new = new if left < new < right else t
        least = max(1e-3 * span, line.least / 100)  # a point beside the vertex brackets it
        if abs(new - t) < least:
            new = t + least * (1 if right - t > t - left else -1)
        if new in line.t:
            return
        yield from line.add(new)


def vertex(a: float, b: float, c: float, fa: float, fb: float, fc: float) -> float:
    """Return the minimum of the parabola through three points; a middle where one is infinite."""
    if not (isfinite(fa) and isfinite(fc)):
        return 0.5 * (b + (a if isfinite(fa) else c))
    left, right = (b - a) * (fb - fc), (b - c) * (fb - fa)
    return b - 0.5 * ((b - a) * left - (b - c) * right) / (left - right) if left != right else b


def line_search(
    x: Floats,
    f: float,
    s: float,
    rng: np.random.Generator,
    n: int,
    spread: Floats,
    box: Box,
    precision: Precision,
    goes_on: SumTest,
    left: Callable[[], int],
) -> Generator[Any, Any, None]:
    """Sweep the coordinates: parabolas, then longer searches where a parabola did not predict f.

    The first lines go from wall to wall where bounds are finite; later sweeps are narrower and
    shorter. It ends when a sweep brought nothing, or where
    ``goes_on``, asked so many times of the point that a sweep or a long line has led to, says no.
    ``left`` returns how many evaluations there are; ``spread`` takes what each
    coordinate changes f: the rise of an exact parabola from its vertex, else the largest change.
    """
    p, poor = x.size, n < POOR
    radius, exact, sweep = np.full(p, WIDE * s), np.zeros(p, np.bool_), 0
    width = box.width / 2 if box.finite else WIDE * s
    while True:
        before, order = f, rng.permutation(p)
        if sweep == 1:
            order = order[~exact[order]]
        if sweep == 0 or poor:
            some = order[: max(1, (left() - 2) // 2)]  # two sides of each, and two vertices
            x, f, moves, exact[some] = yield from parabolas(
                x, f, radius[some], some, box, precision, spread, left
            )
            radius[some] = next_radius(radius[some], moves, exact[some], sweep)
            order = order[:0]
        for i in order.tolist():
            t, value = yield from search_line(Line(x, f, i, width, box, spread), n, precision)
            if value < f:
                x, f = x.copy(), value  # what was asked keeps its own
                x[i] = t
            if not (yield from goes_on(x, f, 1)):
                return
        sweep += 1
        if 0 < (total := float(spread.sum())) < inf:
            yield Report(relevance=(spread / total, np.full(p, np.nan)))  # seen at one place
        still = before - f <= max(1e-14 * abs(f), precision.noise) and (
            sweep != 2 or not exact.any()
        )
        looked = sweep > 1 or exact.all()  # parabolas that predicted nothing prove nothing
        if looked and still and (not poor or radius.max() < 1e-7 * s):
            return
        if not (yield from goes_on(x, f, 1 if poor else 3)):
            return
        if sweep > 1 and not poor:
            width, n = NARROWER * width, max(FEWER, n // 2)


def parabolas(
    x: Floats,
    f: float,
    width: Floats,
    coords: Ints,
    box: Box,
    precision: Precision,
    spread: Floats,
    left: Callable[[], int],
) -> Generator[Any, Any, tuple[Floats, float, Floats, Array]]:
    """Minimize parabolas along many coordinates: 2 n + 1 evaluations where f is a quadratic.

    Both sides of x are evaluated along each coordinate, and then the point at which all parabolas
    are lowest. Where its value is not what they predict, so are their vertices one by one. Return
    the best point, f there, how far each coordinate moved, and which parabolas were exact.
    """
    n, here = len(coords), x[coords]
    if not n:
        return x, f, np.zeros(0), np.zeros(0, bool)
    low, high = box.lower[coords], box.upper[coords]
    right, back = np.minimum(here + width, high), np.maximum(here - width, low)
    at_high, at_low = right == here, back == here
    right, back = (  # both sides lie where there is room
        np.where(at_high, (here + back) / 2, right),
        np.where(at_low, (here + right) / 2, back),
    )
    values = yield Along(x, np.tile(coords, 2), np.concatenate([right, back]))
    with np.errstate(all="ignore"):
        rises = np.stack([np.zeros(n), values[:n] - f, values[n:] - f])
        up, down = rises[1] / (right - here), rises[2] / (back - here)
        bend = (up - down) / (right - back)
        slope = up - bend * (right - here)
        rise = bend * width**2  # from the vertex: the same wherever x is
        convex = (bend > 0) & (bend < np.inf) & (np.abs(slope / bend) < FARTHEST * width)
        flat = np.abs(rises[1:]).max(axis=0) <= precision.level(f)
        convex &= ~flat
        vertex = np.clip(np.where(convex, here - slope / (2 * bend), here), low, high)
        expected = np.where(convex, (slope + bend * (vertex - here)) * (vertex - here), 0.0)
    rises = np.where(np.isfinite(rises), rises, np.inf)
    seen = np.where(np.isfinite(rises), np.abs(rises), 0.0).max(axis=0)
    places = np.stack([here, right, back, vertex])

    def joint(last: Floats) -> tuple[Floats, float, Floats]:
        every = np.vstack([rises, last])
        k = every.argmin(axis=0), np.arange(n)
        y = x.copy()
        y[coords] = places[k]
        return y, f + float(every[k].sum()), np.abs(places[k] - here)

    def agree(actual: Any, wanted: Any, change: Any) -> Any:
        return np.abs(actual - wanted) <= EXACT * change + ROUNDED * abs(f) + precision.level(f)

    y, wanted, moves = joint(expected)
    value = yield y
    sure = convex | flat
    exact = agree(value, wanted, float(seen.sum()) + f - wanted)
    if not exact:
        actual, tried = np.full(n, np.inf), np.flatnonzero(convex)[: max(0, left() - 1)]
        if len(tried):
            actual[tried] = (yield Along(x, coords[tried], vertex[tried])) - f
        with np.errstate(invalid="ignore"):  # infinite minus infinite
            sure = flat | (convex & agree(actual, expected, seen - np.minimum(actual, 0)))
        z, _, steps = joint(actual)
        third = yield z
        if third < value:
            y, value, moves = z, third, steps
    spread[coords] = np.maximum(spread[coords], np.where(sure & convex, rise, seen))
    return (y, value, moves, sure) if value < f else (x, f, np.zeros(n), sure)


def next_radius(radius: Floats, move: Floats, exact: Array, sweep: int) -> Floats:
    """Return the radii of the next parabolas: wider where f still fell at the end of one.

    Examples
    --------
    >>> next_radius(np.ones(2), np.ones(2), np.array([False, True]), 0)
    array([4. , 0.3])
    """
    least, most = LEAST_NEXT * radius, MOST_NEXT * radius
    return np.where((move >= radius) & ~exact, most, np.clip(NEXT[sweep > 0] * move, least, most))
