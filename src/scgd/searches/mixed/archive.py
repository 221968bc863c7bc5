"""What was seen at each point of a grid; equal points are one."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.typing import Array, Floats, Ints

__all__ = ["Archive"]


class Archive:
    """Points, each once, and the values observed there in the order of their arrival.

    Parameters
    ----------
    n_coords
        The dimension.

    Attributes
    ----------
    rows, values
        At which point each value was observed, and the value: NaN where it was lost.
    waiting, lost, counts, means, seen
        Evaluations under way, values lost, finite values, their mean (infinite before the first)
        and the values themselves, by point.
    best
        The point of the lowest mean, the latest of them; -1 where there is none.
    """

    def __init__(self, n_coords: int) -> None:
        self.n_coords = n_coords
        self._clear(np.empty((8, n_coords)))

    def _clear(self, buffer: Floats) -> None:
        self._points, self.size = buffer, 0
        self.index: dict[bytes, int] = {}
        self.rows: list[int] = []
        self.values: list[float] = []
        self.waiting: list[int] = []
        self.lost: list[int] = []
        self.counts: list[int] = []
        self.means: list[float] = []
        self.seen: list[list[float]] = []
        self.best = -1

    def __len__(self) -> int:
        """Return the number of points."""
        return self.size

    @property
    def points(self) -> Floats:
        """The points, one per row."""
        return self._points[: self.size]

    def has(self, points: Floats) -> Array:
        """Tell which points are known."""
        return np.array([point.tobytes() in self.index for point in points], np.bool_)

    def add(self, point: Floats) -> int:
        """Return the row of a point, which is new where it is not known."""
        key = point.tobytes()
        if key not in self.index:
            if self.size == len(self._points):
                self._points = np.concatenate([self._points, np.empty_like(self._points)])
            self._points[self.size] = point
            self.index[key] = self.size
            self.size += 1
            self.waiting.append(0)
            self.lost.append(0)
            self.counts.append(0)
            self.means.append(float("inf"))
            self.seen.append([])
        return self.index[key]

    def tell(self, row: int, value: float) -> None:
        """Take a value, NaN for one that was lost."""
        self.waiting[row] -= 1
        self._note(row, value)

    def _note(self, row: int, value: float) -> None:
        self.rows.append(row)
        self.values.append(value)
        if value == value:
            n = self.counts[row] = self.counts[row] + 1
            mean = self.means[row] if n > 1 else 0.0
            self.means[row] = mean + (value - mean) / n
            self.seen[row].append(value)
            self._rank(row)
        else:
            self.lost[row] += 1

    def asked(self, row: int) -> int:
        """Return how often a point was asked."""
        return self.counts[row] + self.lost[row] + self.waiting[row]

    def _rank(self, row: int) -> None:
        """Have ``best`` follow the mean of a point."""
        if self.best < 0 or self.means[row] <= self.means[self.best]:
            self.best = row
        elif row == self.best:  # it has risen
            self.best = int(np.argmin(self.means))

    @property
    def told(self) -> Ints:
        """The points at which something was observed, or lost."""
        return np.unique(np.array(self.rows, np.int64))

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        return {
            "points": self.points.copy(),
            "rows": np.array(self.rows, np.int64),
            "values": np.array(self.values, np.float64),
            "waiting": np.array(self.waiting, np.int64),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another one."""
        points, waiting = state["points"], state["waiting"]
        if points.ndim != 2 or points.shape[1] != self.n_coords or len(waiting) != len(points):
            raise ValueError("the points seen have another shape")
        self._clear(np.empty((max(8, len(points)), self.n_coords)))
        for point in points:
            self.add(point)
        if self.size != len(points) or not np.isfinite(points).all() or np.any(waiting < 0):
            raise ValueError("the points seen are no points of this problem, each once")
        self.waiting = waiting.tolist()
        for row, value in zip(state["rows"].tolist(), state["values"].tolist(), strict=True):
            if not 0 <= row < self.size:
                raise ValueError(f"a value was seen at point {row} of {self.size}")
            self._note(row, value)
