r"""Newton's method without matrices: conjugate gradients on products with the data.

For an l2 penalty and smooth losses, of one margin or one per class. Columns are centred (weighted
means, never written out), so that the intercept decouples, and preconditioned by their squares, or
by a factor of their products where columns are few. A direction :math:`d` solves :math:`H d = -g`
loosely, tighter as the gradient falls (Dembo and Steihaug); squares need one, solved until the gap,
which is :math:`\|g\|^2 / (2 \lambda_2)` where the slopes are balanced, is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg

from scgd.linear.certificate import Best
from scgd.linear.losses import SQUARED
from scgd.linear.newton import factored
from scgd.linear.task import Caution, Fit, Task
from scgd.typing import Floats

ARMIJO = 1e-4
SHORTEST = 2.0**-30
LOOSEST = 0.25
"""The residual that a first direction may leave, as a part of the gradient."""
MOST_STALLS = 3
WIDE = 10
"""Columns per row beyond which their squares say little of the Hessian, which has the rank of X."""
FEW_COLUMNS = 200
"""Columns up to which their products cost less than ten of the data with a vector."""
Bend = Callable[[Floats], Floats]


def newton_cg(
    task: Task, start: Floats | None = None, b: float = 0.0, most_products: float = np.inf
) -> Fit:
    """Minimise from ``start`` and ``b`` with at most so many products with the data."""
    caution, best = Caution(task.loss, task.epsilon), Best(task)

    def look(Z: Floats) -> tuple[float, Floats, Bend, Floats]:
        risk, slopes, curve = task.terms(Z[:, 0])
        curve = caution.apply(curve, task.shares)[:, None]
        return risk, slopes[:, None], lambda T: curve * T, curve

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
        From margins to the risk, its weighted slopes, its Hessian as a function and its diagonal.
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
        self.enough = task.limit
        self.few = not design.sparse and p <= FEW_COLUMNS
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
        risk, U, bend, curve = self.look(self.Z)
        self.value = self.penalised(risk)
        while True:
            grad = self.correlations(U) + task.l2 * self.W
            slope = U.sum(axis=0) * task.intercept
            self.n_products += 1
            gap = float(np.sum(grad**2)) / (2.0 * task.l2)
            if (gap <= self.enough and np.abs(slope).max() <= 1e-3) or stalled:
                if closed():
                    return True
                self.enough *= 0.1  # what the intercepts leave was too much for the certificate
            if self.n_products >= most or stalled >= MOST_STALLS:
                return False
            b = float(self.plain_b[0])
            if task.told(self.n_passes, gap, self.W[:, 0], b):
                return False
            first = min(first, gap) if np.isfinite(first) else gap
            part = min(LOOSEST, (gap / first) ** 0.25) if first > 0 else LOOSEST
            left = most - self.n_products
            V, c, T, decrement = self.direction(grad, slope, bend, curve, part, left)
            before = self.value
            U, bend, curve = self.advance(V, c, T, decrement)
            stalled = stalled + 1 if self.value >= before - 0.1 * task.rounding else 0

    def direction(
        self, grad: Floats, slope: Floats, bend: Bend, curve: Floats, part: float, left: float
    ) -> tuple[Floats, Floats, Floats, float]:
        """Return a direction for coefficients and intercepts, its margins and its decrement."""
        task, l2 = self.task, self.task.l2
        scaled, least = self.preconditioner(curve), 0.0
        if task.intercept:
            least = 1.0 / np.maximum(curve.sum(axis=0), 1e-300)
        V, c, T = np.zeros_like(grad), np.zeros_like(slope), np.zeros_like(self.Z)
        r, q = -grad, -slope
        y, h = scaled(r), least * q
        P, d, size = y, h, float(np.sum(r * y) + np.sum(q * h))
        goal, decrement = part**2 * size, 0.0
        while size > 0.0:
            along = self.margins(P) + d
            R = bend(along)
            step = self.correlations(R) + l2 * P
            rest = R.sum(axis=0) * task.intercept
            self.n_products += 2
            left -= 2
            along_it = float(np.sum(P * step) + np.sum(d * rest))
            if not along_it > 0.0:
                break
            length = size / along_it
            V, c, T = V + length * P, c + length * d, T + length * along
            decrement += length * size
            r, q = r - length * step, q - length * rest
            closed = float(np.sum(r**2)) <= l2 * self.enough
            y, h = scaled(r), least * q
            size, old = float(np.sum(r * y) + np.sum(q * h)), size
            if closed or left <= 0 or (size <= goal and not self.direct):
                break
            P, d = y + (size / old) * P, h + (size / old) * d
        return V, c, T, decrement

    def preconditioner(self, curve: Floats) -> Bend:
        """Return what stands for the inverse of the Hessian, margin by margin."""
        l2, totals, factors = self.task.l2, curve.sum(axis=0), []

        def even(V: Floats) -> Floats:
            """Take out what all classes share, which a softmax does not see."""
            return V - V.mean(axis=1, keepdims=True) if V.shape[1] > 1 else V

        if not self.few:
            scale = 1.0 / (totals * self.squares[:, None] + l2) if self.scaled else 1.0 / l2
            return lambda R: even(np.asarray(scale * R))
        for k, total in enumerate(totals):
            gram = self.task.design.gram(curve[:, k])
            products = self.task.design.correlations(curve[:, k])
            if self.task.intercept:
                gram -= np.outer(products, products / max(total, 1e-300))
            factors.append(factored(gram + l2 * np.eye(len(gram))))

        def solved(R: Floats) -> Floats:
            """Solve margin by margin."""
            pairs = zip(factors, R.T, strict=True)
            parts = [linalg.cho_solve(f, r, check_finite=False) for f, r in pairs]
            return even(np.stack(parts, axis=1))

        return solved

    def advance(
        self, V: Floats, c: Floats, T: Floats, decrement: float
    ) -> tuple[Floats, Bend, Floats]:
        """Halve the step until it decreases enough, or stay."""
        W, Z, b, length, before = self.W, self.Z, self.b, 1.0, self.value
        blurred = decrement <= 1e-11 * abs(before)  # rounding hides whether the value falls
        while True:
            self.W, self.Z, self.b = W + length * V, Z + length * T, b + length * c
            risk, U, bend, curve = self.look(self.Z)
            self.value = self.penalised(risk)
            least = before * (1 + 1e-15) if blurred else before - ARMIJO * length * decrement
            if self.value <= least or length == 0.0:
                break
            length = 0.5 * length if length > SHORTEST else 0.0
        self.caution.learn(length)
        return U, bend, curve
