"""The unit cube with its steps: which coordinates have levels, and where each has an effect."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scgd.typing import Array, Floats, Ints

LARGEST_LIST = 4096
"""Points up to which all of a grid are listed."""


@dataclass(frozen=True)
class Condition:
    """Some coordinates have an effect only where another one stands at some of its levels.

    Attributes
    ----------
    children
        The coordinates.
    parent
        The other one; it comes before them.
    levels
        Its levels at which they have an effect.
    """

    children: Ints
    parent: int
    levels: Ints


class Grid:
    r"""The unit cube, with levels along some coordinates.

    Level l of K that lie evenly has its centre at :math:`(l + 1/2) / K`. Whole numbers v from a to
    b that lie evenly in the logarithm share :math:`[\log(a - 1/2), \log(b + 1/2)]`, so that each
    has the room that rounding gives it. A coordinate without effect stands at its start: points
    that mean the same are the same.

    Parameters
    ----------
    start
        Where a search starts.
    n_levels
        Levels of each coordinate; 0 where it has none.
    first
        The first of the whole numbers where they lie evenly in the logarithm, else 0.
    categorical
        Whether the levels have no order.
    conditions
        What has an effect where.

    Examples
    --------
    >>> grid = Grid(np.array([0.5, 0.5]), np.array([4, 0]))
    >>> grid.snapped(np.array([[0.3, 0.3]]))
    array([[0.375, 0.3  ]])
    """

    def __init__(
        self,
        start: Floats,
        n_levels: Ints,
        first: Floats | None = None,
        categorical: Array | None = None,
        conditions: tuple[Condition, ...] = (),
    ) -> None:
        self.n_levels, self.conditions = n_levels, conditions
        self.first = np.zeros(n_levels.size) if first is None else first
        self.categorical = np.zeros(n_levels.size, np.bool_) if categorical is None else categorical
        self.discrete = n_levels > 0
        self.logarithmic = self.discrete & (self.first > 0)
        edge, levels = self.first[self.logarithmic], n_levels[self.logarithmic]
        self.edges = np.log(edge - 0.5), np.log(edge + levels - 0.5)
        self.start: Floats = start.copy()
        self.start = self.canonical(start[None])[0]

    @classmethod
    def continuous(cls, start: Floats) -> Grid:
        """Return a cube without levels."""
        return cls(start, np.zeros(start.size, np.int64))

    @property
    def n_coords(self) -> int:
        """The dimension."""
        return int(self.n_levels.size)

    # ---- levels ----------------------------------------------------------------------------------

    def levels(self, points: Floats) -> Ints:
        """Return the level of each coordinate, 0 where it has none."""
        inside = np.clip(points, 0.0, 1.0)
        found = np.minimum(np.floor(inside * self.n_levels), self.n_levels - 1)
        if self.logarithmic.any():
            low, high = self.edges
            value = np.rint(np.exp(low + inside[..., self.logarithmic] * (high - low)))
            n, first = self.n_levels[self.logarithmic], self.first[self.logarithmic]
            found[..., self.logarithmic] = np.clip(value - first, 0, n - 1)
        return np.asarray(np.maximum(found, 0), np.int64)

    def centres(self, levels: Ints) -> Floats:
        """Return where levels lie; meaningless for coordinates that have none."""
        places = (levels + 0.5) / np.maximum(self.n_levels, 1)
        if self.logarithmic.any():
            low, high = self.edges
            value = self.first[self.logarithmic] + levels[..., self.logarithmic]
            places[..., self.logarithmic] = (np.log(value) - low) / (high - low)
        return np.asarray(places, np.float64)

    def snapped(self, points: Floats) -> Floats:
        """Return the points inside the cube, on their levels."""
        return np.where(self.discrete, self.centres(self.levels(points)), np.clip(points, 0.0, 1.0))

    # ---- effects ---------------------------------------------------------------------------------

    def active(self, points: Floats) -> Array:
        """Return which coordinates of each point have an effect."""
        mask = np.ones(points.shape, np.bool_)
        if not self.conditions:
            return mask
        levels = self.levels(points)
        for condition in self.conditions:  # a parent's own conditions come before its children's
            holds = np.isin(levels[:, condition.parent], condition.levels)
            holds &= mask[:, condition.parent]
            mask[:, condition.children] &= holds[:, None]
        return mask

    def canonical(self, points: Floats) -> Floats:
        """Return the points on their levels, with what has no effect at its start."""
        snapped = self.snapped(points)
        return np.where(self.active(snapped), snapped, self.start) if self.conditions else snapped

    # ---- small grids -----------------------------------------------------------------------------

    @cached_property
    def all_points(self) -> Floats:
        """Every point of a small grid; none where there are more than a list should have."""
        sizes = self.n_levels.astype(float)
        if not self.discrete.all() or np.prod(sizes) > LARGEST_LIST:
            return np.empty((0, self.n_coords))
        levels = np.indices(tuple(self.n_levels.tolist())).reshape(self.n_coords, -1).T
        return np.asarray(np.unique(self.canonical(self.centres(levels)), axis=0), np.float64)
