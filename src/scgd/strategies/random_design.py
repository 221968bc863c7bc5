"""Random designs in mirrored pairs: each input stands at one of a few levels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scgd.problem import Problem
from scgd.typing import Array, Floats, Ints

__all__ = ["Design", "Term", "contrasts", "design_of"]

CHUNK = 4_000_000
"""Entries of contrasts that are held at a time."""
LEVELS = 4
"""Levels of an input: a cubic's worth, so that what rises, bends or has a step shows."""
CHOICES = 16
"""Options of a choice that are all tried; of more, four."""
Term = tuple[int, ...]
"""``(degree, input)``, or that of two inputs in turn."""


def contrasts(n_levels: int) -> Floats:
    """Return orthonormal polynomials on so many levels: a row per degree, the constant first.

    Examples
    --------
    >>> np.round(contrasts(4)[1:3], 2)
    array([[-1.34, -0.45,  0.45,  1.34],
           [ 1.  , -1.  , -1.  ,  1.  ]])
    """
    levels = np.arange(n_levels) - (n_levels - 1) / 2
    basis, triangle = np.linalg.qr(np.vander(levels, increasing=True))
    return np.asarray((basis * np.sign(np.diag(triangle))).T * np.sqrt(n_levels))


class Design:
    """Levels of inputs in pairs, drawn at random, and the contrasts that they make.

    Parameters
    ----------
    places
        The levels of each input: a row each, filled up with anything.
    counts
        How many levels each has; 1 for an input that does not move.
    """

    def __init__(self, places: Floats, counts: Ints) -> None:
        self.places, self.counts = places, counts
        self.most = int(counts.max())
        self.uniform = bool((counts == self.most).all())
        self.rows: list[Array] = []  # packed: a bit per level where there are two
        self.tables = np.zeros((self.most, self.most + 1, self.most))
        for n in set(counts.tolist()):
            self.tables[:n, n, :n] = contrasts(n)

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.rows)

    @property
    def n_inputs(self) -> int:
        """How many inputs there are."""
        return self.counts.size

    def draw(self, rng: np.random.Generator) -> Array:
        """Return random levels, one for each input."""
        if self.uniform:
            return rng.integers(0, self.most, self.n_inputs, dtype=np.uint8)
        return (rng.random(self.n_inputs) * self.counts).astype(np.uint8)

    def point(self, levels: Array) -> Floats:
        """Return the point where inputs stand at some levels."""
        return np.asarray(self.places[np.arange(self.n_inputs), levels])

    def pair(self, levels: Array) -> Floats:
        """Return a point and its mirror image."""
        opposite = (self.counts - 1 - levels).astype(np.uint8)
        return np.stack([self.point(levels), self.point(opposite)])

    def add(self, levels: Array) -> None:
        """Note the levels of another pair."""
        self.rows.append(np.packbits(levels) if self.most <= 2 else levels)

    def levels(self, inputs: slice | Ints) -> Array:
        """Return the levels of some inputs, a row per pair."""
        if self.most > 2:
            return np.stack([row[inputs] for row in self.rows])
        if isinstance(inputs, slice):
            first, last, _ = inputs.indices(self.n_inputs)
            packed = np.stack([row[first // 8 : (last + 7) // 8] for row in self.rows])
            return np.unpackbits(packed, axis=1)[:, first % 8 : first % 8 + last - first]
        packed = np.stack([row[inputs // 8] for row in self.rows])
        return (packed >> (7 - inputs % 8).astype(np.uint8)) & 1

    def chunks(self) -> Iterator[slice]:
        """Return slices of the inputs whose contrasts fit into memory."""
        width = max(8, CHUNK // max(len(self), 1) // 8 * 8)
        for first in range(0, self.n_inputs, width):
            yield slice(first, min(first + width, self.n_inputs))

    def contrast(self, degree: int, levels: Array, inputs: slice | Ints) -> Array:
        """Return contrasts of some inputs, whose levels these are; 0 where there is none."""
        if degree >= self.most:
            return np.zeros(levels.shape)
        if self.uniform:
            return np.asarray(self.tables[degree, self.most][levels])
        return np.asarray(self.tables[degree][self.counts[inputs], levels])

    def column(self, term: Term) -> Floats:
        """Return a term's contrast, or the product of two."""
        value: Floats = np.ones(len(self))
        for degree, k in zip(term[::2], term[1::2], strict=True):
            one = np.array([k])
            value = value * self.contrast(degree, self.levels(one), one)[:, 0]
        return value


def design_of(problem: Problem) -> Design:
    """Return four even levels from bound to bound; all levels of choices and of few numbers."""
    low, high = problem.lower, problem.upper
    p = problem.n_coords
    if not low.size or not np.isfinite(high - low).all():
        raise ValueError(
            "bounds must be finite to screen inputs: give the range over which each may vary"
        )
    counts = np.where(high > low, LEVELS, 1)
    steps = np.linspace(0.0, 1.0, LEVELS)
    places = low[:, None] + (high - low)[:, None] * steps
    if problem.space is None:
        return Design(np.clip(places, low[:, None], high[:, None]), counts)
    grid = problem.space.grid
    whole = grid.discrete & (grid.n_levels <= np.where(grid.categorical, CHOICES, LEVELS))
    counts = np.where(whole, grid.n_levels, counts)
    wide = np.zeros((p, max(int(counts.max()), LEVELS)))
    wide[:, :LEVELS] = grid.snapped(places.T).T
    for level in range(wide.shape[1]):
        centres = grid.centres(np.minimum(level, np.maximum(grid.n_levels - 1, 0)))
        wide[whole, level] = centres[whole]
    return Design(wide, counts)
