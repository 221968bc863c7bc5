r"""Newton's method without matrices: conjugate gradients on products with the data.

For an l2 penalty and smooth losses, of one margin or one per class. Columns are centred (weighted
means, never written out), so that the intercept decouples, and preconditioned by their squares. A
direction :math:`d` solves :math:`H d = -g` loosely, tighter as the gradient falls (Dembo and
Steihaug); squares need one, solved until the gap, which is :math:`\|g\|^2 / (2 \lambda_2)` where
the slopes are balanced, is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scgd.linear.certificate import Best
from scgd.linear.losses import SQUARED
from scgd.linear.task import Caution, Fit, Task
from scgd.typing import Floats

__all__ = ["Descent", "newton_cg"]

ARMIJO = 1e-4
SHORTEST = 2.0**-30
LOOSEST = 0.25
"""The residual that a first direction may leave, as a part of the gradient."""
MOST_STALLS = 3
WIDE = 10
"""Columns per row from which on their squares say little of the Hessian: few of their directions are in the rows."""
Bend = Callable[[Floats], Floats]


def newton_cg(
    task: Task, start: Floats | None = None, b: float = 0.0, most_products: float = np.inf
) -> Fit:
    """Minimise from ``start`` and ``b`` with at most so many products with the data."""
    caution, best = Caution(task.loss, task.epsilon), Best(task)

    def look(Z: Floats) -> tuple[float, Floats, Bend, float]:
        risk, slopes, curve = task.terms(Z[:, 0])
        curve = caution.apply(curve, task.shares)
        return risk, slopes[:, None], lambda T: curve[:, None] * T, float(curve.sum())

    W = None if start is None else start[:, None]
    descent = Descent(task, look, W, np.array([task.null[0] if start is None else b]))
    descent.caution = caution

    def closed() -> bool:
        best.look(descent.W[:, 0], float(descent.plain_b[0]))
        return best.closed

    converged = descent.run(closed, most_products)
    best.offer(descent.value, descent.W[:, 0], float(descent.plain_b[0]))
    return best.fit(descent.n_passes, converged)


class Descent:
    """The iteration; ``W`` has a column per margin, ``b`` belongs to centred columns.

    Parameters
    ----------
    task
        Data, shares, penalty and limits.
    look
        From margins to the risk, its weighted slopes, its Hessian as a function and its curvature.
    W, b
        First coefficients and intercepts.
    """

    def __init__(self, task: Task, look: Callable[[Floats], Any], W: Any, b: Floats) -> None:
        self.task, self.look = task, look
        design, p = task.design, task.design.n_features
        self.means = np.zeros(p)
        if task.intercept:
            self.means = design.correlations(task.shares)
        squares = design.squares(task.shares)
        self.squares = np.maximum(squares - self.means**2, 1e-14 * squares)
        self.W = np.zeros((p, len(b))) if W is None else np.array(W)
        self.b = (b + self.means @ self.W) * task.intercept
        self.Z = np.broadcast_to(self.b, (design.n_samples, len(b)))
        if self.W.any():
            self.Z = self.margins(self.W) + self.b
        self.n_products, self.caution, self.value = 2, Caution(SQUARED, 0.0), np.inf
        self.direct, self.scaled = task.loss == SQUARED, p <= WIDE * design.n_samples

    @property
    def plain_b(self) -> Floats:
        """The intercepts of columns that are not centred."""
        return self.b - self.means @ self.W if self.task.intercept else self.b

    @property
    def n_passes(self) -> int:
        """Passes over the data, of two products each."""
        return max(1, self.n_products // 2)

    def margins(self, V: Floats) -> Floats:
        """Return the products of centred rows."""
        return np.asarray(self.task.design.margins(V) - self.means @ V)

    def correlations(self, U: Floats) -> Floats:
        """Return the products of centred columns."""
        out = self.task.design.correlations(U)
        return out - np.outer(self.means, U.sum(axis=0)) if self.task.intercept else out

    def penalised(self, risk: float) -> float:
        """Return the objective of a risk at the coefficients."""
        return risk + 0.5 * self.task.l2 * float(np.sum(self.W**2))

    def run(self, closed: Callable[[], bool], most_products: float) -> bool:
        """Take steps until the gap is closed or the products are used."""
        task, first, stalled = self.task, np.inf, 0
        most = min(most_products, 2.0 * task.max_passes)
        risk, U, bend, total = self.look(self.Z)
        self.value = self.penalised(risk)
        while True:
            grad = self.correlations(U) + task.l2 * self.W
            slope = U.sum(axis=0) * task.intercept
            self.n_products += 1
            gap = float(np.sum(grad**2)) / (2.0 * task.l2)
            if (gap <= task.limit and np.abs(slope).max() <= 1e-3) or stalled:
                if closed():
                    return True
            if self.n_products >= most or stalled >= MOST_STALLS:
                return False
            b = float(self.plain_b[0])
            if task.told(self.n_passes, gap, self.W[:, 0], b):
                return False
            first = min(first, gap) if np.isfinite(first) else gap
            part = min(LOOSEST, (gap / first) ** 0.25) if first > 0 else LOOSEST
            left = most - self.n_products
            V, c, T, decrement = self.direction(grad, slope, bend, total, part, left)
            before = self.value
            U, bend, total = self.advance(V, c, T, decrement)
            stalled = stalled + 1 if self.value >= before - 0.1 * task.rounding else 0

    def direction(
        self, grad: Floats, slope: Floats, bend: Bend, total: float, part: float, left: float
    ) -> tuple[Floats, Floats, Floats, float]:
        """Return a direction for coefficients and intercepts, its margins and its decrement."""
        task, l2 = self.task, self.task.l2
        scale = 1.0 / (total * self.squares + l2)[:, None] if self.scaled else 1.0 / l2
        least = 1.0 / max(total, 1e-300) if task.intercept else 0.0
        V, c, T = np.zeros_like(grad), np.zeros_like(slope), np.zeros_like(self.Z)
        r, q = -grad, -slope
        y, h = scale * r, least * q
        P, d, size = y, h, float(np.sum(r * y) + np.sum(q * h))
        goal, decrement = part**2 * size, 0.0
        while size > 0.0:
            along = self.margins(P) + d
            R = bend(along)
            step = self.correlations(R) + l2 * P
            rest = R.sum(axis=0) * task.intercept
            self.n_products += 2
            left -= 2
            curve = float(np.sum(P * step) + np.sum(d * rest))
            if not curve > 0.0:
                break
            length = size / curve
            V, c, T = V + length * P, c + length * d, T + length * along
            decrement += length * size
            r, q = r - length * step, q - length * rest
            closed = float(np.sum(r**2)) <= l2 * task.limit
            y, h = scale * r, least * q
            size, old = float(np.sum(r * y) + np.sum(q * h)), size
            if closed or left <= 0 or (size <= goal and not self.direct):
                break
            P, d = y + (size / old) * P, h + (size / old) * d
        return V, c, T, decrement

    def advance(
        self, V: Floats, c: Floats, T: Floats, decrement: float
    ) -> tuple[Floats, Bend, float]:
        """Halve the step until it decreases enough, or stay."""
        W, Z, b, length, before = self.W, self.Z, self.b, 1.0, self.value
        blurred = decrement <= 1e-11 * abs(before)  # rounding hides whether the value falls
        while True:
            self.W, self.Z, self.b = W + length * V, Z + length * T, b + length * c
            risk, U, bend, total = self.look(self.Z)
            self.value = self.penalised(risk)
            least = before * (1 + 1e-15) if blurred else before - ARMIJO * length * decrement
            if self.value <= least or length == 0.0:
                break
            length = 0.5 * length if length > SHORTEST else 0.0
        self.caution.learn(length)
        return U, bend, total
