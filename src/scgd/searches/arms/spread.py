"""Points that differ from one in a single coordinate each, without a matrix of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from scgd.typing import Floats, Ints

__all__ = ["Partials", "Spread", "point_of"]


class Spread:
    """Point j is x with coordinate ``coords[j]`` set to ``entries[j]``.

    Parameters
    ----------
    x
        What they have in common.
    coords, entries
        What distinguishes each; lists where it is one point, which are quicker.
    single
        Whether it is one point, whose value is wanted as a number.

    Examples
    --------
    >>> np.asarray(Spread(np.zeros(3), np.array([2, 0]), np.array([5.0, 7.0])))
    array([[0., 0., 5.],
           [7., 0., 0.]])
    """

    __slots__ = ("coords", "entries", "single", "x")

    def __init__(
        self,
        x: Floats,
        coords: Ints | Sequence[int],
        entries: Floats | Sequence[float],
        *,
        single: bool = False,
    ) -> None:
        self.x, self.coords, self.entries, self.single = x, coords, entries, single

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.coords)

    @property
    def ndim(self) -> int:
        """As of a point, or of a matrix with one per row."""
        return 1 if self.single else 2

    def at(self, j: int) -> Floats:
        """Return the j-th point."""
        x = self.x.copy()
        x[self.coords[j]] = self.entries[j]
        return x

    def __array__(self, dtype: Any = None, copy: Any = None) -> Floats:
        """Return the points as rows, or the one point."""
        points = np.array([self.at(j) for j in range(len(self))])
        return points[0] if self.single else points


class Partials:
    """The partial derivatives at x along some coordinates are wanted: one evaluation of jac."""

    __slots__ = ("coords", "x")
    ndim = 2

    def __init__(self, x: Floats, coords: Ints) -> None:
        self.x, self.coords = x, coords

    def __len__(self) -> int:
        """Return the number of evaluations."""
        return 1


def point_of(points: Any, j: int) -> Floats:
    """Return a copy of the j-th of what an arm asked."""
    if isinstance(points, Spread):
        return points.at(j)
    one: Floats = points if points.ndim == 1 else points[j]
    return one.copy()
