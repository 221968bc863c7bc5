"""BFGS on the coordinates that matter, with differences for gradients."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scgd.auto.stage import Question, Stage, joint, singles
from scgd.estimators import Probes, sides
from scgd.problem import Problem
from scgd.typing import Floats, Ints

__all__ = ["ActiveBFGS"]

ARMIJO = 1e-4
MAX_BACKTRACKS = 12


class ActiveBFGS(Stage):
    r"""Quasi-Newton steps in the subspace of the active coordinates.

    Gradients are forward differences with a radius near the root of rounding; when a line search
    fails they become central ones with a larger radius, and when that fails too the search has
    ``stalled``. The inverse Hessian starts from the curvatures that the coordinate search saw.
    """

    memory: ClassVar[tuple[str, ...]] = (
        "value", "inverse", "gradient", "before", "step", "direction", "rate", "n_tries", "central",
        "stalled", "cap", "line", "entries", "n_points",
    )  # fmt: skip

    def __init__(
        self, theta: Floats, length: Floats, active: Ints, bend: Floats, error: float
    ) -> None:
        self.theta, self.active, self.error = theta, active, error
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
        self.n_points = len(active)

    def _fresh(self) -> Floats:
        floor = 1e-6 * float(np.max(self.bend, initial=0.0))
        return np.diag(1 / np.maximum(self.bend, floor if floor > 0 else 1.0))

    def restart(self, value: float) -> None:
        """Begin again at a point that others may have moved."""
        self.value, self.before = value, np.empty(0)
        if self.stalled:
            self.inverse, self.stalled, self.central = self._fresh(), False, False
        self._ask_gradient()

    def _ask_gradient(self) -> None:
        self.line = False
        self.n_points = len(self.active) * (2 if self.central else 1)

    def probe(self, theta: Floats, problem: Problem, rng: np.random.Generator) -> Probes:
        """Return the points of a gradient or the next point of a line search."""
        if self.line:
            entries = (theta[self.active] + self.rate * self.direction)[None]
            probes = joint(theta, self.active, entries, problem)
            self.entries = probes.entries[0]
            return probes
        question = self.question(theta, problem, rng)
        assert question is not None
        return singles(theta, np.array(question[0]), np.array(question[1]))

    def question(self, theta: Floats, problem: Problem, rng: np.random.Generator) -> Question:
        """Return the points of a gradient."""
        if self.line:
            return None
        radii = self._radii(theta[self.active])
        bounded = problem.lower.size > 0
        pairs = np.empty((len(self.active), 2))
        for i, k in enumerate(self.active):
            low, high = (problem.lower[k], problem.upper[k]) if bounded else (-np.inf, np.inf)
            pairs[i] = sides(self.central, theta[k], radii[i], low, high)
        self.entries = pairs
        if self.central:
            return np.repeat(self.active, 2).tolist(), pairs.ravel().tolist()
        return self.active.tolist(), pairs[:, 1].tolist()

    @property
    def draws(self) -> bool:
        """Nothing here is random."""
        return False

    def _radii(self, here: Floats) -> Floats:
        size = np.maximum(np.abs(here), self.length)
        radii = (1e-5 if self.central else 1e-7) * size
        if self.error > 1e-12 * abs(self.value):
            visible = np.sqrt(self.error / np.maximum(self.bend, 1e-300))
            wide = np.minimum((4 if self.central else 2) * visible, self.length)
            radii = np.maximum(radii, wide)
        return radii

    def learn(self, values: Floats | None) -> None:
        """Take a gradient or a value on the line."""
        if self.line:
            self._judge(float("inf") if values is None else float(values[0]))
        elif values is None:
            self._fail()
        else:
            self._turn(values)

    def _turn(self, values: Floats) -> None:
        """Update the inverse Hessian and start a line search."""
        if self.central:
            widths, rises = self.entries[:, 1] - self.entries[:, 0], values[1::2] - values[::2]
        else:
            widths, rises = self.entries[:, 1] - self.entries[:, 0], values - self.value
        gradient = np.divide(rises, widths, out=np.zeros_like(rises), where=widths != 0)
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
        self.n_tries, self.line, self.n_points = 0, True, 1

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
        self.step = new - self.theta[self.active]
        if self.n_tries == 0 and self.rate < 1:
            self.cap *= 4
        hardly = self.value - value < 1e-15 * abs(self.value)
        self.theta[self.active], self.value = new, value
        self.before = self.gradient
        if hardly and not self.central:
            self.central, self.before = True, np.empty(0)
        self._ask_gradient()

    def _fail(self) -> None:
        if self.central:
            self.stalled = True
        self.central, self.before = True, np.empty(0)
        self._ask_gradient()
