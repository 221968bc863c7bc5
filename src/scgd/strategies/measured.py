"""What was measured at each point of a grid in the unit cube; equal points are one."""

from __future__ import annotations

import numpy as np

from scgd.problem import Problem
from scgd.spaces import Grid
from scgd.spaces.grid import LARGEST_LIST
from scgd.strategies.asks import Asking, Report
from scgd.strategies.budget import Budget
from scgd.typing import Array, Floats, Ints

REACH = 4.0
"""Where there are no bounds: how many units of the scale around x0 the cube covers, as a scale
derived from bounds is a quarter of their distance."""

MOST = LARGEST_LIST + 1000
"""Points that are remembered: all of a grid that can be listed, and others for some generations."""


class Measured:
    """Points of the cube, each once, and the values observed there.

    A space has its own cube; else bounds are the faces of the cube, and without bounds it lies
    around x0.

    Parameters
    ----------
    problem
        Where to search; what is ``known`` of it is taken in.

    Attributes
    ----------
    grid
        The cube, with the levels of whole numbers and choices.
    seen, means
        The values at each point, and their mean (infinite where all failed).
    noisy
        Whether values at one point differ; None where nobody has asked.
    best
        The point with the lowest mean, the latest of equal ones; -1 where there is none.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        lower, upper = problem.x0 - REACH * problem.unit, problem.x0 + REACH * problem.unit
        if problem.lower.size:
            lower = np.where(np.isfinite(problem.lower), problem.lower, lower)
            upper = np.where(np.isfinite(problem.upper), problem.upper, upper)
        self.lower, self.width = lower, upper - lower
        start = self.units(problem.x0)
        self.grid = problem.space.grid if problem.space else Grid.continuous(start)
        self.buffer = np.empty((64, problem.n_coords))  # doubles when it is full
        self.index: dict[bytes, int] = {}
        self.seen: list[list[float]] = []
        self.means: list[float] = []
        self.best = -1
        self.noisy: bool | None = True if problem.sampled or problem.noise else None
        if problem.noise == 0 and not problem.sampled:
            self.noisy = False
        self.n_known = 0
        self.learn()

    def learn(self) -> None:
        """Take in what has become known of the problem without being asked for."""
        known = self.problem.known
        for x, value in zip(
            known.points[self.n_known :], known.values[self.n_known :], strict=True
        ):
            self.note(self.grid.canonical(np.clip(self.units(x), 0.0, 1.0)[None])[0], value)
        self.n_known = len(known)

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.means)

    @property
    def points(self) -> Floats:
        """The points, one per row."""
        return self.buffer[: len(self.means)]

    @property
    def finite(self) -> Floats:
        """The means of points that have a value; 0 where none has."""
        means = np.array(self.means)
        return means[np.isfinite(means)] if np.isfinite(means).any() else np.zeros(1)

    def units(self, x: Floats) -> Floats:
        """Return points of the cube."""
        return np.asarray((x - self.lower) / np.where(self.width > 0, self.width, 1.0))

    def x(self, points: Floats) -> Floats:
        """Return points as the problem has them."""
        start = self.problem.x0  # exactly, whatever rounding says
        return self.problem.clipped(
            np.where(points == self.units(start), start, self.lower + points * self.width)
        )

    def new(self, points: Floats) -> Floats:
        """Return the points worth an evaluation: of a noisy function all, else new ones."""
        if self.noisy:
            return points
        return points[[point.tobytes() not in self.index for point in points]]

    def anything(self, rng: np.random.Generator) -> Floats | None:
        """Return a random point worth an evaluation; None where all of a small grid are known."""
        known = self.grid.all_points
        points = known if len(known) else self.grid.canonical(rng.random((64, self.grid.n_coords)))
        points = self.new(points)
        return points[rng.integers(len(points))] if len(points) else None

    def evaluate(self, points: Floats, *, common: bool = False) -> Asking:
        """Evaluate points, each with a sample of its own or on a common one; return the values."""
        self.learn()
        x = self.x(points)
        values: Floats = (yield x) if common else (yield x[:, None, :]).ravel()
        for point, value in zip(points, values.tolist(), strict=True):
            self.note(point, value)
        return values

    def note(self, point: Floats, value: float) -> None:
        """Take a value, NaN for an evaluation that failed."""
        row = self.index.setdefault(point.tobytes(), len(self))
        if row == len(self):
            if row == len(self.buffer):
                self.buffer = np.concatenate([self.buffer, np.empty_like(self.buffer)])
            self.buffer[row] = point
            self.means.append(np.inf)
            self.seen.append([])
        if not np.isfinite(value):
            return
        seen = self.seen[row]
        if self.noisy is None and seen:
            self.noisy = value != seen[0]
        seen.append(value)
        self.means[row] = sum(seen) / len(seen)
        if row == self.best:  # it may have risen
            self.best = int(np.argmin(self.means))
        elif self.best < 0 or self.means[row] <= self.means[self.best]:
            self.best = row

    def forget(self, row: int) -> int:
        """Forget the worse half of many points, but none of one; return the row where it is now.

        What is asked twice lies near good points, so memory need not grow.
        """
        if len(self) <= MOST:
            return row
        order: Ints = np.argsort(self.means, kind="stable")
        kept = np.union1d(order[: MOST // 2], [max(row, 0), max(self.best, 0)])
        points = self.points[kept]
        self.seen, self.means = [self.seen[k] for k in kept], [self.means[k] for k in kept]
        self.buffer[: len(kept)] = points
        self.index = {point.tobytes(): k for k, point in enumerate(points)}
        row, self.best = (int(np.searchsorted(kept, k)) if k >= 0 else k for k in (row, self.best))
        return row

    def leading(self, n: int, which: Array | None = None) -> Floats:
        """Return the best points, of some."""
        means = np.where(True if which is None else which, self.means, np.inf)
        rows: Ints = np.argsort(means, kind="stable")[:n]
        return self.points[rows[np.isfinite(means[rows])]]

    def open(self, budget: Budget, rng: np.random.Generator) -> Asking:
        """Evaluate the start and a Latin hypercube, in a tenth of the budget (8 to 3 D)."""
        d = self.grid.n_coords
        n = int(np.clip(budget.total / 10, 8, max(8, 3 * d))) - len(self)
        start = self.new(self.grid.start[None])
        if self.noisy is None:
            yield Report(deterministic=True)  # until two values at one point differ
        if len(start) and not np.isfinite(self.means).any():
            yield from self.evaluate(start)
        order = np.argsort(rng.random((max(n - 1, 0), d)), axis=0)
        points = self.grid.canonical((order + rng.random(order.shape)) / max(n - 1, 1))
        points = self.new(points[np.sort(np.unique(points, axis=0, return_index=True)[1])])
        if len(points := points[: max(budget.left, 0)]):
            yield from self.evaluate(points)

    def test_noise(self) -> Asking:
        """Evaluate the best point again, once, to see whether f is noisy."""
        if self.noisy is None and self.best >= 0:
            yield from self.evaluate(self.points[[self.best]])
            if self.noisy:
                yield Report(deterministic=False)
        self.noisy = bool(self.noisy)

    def recommend(self, row: int) -> Asking:
        """Recommend a point, with all that was seen at it."""
        yield Report(x=self.x(self.points[row]), values=np.array(self.seen[row]))
