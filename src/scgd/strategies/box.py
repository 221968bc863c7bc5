"""Where a search may look: inside the bounds, and not far beyond what is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scgd.problem import Problem
from scgd.strategies.asks import Along, Asking, Gradient, Report, Wait, point_of
from scgd.typing import Array, Floats

REACH = 10.0
"""How far from the start a search looks at first, in units of the problem's scale: functions that
users write are often defined (logarithms, roots, simulators) no farther than that."""


class Box:
    """A box around a start, inside the bounds, that doubles while that pays.

    No point is asked farther than ``reach`` from the start in any coordinate. When a better point
    than all before lies beyond half of it, it doubles; the bounds never move.

    Parameters
    ----------
    start
        The centre.
    lower, upper
        The bounds; empty arrays where there are none.
    reach
        How far it goes at first.

    Examples
    --------
    >>> box = Box(np.zeros(2), np.array([-1.0, -np.inf]), np.array([3.0, np.inf]))
    >>> box.clip(np.array([5.0, 50.0])), box.reflect(np.array([3.5, 11.0]))
    (array([ 3., 10.]), array([2.5, 9. ]))
    >>> box.note(np.array([0.0, 6.0]))
    >>> box.upper
    array([ 3., 20.])
    """

    def __init__(self, start: Floats, lower: Floats, upper: Floats, reach: float = REACH) -> None:
        none = not lower.size
        self.start, self.reach = start.copy(), reach
        self.least = np.full(start.size, -np.inf) if none else lower
        self.most = np.full(start.size, np.inf) if none else upper
        self.lower, self.upper = np.empty(start.size), np.empty(start.size)
        self.parts: list[tuple[Box, Array]] = []
        self._fit()

    def _fit(self) -> None:
        np.maximum(self.least, self.start - self.reach, out=self.lower)
        np.minimum(self.most, self.start + self.reach, out=self.upper)
        for part, mask in self.parts:
            part.lower[:], part.upper[:] = self.lower[mask], self.upper[mask]

    def part(self, mask: Array) -> Box:
        """Return the box of some coordinates, which grows with this one."""
        part = Box(self.start[mask], self.least[mask], self.most[mask], self.reach)
        self.parts.append((part, mask))
        return part

    def note(self, x: Floats) -> None:
        """Double if the best point so far lies in the outer half."""
        if float(np.abs(x - self.start).max()) > self.reach / 2:
            self.reach *= 2
            self._fit()

    @property
    def finite(self) -> bool:
        """Whether all bounds are finite."""
        return bool(np.isfinite(self.least).all() and np.isfinite(self.most).all())

    @property
    def width(self) -> float:
        """The median distance of two walls, of coordinates that may move."""
        widths = self.upper - self.lower
        return float(np.median(widths[widths > 0])) if (widths > 0).any() else np.inf

    def clip(self, x: Floats) -> Floats:
        """Return the nearest points inside."""
        return np.minimum(np.maximum(x, self.lower), self.upper)

    def reflect(self, x: Floats) -> Floats:
        """Return points mirrored at the walls, as often as it takes."""
        lower, width = self.lower, self.upper - self.lower
        inside = (x >= lower) & (x <= self.upper)
        if inside.all():
            return x
        with np.errstate(invalid="ignore"):  # a wall at infinity is never met
            place = np.mod(x - lower, 2 * width)
        mirrored = lower + (width - np.abs(place - width))
        mirrored = np.where(width > 0, mirrored, lower)
        return self.clip(np.where(inside, x, mirrored))


def in_box(inner: Asking, problem: Problem, box: Box) -> Asking:
    """Run a search that speaks in units of the problem's scale, inside a box around its start.

    Points are brought inside box and bounds and into units of x; a failed evaluation is infinite;
    a best point in the outer half of the box widens it. Return what the search returns.
    """
    unit, lowest = problem.unit, np.inf
    shared = base = np.empty(0)  # what points have in common, made once: searches never change it
    values: Any = None
    asked: Any
    try:
        while True:
            points = inner.send(values)
            if isinstance(points, Report) and points.x is not None:
                points = replace(points, x=points.x * unit)
            if isinstance(points, Report | Wait):
                values = yield points
                continue
            if isinstance(points, Gradient):
                x = problem.clipped(box.clip(points.x) * unit)
                partials = yield Gradient(x, points.coords)
                values = np.nan_to_num(partials, nan=0.0, posinf=0.0, neginf=0.0)
                values = values * unit[points.coords]
                continue
            if isinstance(points, Along):
                if points.x is not shared:
                    shared, base = points.x, problem.clipped(points.x * unit)
                asked, distance = along_in_box(points, base, problem, box)
            else:
                inside = box.clip(points)
                asked = problem.clipped(inside * unit)
                distance = float(np.abs(inside - box.start).max())
            values = yield asked
            if isinstance(values, float):
                values = low = values if values == values else np.inf
            else:
                values = np.where(np.isnan(values), np.inf, values)
                low = float(values.min(initial=np.inf))
            if low < lowest:
                lowest = low
                if distance > box.reach / 2:
                    k = 0 if isinstance(values, float) else int(values.argmin())
                    box.note(point_of(asked, k) / unit)
    except StopIteration as end:
        return end.value


def along_in_box(points: Along, base: Floats, problem: Problem, box: Box) -> tuple[Along, float]:
    """Return points that differ in one coordinate inside, and how far the farthest lies away."""
    if points.single:
        (i,), (entry,) = points.coords, points.entries
        entry = min(max(entry, float(box.lower[i])), float(box.upper[i]))
        inside = problem.inside(i, entry * float(problem.unit[i]))
        return Along(base, points.coords, [inside], single=True), abs(entry - float(box.start[i]))
    k = np.asarray(points.coords)
    entries = np.minimum(np.maximum(points.entries, box.lower[k]), box.upper[k])
    inside = entries * problem.unit[k]
    if problem.lower.size:
        inside = np.minimum(np.maximum(inside, problem.lower[k]), problem.upper[k])
    return Along(base, k, inside), float(np.abs(entries - box.start[k]).max(initial=0.0))
