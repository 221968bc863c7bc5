r"""Dual coordinate ascent over samples, in the order a policy chooses.

The policy takes the place of shrinking: samples whose variables have settled are visited rarely,
none never. With an intercept the method of multipliers holds :math:`\sum_i \alpha_i y_i = 0`. A
pass estimates the duality gap; the exact one, with *b* fitted to the coefficients and the
variables balanced, is computed when the estimate is small.
"""

from __future__ import annotations

import numpy as np

from scgd.linear.ascent import visit_hinge, visit_logistic
from scgd.linear.certificate import Best, balanced
from scgd.linear.losses import HINGE, LOGISTIC, SQUARED_HINGE
from scgd.linear.task import Fit, Task
from scgd.policies import Policy
from scgd.random import stream
from scgd.typing import Array, Floats

LOSSES_WITH_DUAL = (LOGISTIC, HINGE, SQUARED_HINGE)
FIRST_EPS = 1e-2
TRUST = 3.0
"""The exact gap is computed when the estimate is below this many times the limit."""


def ascend(task: Task, policy: Policy, start: Floats | None = None, b: float = 0.0) -> Fit:
    """Maximise the dual from the variables that coefficients and an intercept suggest."""
    ascent = Ascent(task, policy, start, b)
    converged = ascent.run()
    return ascent.best.fit(ascent.n_passes, converged)


class Ascent:
    """The state of an ascent."""

    def __init__(self, task: Task, policy: Policy, start: Floats | None, b: float) -> None:
        self.task, self.policy = task, policy
        n, p = task.design.n_samples, task.design.n_features
        self.rows = unsigned(task.design.rows)
        self.caps = task.shares / task.l2
        self.squares = task.design.row_squares
        self.scale = 0.1 * float(task.shares @ self.squares) if task.intercept else 0.0
        self.squares = self.squares + self.scale
        self.alpha, self.u = np.zeros(n), np.zeros(n)
        self.w, self.b = np.zeros(p), b
        self.eps, self.n_passes, self.best = FIRST_EPS, 0, Best(task)
        self.state = policy.init(n, True)
        self.words = stream(np.random.SeedSequence(task.seed))
        if start is not None:
            self.best.offer(task.objective(start, b), start, b)
            if task.loss != HINGE:
                self.adopt(start)

    def adopt(self, start: Floats) -> None:
        """Begin with the variables that are optimal at the margins of ``start``."""
        task = self.task
        slopes = task.terms(task.design.margins(start) + self.b)[1]
        self.alpha = np.abs(slopes) / task.l2
        if task.loss == LOGISTIC:
            inside = np.clip(self.alpha, 1e-12 * self.caps, (1 - 1e-12) * self.caps)
            self.alpha = inside
            held = self.caps > 0
            self.u[held] = np.log(inside[held] / (self.caps[held] - inside[held]))
        self.w = task.design.correlations(self.alpha * task.y)

    def run(self) -> bool:
        """Make passes until the gap is closed or the passes are used."""
        task, limit = self.task, self.task.limit
        checked = np.inf
        while True:
            estimate = task.l2 * self.visit()
            self.n_passes += 1
            last = self.n_passes >= task.max_passes
            near = estimate <= TRUST * limit and (
                estimate <= 0.7 * checked or self.n_passes % 8 == 0
            )
            if (near and self.n_passes > 1) or last or task.report is not None:
                checked = estimate
                self.certify()
                if self.best.closed:
                    return True
                if task.told(self.n_passes, self.best.gap, self.best.w, self.best.b):
                    return False
            if last:
                return False

    def visit(self) -> float:
        """Visit as many samples as there are; return the estimated gap, in units of C."""
        task, n = self.task, len(self.alpha)
        order, probs, sizes = np.empty(n, np.int64), np.empty(n), np.empty(n)
        self.policy.draw(self.state, self.words, order, probs, 1, True)
        if task.loss == LOGISTIC:
            self.b, gap, n_moves = visit_logistic(
                *self.rows, task.y, self.squares, self.caps, self.alpha, self.u, self.w, self.b,
                self.scale, order, sizes, self.eps,
            )  # fmt: skip
            if n_moves < 0.1 * n:
                self.eps *= 0.1
        else:
            caps, bends = self.caps, np.zeros(n)
            if task.loss == SQUARED_HINGE:
                held = caps > 0
                bends = np.divide(0.5, caps, out=np.full(n, np.inf), where=held)
                caps = np.where(held, np.inf, 0.0)
            self.b, gap, _ = visit_hinge(
                *self.rows, task.y, self.squares, caps, bends, self.alpha, self.w, self.b,
                self.scale, order, sizes,
            )  # fmt: skip
        self.policy.update(self.state, order, probs, sizes, 0.0)
        if task.intercept:
            self.b += self.scale * float(self.alpha @ task.y)
        return float(gap)

    def certify(self) -> None:
        """Compute the exact gap, and keep the best coefficients."""
        task = self.task
        z = task.design.margins(self.w)
        b = best_intercept(task, z, self.b) if task.intercept else 0.0
        value = task.terms(z + b)[0] + task.penalty(self.w)
        u = balanced(task, -task.l2 * self.alpha * task.y)
        correlations = task.design.correlations(u) if task.intercept else -task.l2 * self.w
        self.best.offer(value, self.w, b)
        self.best.bound(u, correlations)


def best_intercept(task: Task, z: Floats, b: float) -> float:
    """Return a better intercept for given products: a few safe Newton steps, or bisection."""
    low, high = -np.inf, np.inf
    for _ in range(30):
        _, slopes, curve = task.terms(z + b)
        slope, bend = float(slopes.sum()), float(curve.sum())
        if abs(slope) <= 1e-10:
            break
        low, high = (b, high) if slope < 0 else (low, b)
        there = b - slope / bend if bend > 0 else b - np.sign(slope)
        b = there if low < there < high else 0.5 * (low + high) if high - low < np.inf else there
    return b


def unsigned(rows: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return rows with unsigned indices."""
    dense, indptr, indices, values = rows
    if indptr is None:
        return rows
    kind = np.uint32 if len(values) < 2**32 else np.uint64
    return dense, indptr.astype(kind), indices.view(np.uint32), values
