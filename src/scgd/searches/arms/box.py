"""Where arms may look: inside the bounds, and not far beyond what is known."""

from __future__ import annotations

import numpy as np

from scgd.typing import Array, Floats

__all__ = ["REACH", "Box"]

REACH = 10.0
"""How far from the start a search looks at first, in units of the problem's scale."""


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

    @classmethod
    def around(cls, start: Floats, reach: float = np.inf) -> Box:
        """Return a box without bounds."""
        return cls(start, np.empty(0), np.empty(0), reach)

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
