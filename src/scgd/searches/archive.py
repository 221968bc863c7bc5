"""Points and values that several searches add to and a regression looks at."""

from __future__ import annotations

import numpy as np

from scgd.typing import Floats

__all__ = ["Archive"]


class Archive:
    """The last points that were evaluated, in arrays that somebody else keeps.

    Parameters
    ----------
    points, values
        One row and one entry per place; filled from the first on, then over the oldest.
    count
        An array of one number: how many were added.
    """

    def __init__(self, points: Floats, values: Floats, count: Floats) -> None:
        self.points, self.values, self.count = points, values, count

    @classmethod
    def empty(cls, n_coords: int, size: int) -> Archive:
        """Return one with room for so many points."""
        return cls(np.zeros((size, n_coords)), np.full(size, np.nan), np.zeros(1))

    def __len__(self) -> int:
        """Return how many points there are."""
        return min(int(self.count[0]), len(self.values))

    def add(self, points: Floats, values: Floats) -> None:
        """Add points; a value that was lost is left out."""
        if not len(self.values):
            return
        for x, value in zip(points, values, strict=True):
            if np.isfinite(value):
                place = int(self.count[0]) % len(self.values)
                self.points[place], self.values[place] = x, value
                self.count[0] += 1

    def near(self, x: Floats, unit: Floats, most: int, within: float) -> tuple[Floats, Floats]:
        """Return the nearest points, seen from x in a unit, and their values.

        ``within`` bounds the root mean square of a point's coordinates.
        """
        n = len(self)
        away = (self.points[:n] - x) / unit
        distance = np.sqrt(np.mean(away**2, axis=1))
        nearest = np.argsort(distance, kind="stable")[:most]
        nearest = nearest[distance[nearest] < within]
        return away[nearest], self.values[nearest]
