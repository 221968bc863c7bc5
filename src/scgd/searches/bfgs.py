"""BFGS on the coordinates that matter, with differences for gradients."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scgd.estimators import fill_sides, quotient
from scgd.problem import Problem
from scgd.questions import Point, Question, joint, single
from scgd.searches.base import Search, Standing
from scgd.searches.leash import Leash
from scgd.typing import Floats, Ints

__all__ = ["ActiveBFGS"]

ARMIJO = 1e-4
MAX_BACKTRACKS = 12


class ActiveBFGS(Search):
    r"""Quasi-Newton steps in the subspace of the active coordinates.

    Gradients are forward differences with a radius near the root of rounding; when a line search
    fails they become central ones with a larger radius, and when that fails too the search has
    ``stalled``. The inverse Hessian starts from the curvatures that the coordinate search saw.

    Parameters
    ----------
    problem, point
        What is known, and where to begin.
    length
        Per coordinate, the length in which x is measured.
    active
        The coordinates that move.
    bend
        Curvatures of the active coordinates in units of ``length``, as far as they are known.
    error
        Rounding error of a value.
    leash
        How far steps may go (default: as the problem says).
    """

    name: ClassVar[str] = "bfgs"
    memory: ClassVar[tuple[str, ...]] = (
        "value", "inverse", "gradient", "before", "step", "direction", "rate", "n_tries", "central",
        "stalled", "cap", "line", "entries", "leash",
    )  # fmt: skip

    def __init__(
        self,
        problem: Problem,
        point: Point,
        length: Floats,
        active: Ints,
        bend: Floats,
        error: float,
        leash: Leash | None = None,
    ) -> None:
        super().__init__(point)
        self.leash = leash or Leash(problem)
        self.problem, self.support, self.error = problem, active, error
        self.length, self.bend = length[active], np.abs(bend)
        self.value = float("nan")
        self.cap = 10.0
        self.stalled = self.central = self.line = False
        self.rate = 1.0
        self.n_tries = 0
        self.inverse = self._fresh()
        empty = np.empty(0)
        self.gradient, self.before, self.step, self.direction = empty, empty, empty, empty
        self.entries: Floats = empty

    @property
    def cost(self) -> int:
        """Evaluations of the next question."""
        return 1 if self.line else len(self.support) * (2 if self.central else 1)

    def _fresh(self) -> Floats:
        floor = 1e-6 * float(np.max(self.bend, initial=0.0))
        return np.diag(1 / np.maximum(self.bend, floor if floor > 0 else 1.0))

    def restart(self, value: float) -> None:
        """Begin again at a point that others may have moved."""
        self.value, self.before = value, np.empty(0)
        if self.stalled:
            self.inverse, self.stalled, self.central = self._fresh(), False, False
        self.line = False

    def ask(self) -> Question:
        """Return the points of a gradient or the next point of a line search."""
        x, active, problem = self.point.x, self.support, self.problem
        if self.line:
            self.entries = self.leash.clip(active, x[active] + self.rate * self.direction)
            return joint(self.point, active, self.entries[None], far=True)
        self.entries = np.empty((len(active), 2))
        downs, ups = self.entries.T
        radii = self._radii(x[active])
        fill_sides(self.central, x, active, radii, problem.lower, problem.upper, downs, ups)
        if self.central:
            return single(self.point, np.repeat(active, 2), self.entries.ravel(), far=True)
        return single(self.point, active, ups.copy(), far=True)

    def _radii(self, here: Floats) -> Floats:
        size = np.maximum(np.abs(here), self.length)
        radii = (1e-5 if self.central else 1e-7) * size
        if self.error > 1e-12 * abs(self.value):
            visible = np.sqrt(self.error / np.maximum(self.bend, 1e-300))
            wide = np.minimum((4 if self.central else 2) * visible, self.length)
            radii = np.maximum(radii, wide)
        return radii

    def tell(self, question: Question, values: Floats) -> None:
        """Take a gradient or a value on the line."""
        if self.line:
            self._judge(float("inf") if np.isnan(values[0]) else float(values[0]))
        else:
            self._turn(values)

    def _turn(self, values: Floats) -> None:
        """Update the inverse Hessian and start a line search; lost values count as no slope."""
        rises = values[1::2] - values[::2] if self.central else values - self.value
        gradient = quotient(np.nan_to_num(rises, nan=0.0), self.entries[:, 1] - self.entries[:, 0])
        if not np.isfinite(rises).any():
            self._fail()
            return
        if self.before.size:
            self._update(self.step, gradient - self.before)
        self.gradient = gradient
        self.direction = -self.inverse @ gradient
        if not self.direction @ gradient < 0:
            self.inverse = self._fresh()
            self.direction = -self.inverse @ gradient
        farthest = float(np.max(np.abs(self.direction) / self.length))
        if not 0 < farthest < np.inf:
            self._fail()
            return
        self.rate = min(1.0, self.cap / farthest)
        self.n_tries, self.line = 0, True

    def _update(self, step: Floats, change: Floats) -> None:
        along = float(step @ change)
        if not along > 1e-18 * float(change @ change):
            return
        bent = self.inverse @ change
        scale = (1 + float(change @ bent) / along) / along
        self.inverse += scale * np.outer(step, step)
        cross = np.outer(step, bent) / along
        self.inverse -= cross + cross.T

    def _judge(self, value: float) -> None:
        """Accept a point on the line, or try a nearer one."""
        fall = float(self.gradient @ self.direction)
        if value <= self.value + ARMIJO * self.rate * fall and value < self.value:
            self._accept(value)
            return
        self.n_tries += 1
        if self.n_tries > MAX_BACKTRACKS:
            self._fail()
            return
        excess = value - self.value - self.rate * fall
        shorter = -fall * self.rate / (2 * excess) if 0 < excess < np.inf else 0.1
        self.rate *= float(np.clip(shorter, 0.1, 0.5))

    def _accept(self, value: float) -> None:
        new = self.entries
        self.step = new - self.point.x[self.support]
        if self.n_tries == 0 and self.rate < 1:
            self.cap *= 4
        hardly = self.value - value < 1e-15 * abs(self.value)
        self.leash.moved(self.support, new)
        self.point.move(self.support, new)
        self.value = value
        self.before = self.gradient
        if hardly and not self.central:
            self.central, self.before = True, np.empty(0)
        self.line = False

    def _fail(self) -> None:
        if self.central:
            self.stalled = True
        self.central, self.before = True, np.empty(0)
        self.line = False

    @property
    def standing(self) -> Standing:
        """The point and f there."""
        return Standing(self.point.x, np.array([self.value]), exact=True)

    @property
    def level(self) -> float:
        """F at the point."""
        return self.value
