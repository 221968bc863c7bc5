"""Random designs in mirrored pairs: each input stands at one of a few levels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scgd.problem import Problem
from scgd.strategies.asks import Asking
from scgd.typing import Array, Floats, Ints

CHUNK = 4_000_000
"""Entries of points or contrasts that are held at a time: 32 MB."""
LEVELS = 4
"""Levels of an input: a cubic's worth, so that what rises, bends or has a step shows."""
CHOICES = 16
"""Options of a choice that are all tried; of more, four."""


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
    """Levels of inputs in pairs, drawn at random, their contrasts, and the values seen.

    Parameters
    ----------
    places
        The levels of each input: a row each, filled up with anything.
    counts
        How many levels each has; 1 for an input that does not move.

    Attributes
    ----------
    values
        Two of each pair; pairs with a failed one are left out.
    n_asked
        Pairs that were asked, those with failures included.
    """

    def __init__(self, places: Floats, counts: Ints) -> None:
        self.places, self.counts = places, counts
        self.most = int(counts.max())
        self.uniform = bool((counts == self.most).all())
        self.rows: list[Array] = []  # packed: a bit per level where there are two
        self.values: list[list[float]] = []
        self.n_asked = 0
        self.tables = np.zeros((self.most, self.most + 1, self.most))
        for n in set(counts.tolist()):
            self.tables[:n, n, :n] = contrasts(n)

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

    def ask(self, problem: Problem, n_pairs: int, rng: np.random.Generator) -> Asking:
        """Ask so many random points with their mirror images, a sample for each pair."""
        due, at_once = self.n_asked + n_pairs, max(1, CHUNK // (2 * self.n_inputs))
        while (n := min(at_once, due - self.n_asked)) > 0:
            drawn = [self.draw(rng) for _ in range(n)]
            pairs = [(one, (self.counts - 1 - one).astype(np.uint8)) for one in drawn]
            points = np.stack([[self.point(one), self.point(other)] for one, other in pairs])
            values = yield from evaluated(problem, points)
            self.n_asked += n
            for levels, pair in zip(drawn, values.tolist(), strict=True):
                if abs(pair[0] - pair[1]) < np.inf:
                    self.add(levels, pair)

    def add(self, levels: Array, values: list[float]) -> None:
        """Note another pair and its values."""
        self.rows.append(np.packbits(levels) if self.most <= 2 else levels)
        self.values.append(values)

    def levels(self, inputs: slice) -> Array:
        """Return the levels of some inputs, a row per pair."""
        if self.most > 2:
            return np.stack([row[inputs] for row in self.rows])
        first, last, _ = inputs.indices(self.n_inputs)
        packed = np.stack([row[first // 8 : (last + 7) // 8] for row in self.rows])
        return np.unpackbits(packed, axis=1)[:, first % 8 : first % 8 + last - first]

    def chunks(self) -> Iterator[slice]:
        """Return slices of the inputs whose contrasts fit into memory."""
        width = max(1, CHUNK // max(len(self.rows), 1))
        for first in range(0, self.n_inputs, width):
            yield slice(first, min(first + width, self.n_inputs))

    def contrast(self, degree: int, levels: Array, inputs: slice) -> Floats:
        """Return contrasts of some inputs, whose levels these are; 0 where there is none."""
        counts = self.most if self.uniform else self.counts[inputs]
        return np.asarray(self.tables[degree][counts, levels])

    def column(self, degree: int, k: int) -> Floats:
        """Return the contrasts of one input."""
        one = slice(k, k + 1)
        return self.contrast(degree, self.levels(one), one)[:, 0]


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


def evaluated(problem: Problem, points: Floats) -> Asking:
    """Evaluate groups of points, each with a sample of its own where there are samples.

    Without them all points are one batch, and evaluated in parallel.
    """
    if problem.sampled:
        return (yield points)
    values = yield points.reshape(-1, points.shape[-1])
    return values.reshape(points.shape[:-1])
