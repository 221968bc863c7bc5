"""Three points on a coordinate line and the parabola through them."""

from __future__ import annotations

from math import isfinite
from typing import ClassVar

import numpy as np

from scgd.auto.stage import Question, Stage, inside, singles
from scgd.estimators import Probes
from scgd.problem import Problem
from scgd.typing import Floats, Ints

__all__ = ["Parabolas"]

FARTHEST = 1000.0
SMALLEST = 1e-7
MIXING = 0.1
SCAN = 1e-4
COVERED = 1 - 1e-4
MOST = 500
BATCH = 64
WIDE = (-0.5, 1.5)
"""Decades of the length scale over which a search that is stuck looks around."""


class Parabolas(Stage):
    r"""Minimise a deterministic function along one coordinate at a time.

    Values at :math:`x \pm h` give slope and curvature; where that is positive the parabola's
    minimum is tried, and the best point seen is kept, so f never rises. The first pass takes the
    coordinates in random order or, where the budget is short, one forward difference each and then
    the steepest
    ones; after it they are drawn with probability proportional to the root of the decrease they
    brought lately (or may bring), ten per cent uniformly. The radius follows the moves. A search
    that is ``lost`` (stuck in what may be a local minimum) draws wide radii afresh.

    Parameters
    ----------
    theta, length
        The point, moved in place, and the length scale of each coordinate.
    n_scanned
        Coordinates to scan by forward differences; 0 sweeps all with parabolas.

    Attributes
    ----------
    theta, value
        The point, moved in place, and f there.
    slope, bend
        What was last seen of each coordinate; NaN where nothing was.
    """

    memory: ClassVar[tuple[str, ...]] = (
        "value", "radius", "slope", "bend", "gain", "queue", "place", "sides", "values", "trial",
        "n_points", "swept", "scanned", "visited", "lost", "due",
    )  # fmt: skip
    tolerant = True

    def __init__(self, theta: Floats, length: Floats, n_scanned: int = 0) -> None:
        n = theta.size
        self.n_scanned, self.scanned = n_scanned, n_scanned == 0
        self.theta, self.length = theta, length
        self.value = float("nan")
        self.radius: Floats = 0.3 * length
        self.slope, self.bend = np.full(n, np.nan), np.full(n, np.nan)
        self.gain: Floats = np.zeros(n)
        self.visited = np.zeros(n, np.bool_)
        self.queue: Ints = np.empty(0, np.int64)
        self.place = 0
        self.sides = [0.0, 0.0]
        self.values = [0.0, 0.0]
        self.trial = 0.0
        self.n_points = 1
        self.swept = False
        self.lost = False
        self.due = True  # the queue is at its end

    def probe(self, theta: Floats, problem: Problem, rng: np.random.Generator) -> Probes:
        """Return f(x) at the start, then two sides of a coordinate, then the parabola's point."""
        if self.value != self.value:
            return singles(theta, np.array([-1]), np.array([np.nan]))
        question = self.question(theta, problem, rng)
        if question is None:
            self.queue = rng.permutation(theta.size)[: self.n_scanned]
            entries = theta[self.queue] + SCAN * self.length[self.queue]
            if problem.upper.size:
                entries = np.minimum(entries, problem.upper[self.queue])
            return singles(theta, self.queue, entries)
        return singles(theta, np.array(question[0]), np.array(question[1]))

    def question(self, theta: Floats, problem: Problem, rng: np.random.Generator) -> Question:
        """Return two sides of a coordinate, or the parabola's point."""
        if self.value != self.value or not self.scanned:
            return None
        if self.n_points == 1:
            k = self.coordinate
            self.trial = inside(problem, k, self.trial)
            return [k], [self.trial]
        if self.due:
            self._draw(rng)
        k = self.coordinate
        here, h = float(theta[k]), float(self.radius[k])
        self.sides = [inside(problem, k, here - h), inside(problem, k, here + h)]
        return [k, k], self.sides

    @property
    def draws(self) -> bool:
        """Whether the next question draws random numbers."""
        return self.due or not self.scanned

    @property
    def coordinate(self) -> int:
        """The coordinate in hand."""
        return int(self.queue[self.place])

    def _draw(self, rng: np.random.Generator) -> None:
        """Fill the queue; drawn again from the same random numbers, it is the same."""
        n = self.theta.size
        self.place = 0
        if not self.swept:
            self.queue = rng.permutation(n)
            return
        if self.lost:
            self.radius[...] = self.length * 10.0 ** rng.uniform(*WIDE, n)
            self.gain[...] = 0.0
        roots = np.sqrt(self.gain)
        total = float(roots.sum())
        weights = np.full(n, 1.0) if total == 0 else (1 - MIXING) * roots / total + MIXING / n
        edges = np.cumsum(weights)
        throws = rng.random(max(BATCH, int(np.sqrt(n)))) * edges[-1]
        self.queue = np.minimum(np.searchsorted(edges, throws, side="right"), n - 1)

    def learn(self, values: Floats | None) -> None:
        """Take the values at the start, at two sides or at the parabola's minimum."""
        if self.value != self.value:
            self.value = float("inf") if values is None else float(values[0])
            self.n_points = 2 if self.scanned else self.n_scanned
        elif not self.scanned:
            self._scan(values)
        else:
            self.lost = self.lost and not self.due
            self.due = False
            self._learn_coordinate(values)

    def _learn_coordinate(self, values: Floats | None) -> None:
        if values is None and self.n_points == 2:
            self.radius[self.coordinate] *= 0.1
            self._go_on()
        elif values is None:  # the parabola's point: what its sides showed still holds
            self._keep_best(*self._here())
        elif self.n_points == 2:
            self._fit(float(values[0]), float(values[1]))
        else:
            self._keep(float(values[0]))

    def _go_on(self) -> None:
        """Leave the coordinate in hand."""
        self.n_points = 2
        self.place += 1
        self.due = self.place == len(self.queue)
        self.swept = self.swept or self.due

    def _scan(self, values: Floats | None) -> None:
        """Order the scanned coordinates by slope and queue those that hold nearly all of it."""
        self.scanned, self.n_points = True, 2
        if values is None:
            return
        self.due = False
        slopes = (values - self.value) / (SCAN * self.length[self.queue])
        self.slope[self.queue] = slopes
        self.gain[self.queue] = np.abs(slopes) * self.length[self.queue]
        order = np.argsort(-self.gain[self.queue], kind="stable")
        covered = np.cumsum(self.gain[self.queue][order])
        n = int(np.searchsorted(covered, COVERED * covered[-1])) + 1
        self.queue = self.queue[order[: min(max(n, 2), MOST, len(order))]]

    def _fit(self, low: float, high: float) -> None:
        """Put a parabola through the two sides and the value in hand."""
        k = self.coordinate
        here, (down, up) = float(self.theta[k]), self.sides
        left, right = here - down, up - here
        self.values = [low, high]
        if left <= 0 or right <= 0:
            if max(left, right) > 0:  # on a bound: one side tells the slope
                rise = high - self.value if left <= 0 else self.value - low
                self.slope[k] = rise / max(left, right)
                self.bend[k] = 0.0 if np.isnan(self.bend[k]) else self.bend[k]
            self._keep_best(here, self.value)
            return
        first, second = (self.value - low) / left, (high - self.value) / right
        slope = (first * right + second * left) / (left + right)
        bend = 2 * (second - first) / (left + right)
        self.slope[k], self.bend[k] = slope, bend
        if bend > 1e-13 * (abs(self.value) + abs(high)) / (right * right):
            reach = (
                FARTHEST * self.length[k] if not self.swept else max(100 * right, self.length[k])
            )
            self.trial = here + min(max(-slope / bend, -reach), reach)
            self.n_points = 1
        else:
            self._keep_best(here, self.value)

    def _keep(self, value: float) -> None:
        self._keep_best(*((self.trial, value) if value < self.value else self._here()))

    def _here(self) -> tuple[float, float]:
        return float(self.theta[self.coordinate]), self.value

    def _keep_best(self, entry: float, value: float) -> None:
        """Move to the best of the points seen and remember the gain and the move."""
        k, here = self.coordinate, float(self.theta[self.coordinate])
        for side, seen in zip(self.sides, self.values, strict=True):
            if seen < value:
                entry, value = side, seen
        h, first = float(self.radius[k]), not self.visited[k]
        self.visited[k] = True
        new = min(max(abs(entry - here), 0.3 * h), 3 * h)
        if entry in self.sides and entry != here:
            new = 3 * h  # no minimum in between
        self.radius[k] = max(new, SMALLEST * self.length[k])
        gain = self.value - value if isfinite(self.value) else 0.0
        self.gain[k] = gain if first else 0.5 * (self.gain[k] + gain)
        self.theta[k], self.value = entry, value
        self._go_on()
