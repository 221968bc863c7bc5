"""Three points on a coordinate line and the parabola through them."""

from __future__ import annotations

from math import isfinite
from typing import ClassVar

import numpy as np

from scgd.estimators import quotient
from scgd.problem import Problem
from scgd.questions import Point, Question, here, single
from scgd.searches.base import Search, Standing
from scgd.searches.leash import Leash
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


class Parabolas(Search):
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
    problem, point
        What is known, and where to start; the point is moved in place.
    rng
        Where the order of coordinates comes from.
    length
        The length scale of each coordinate.
    n_scanned
        Coordinates to scan by forward differences; 0 sweeps all with parabolas.

    Attributes
    ----------
    value
        F at the point.
    slope, bend
        What was last seen of each coordinate; NaN where nothing was.
    """

    name: ClassVar[str] = "parabolas"
    memory: ClassVar[tuple[str, ...]] = (
        "value", "radius", "slope", "bend", "gain", "queue", "place", "sides", "values", "trial",
        "n_points", "swept", "scanned", "visited", "lost", "due", "entries",
        "leash", "rng",
    )  # fmt: skip

    def __init__(
        self,
        problem: Problem,
        point: Point,
        rng: np.random.Generator,
        length: Floats,
        n_scanned: int = 0,
    ) -> None:
        super().__init__(point)
        n = problem.n_coords
        self.problem, self.rng, self.length, self.leash = problem, rng, length, Leash(problem)
        self.n_scanned, self.scanned = n_scanned, n_scanned == 0
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
        self.entries: Floats = np.empty(0)  # where the scan looked

    @property
    def cost(self) -> int:
        """Evaluations of the next question."""
        return self.n_points

    def ask(self) -> Question:
        """Return f(x) at the start, then two sides of a coordinate, then the parabola's point."""
        if self.value != self.value:
            return here(self.point, 1)
        if not self.scanned:
            return self._ask_scan()
        if self.n_points == 1:
            k = self.coordinate
            self.trial = self.leash.inside(k, self.trial)
            return single(self.point, [k], [self.trial], far=True)
        if self.due:
            self._draw()
        k = self.coordinate
        self.sides = self._two_sides(k, float(self.point.x[k]), float(self.radius[k]))
        return single(self.point, [k, k], self.sides, far=True)

    def _two_sides(self, k: int, x: float, h: float) -> list[float]:
        """Return a point on either side or, on a bound, two on the side where there is room."""
        down, up = self.leash.inside(k, x - h), self.leash.inside(k, x + h)
        if down == x:
            down = self.leash.inside(k, x + 0.5 * (up - x))
        elif up == x:
            up = self.leash.inside(k, x - 0.5 * (x - down))
        return [down, up]

    def _ask_scan(self) -> Question:
        """Return a step forward (backward where there is no room) on coordinates at random."""
        self.queue = self.rng.permutation(self.problem.n_coords)[: self.n_scanned]
        here, steps, upper = self.point.x[self.queue], self._scan_steps(), self.problem.upper
        self.entries = here + steps
        if upper.size:
            back = self.entries > upper[self.queue]
            room = np.maximum(here - steps, self.problem.lower[self.queue])
            self.entries = np.where(back, room, self.entries)
        self.entries = self.leash.clip(self.queue, self.entries)
        return single(self.point, self.queue, self.entries, far=True)

    def _scan_steps(self) -> Floats:
        return SCAN * self.length[self.queue]

    @property
    def coordinate(self) -> int:
        """The coordinate in hand."""
        return int(self.queue[self.place])

    def _draw(self) -> None:
        """Fill the queue."""
        n, rng = self.problem.n_coords, self.rng
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

    def tell(self, question: Question, values: Floats) -> None:
        """Take the values at the start, at two sides or at the parabola's minimum."""
        if self.value != self.value:
            self.value = float("inf") if np.isnan(values[0]) else float(values[0])
            self.n_points = 2 if self.scanned else self.n_scanned
        elif not self.scanned:
            self._scan(values)
        else:
            self.lost = self.lost and not self.due
            self.due = False
            self._learn_coordinate(values.tolist())

    def _learn_coordinate(self, values: list[float]) -> None:
        lost = any(value != value for value in values)
        if lost and self.n_points == 2:
            self.radius[self.coordinate] *= 0.1
            self._go_on()
        elif lost:  # the parabola's point: what its sides showed still holds
            self._keep_best(*self._here())
        elif self.n_points == 2:
            self._fit(*values)
        else:
            self._keep(values[0])

    def _go_on(self) -> None:
        """Leave the coordinate in hand."""
        self.n_points = 2
        self.place += 1
        self.due = self.place == len(self.queue)
        self.swept = self.swept or self.due

    def _scan(self, values: Floats) -> None:
        """Order the scanned coordinates by slope and queue those that hold nearly all of it."""
        self.scanned, self.n_points = True, 2
        steps = self.entries - self.point.x[self.queue]
        slopes = quotient(values - self.value, steps)
        slopes[~np.isfinite(slopes)] = 0.0  # lost, or too steep to be told
        if not slopes.any():
            return
        self.due = False
        self.slope[self.queue] = slopes
        self.gain[self.queue] = np.abs(slopes) * self.length[self.queue]
        order = np.argsort(-self.gain[self.queue], kind="stable")
        covered = np.cumsum(self.gain[self.queue][order])
        n = int(np.searchsorted(covered, COVERED * covered[-1])) + 1
        self.queue = self.queue[order[: min(max(n, 2), MOST, len(order))]]

    def _fit(self, low: float, high: float) -> None:
        """Put a parabola through the two sides and the value in hand."""
        k = self.coordinate
        here, (down, up) = float(self.point.x[k]), self.sides
        self.values = [low, high]
        if down == up or down == here or here == up:  # no room: a bound is on top of the point
            self._keep_best(here, self.value)
            return
        first, second = (self.value - low) / (here - down), (high - self.value) / (up - here)
        bend = 2 * (second - first) / (up - down)
        slope = first + bend * (here - down) / 2
        right = max(abs(up - here), abs(here - down))
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
        return float(self.point.x[self.coordinate]), self.value

    def _keep_best(self, entry: float, value: float) -> None:
        """Move to the best of the points seen and remember the gain and the move."""
        k, here = self.coordinate, float(self.point.x[self.coordinate])
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
        if entry != here:
            self.leash.moved(k, entry)
            self.point.move(k, entry)
        self.value = value
        self._go_on()

    @property
    def standing(self) -> Standing:
        """The point and f there."""
        return Standing(self.point.x, np.array([self.value]), exact=True)

    @property
    def level(self) -> float:
        """F at the point."""
        return self.value
