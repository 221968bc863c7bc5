"""Global searches along single coordinates, for functions that are sums over them."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Generator
from functools import partial
from itertools import pairwise
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from scgd.strategies.asks import Along, Report
from scgd.strategies.box import Box
from scgd.strategies.precision import EPS, Precision
from scgd.typing import Array, Floats, Ints

__all__ = ["POOR", "line_search", "per_line"]

POLISHES = 14
"""Parabolas at the end of a line, at most: their order of 1.3 takes fewer to rounding."""
POOR = 12
"""Evaluations per line below which lines are searched by shrinking parabolas alone."""
PART, FEWEST, MOST = 0.35, 4, 40
"""The part of the evaluations for a search of each line, and how few and many those may be."""
WIDE = 4.0
"""First half-width of a line, in units of the length scale: f falls up to three of them."""
Walls = Callable[[], tuple[float, float]]
"""Returns the ends of the line as they are now."""
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
    """Points on a line, sorted, and their values.

    Parameters
    ----------
    t, f
        The first point.
    width
        Half of what is looked at; intervals below 1e-9 of it are not divided.
    """

    def __init__(self, t: float, f: float, width: float) -> None:
        self.t, self.f, self.least = [t], [f], 1e-9 * width
        self.bends: list[float] = []  # of the intervals; made when somebody asks
        self.lowest = self.highest = f

    def add(self, t: float) -> Generator[Any, Any, None]:
        """Evaluate a point."""
        value = yield t
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
    t: float, f: float, width: float, n: int, walls: Walls, precision: Precision
) -> Generator[Any, Any, tuple[float, float]]:
    """Return the best point on a line and f there, from about n evaluations.

    STEP: halve the interval in which the parabola that touches just below the best value needs the
    least curvature; then polish by parabolas.
    """
    line, (low, high) = Line(t, f, width), walls()
    for edge in (max(t - width, low), min(t + width, high)):
        if edge != t:
            yield from line.add(edge)
    if len(line.t) == 1:
        return t, f
    yield from widen(line, n, walls)
    while len(line.t) <= n and (middle := line.easiest()) is not None:
        yield from line.add(middle)
    yield from polish(line, width, precision)
    return line.t[line.best], line.f[line.best]


def widen(line: Line, n: int, walls: Walls) -> Generator[Any, Any, None]:
    """Go on outwards while the best value lies at an edge that is no wall."""
    for _ in range(8):
        span, best, (low, high) = line.t[-1] - line.t[0], line.best, walls()
        if len(line.t) > n:
            return
        if best == 0 and line.f[0] < line.f[1] and line.t[0] > low:
            yield from line.add(max(line.t[0] - span, low))
        elif best == len(line.t) - 1 and line.f[-1] < line.f[-2] and line.t[-1] < high:
            yield from line.add(min(line.t[-1] + span, high))
        else:
            return


def polish(line: Line, width: float, precision: Precision) -> Generator[Any, Any, None]:
    """Put parabolas through the best point and its neighbours."""
    for _ in range(POLISHES):
        k = line.best
        if k in (0, len(line.t) - 1):
            return
        (left, t, right), (f_left, f, f_right) = line.t[k - 1 : k + 2], line.f[k - 1 : k + 2]
        span = right - left
        if span < 1e-10 * width or f_left - f + f_right - f <= precision.level(f):
            return
        new = vertex(left, t, right, f_left, f, f_right)
        new = new if left < new < right else t
        least = max(1e-3 * span, 1e-11 * width)
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


def try_parabola(
    t: float, f: float, width: float, walls: Walls, precision: Precision
) -> Generator[Any, Any, tuple[float, float, bool]]:
    """Return the best of two sides and the vertex, and whether the parabola predicted its value.

    At a wall both sides lie on the one where there is room, and the vertex comes no farther.
    """
    right, left = sides(t, width, *walls())
    if right == left:
        return t, f, True
    high, low = yield right, left
    if max(abs(high - f), abs(low - f)) <= precision.level(f):
        return t, f, True
    seen, exact = [(f, t), (high, right), (low, left)], False
    up, down = (high - f) / (right - t), (low - f) / (left - t)
    bend = (up - down) / (right - left)
    slope = up - bend * (right - t)
    if 0 < bend < np.inf and abs(slope / bend) < 2e3 * width:
        lower, upper = walls()
        trial = min(max(t - slope / (2 * bend), lower), upper)
        value = yield trial
        seen.append((value, trial))
        error = abs(value - (f + (slope + bend * (trial - t)) * (trial - t)))
        exact = error <= 1e-6 * (max(high, low, f) - min(f, value)) + 64 * EPS * abs(
            f
        ) + precision.level(f)
    f, t = min(seen)
    return t, f, bool(exact)


def sides(t: float, width: float, low: float, high: float) -> tuple[float, float]:
    """Return a place on either side of t, or two on one side of it at a wall."""
    right, left = min(t + width, high), max(t - width, low)
    if right == t:
        right = (t + left) / 2
    elif left == t:
        left = (t + right) / 2
    return right, left


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

    Later sweeps are narrower and shorter. It ends when a sweep brought nothing, or where
    ``goes_on``, asked so many times of the point that a sweep or a long line has led to, says no.
    ``left`` returns how many evaluations there are; ``spread`` takes the largest change of f along
    each coordinate.
    """
    p, poor = x.size, n < POOR
    x, width, radius = x.copy(), WIDE * s, np.full(x.size, WIDE * s)
    exact, sweep = np.zeros(p, np.bool_), 0
    while True:
        before, order = f, rng.permutation(p)
        if sweep == 0 and left() < POOR * p:  # nothing else fits into so few
            first = order[: max(0, min(p, (left() - 2) // 2))]
            x, f, moves, sure = yield from all_parabolas(
                x, f, WIDE * s, first, box, precision, spread, left
            )
            exact[first] = sure
            for i, move in zip(first.tolist(), moves.tolist(), strict=True):
                radius[i] = next_radius(float(radius[i]), move, exact[i], sweep)
            order = order[len(first) :]
        for i in order.tolist():
            if sweep == 1 and exact[i]:
                continue
            here, walls = float(x[i]), partial(wall, box, i)
            if sweep == 0 or poor:
                line: Any = try_parabola(here, f, float(radius[i]), walls, precision)
                t, value, exact[i] = yield from along(x, i, line, f, spread)
                radius[i] = next_radius(float(radius[i]), abs(t - here), exact[i], sweep)
            else:
                line = search_line(here, f, width, n, walls, precision)
                t, value = yield from along(x, i, line, f, spread)
            if value < f:
                x, f = x.copy(), value  # what was asked keeps its own
                x[i] = t
            if sweep > 0 and not poor and not (yield from goes_on(x, f, 1)):
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
            width, n = 0.5 * width, max(8, n // 2)


def all_parabolas(
    x: Floats,
    f: float,
    width: float,
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
        convex = (bend > 0) & (bend < np.inf) & (np.abs(slope / bend) < 2e3 * width)
        flat = np.abs(rises[1:]).max(axis=0) <= precision.level(f)
        convex &= ~flat
        vertex = np.clip(np.where(convex, here - slope / (2 * bend), here), low, high)
        expected = np.where(convex, (slope + bend * (vertex - here)) * (vertex - here), 0.0)
    rises = np.where(np.isfinite(rises), rises, np.inf)
    seen = np.where(np.isfinite(rises), np.abs(rises), 0.0).max(axis=0)
    spread[coords] = np.maximum(spread[coords], seen)
    places = np.stack([here, right, back, vertex])

    def joint(last: Floats) -> tuple[Floats, float, Floats]:
        every = np.vstack([rises, last])
        k = every.argmin(axis=0), np.arange(n)
        y = x.copy()
        y[coords] = places[k]
        return y, f + float(every[k].sum()), np.abs(places[k] - here)

    def agree(actual: Any, wanted: Any, change: Any) -> Any:
        return np.abs(actual - wanted) <= 1e-6 * change + 64 * EPS * abs(f) + precision.level(f)

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
    return (y, value, moves, sure) if value < f else (x, f, np.zeros(n), sure)


def next_radius(radius: float, move: float, exact: bool, sweep: int) -> float:
    """Return the radius of the next parabola: wider where f still fell at the end of this one.

    Examples
    --------
    >>> next_radius(1.0, 1.0, False, 0), next_radius(1.0, 1.0, True, 0)
    (4.0, 0.3)
    """
    if move >= radius and not exact:
        return 4 * radius
    return min(max(move * (0.7 if sweep else 0.3), 0.1 * radius), 4 * radius)


def wall(box: Box, i: int) -> tuple[float, float]:
    """Return the walls of a coordinate as they are now."""
    return float(box.lower[i]), float(box.upper[i])


def along(
    x: Floats, i: int, line: Generator[Any, Any, Any], f: float, spread: Floats
) -> Generator[Any, Any, Any]:
    """Ask at points that differ from x in coordinate i what a search on a line asks."""
    try:
        t = next(line)
        while True:
            if isinstance(t, float):
                seen = yield Along(x, [i], [t], single=True)
                values = [seen]
            else:
                values = seen = (yield Along(x, np.array([i] * len(t)), np.array(t))).tolist()
            for value in values:
                if isfinite(value):
                    spread[i] = max(spread[i], abs(value - f))
            t = line.send(seen)
    except StopIteration as end:
        return end.value
