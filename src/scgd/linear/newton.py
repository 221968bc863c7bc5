r"""Newton steps with a Cholesky factor: few features (or few samples), an l2 penalty or none.

Columns are centred (where there is an intercept) and scaled to unit deviation first, which changes
the weights of the penalty and not the objective; steps are halved until they decrease enough.
Squares need one factor. Piecewise parabolas have curvatures that jump; the steps are the same.
Where a factor costs several passes over the data (many features, the logistic loss) it serves some
steps, corrected by what gradients changed in between (L-BFGS, the factor its first guess). With
more features than samples the rows are rotated by the eigenvectors of their products,
:math:`XX^\top = V S V^\top`: the columns of :math:`F = V S^{1/2}` take the place of those of X, and
:math:`w = X^\top V S^{-1/2} v` has the length of :math:`v`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg

from scgd.linear.certificate import Best, balanced
from scgd.linear.losses import LOGISTIC, SQUARED
from scgd.linear.task import Caution, Fit, Task
from scgd.typing import Floats

JITTER = 1e-13
ARMIJO = 1e-4
MOST_HALVINGS = 40
BLOCK_ENTRIES = 1 << 18
ROUNDING = 1e-15
MANY = 200
"""Columns from which on a factor is kept for some steps, ..."""
COLUMNS_PER_PASS = 64
"""... as many as it costs passes over the data: one per so many columns."""


def newton(task: Task, start: Floats | None = None, b: float = 0.0) -> Fit:
    """Minimise by Newton steps from ``start`` and ``b``."""
    descent = Descent(task, start, b)
    n_steps, converged = descent.run()
    descent.best.offer(descent.value, *descent.solution())
    return descent.best.fit(n_steps, converged)


class Frame:
    """Columns centred, scaled and, where that saves columns, rotated: those of a task's data."""

    def __init__(self, task: Task) -> None:
        design = task.design
        X = design.X.toarray() if design.sparse else design.X
        self.means = np.zeros(X.shape[1])
        if task.intercept:
            self.means = design.correlations(task.shares)
        self.constant = np.zeros(X.shape[1], bool)
        self.turn: Callable[[Floats], Floats] | None = None
        flat = 1e-14 * np.abs(self.means)
        if X.shape[1] > X.shape[0]:
            X = X - self.means  # in double precision, as all that follows
            self.constant = np.abs(X).max(axis=0) <= flat
            X, self.turn = rotated(X)
            flat = np.zeros(X.shape[1])
        self.p = p = X.shape[1]
        self.A = np.ones((len(X), p + int(task.intercept)))
        np.subtract(X, self.means if self.turn is None else 0.0, out=self.A[:, :p])
        spread = np.sqrt(np.einsum("ij,ij,i->j", self.A, self.A, task.shares)[:p])
        # A column whose spread is rounding is constant: the intercept has it already.
        self.unit = np.where(spread <= flat, 1.0, spread)
        self.A[:, :p] *= np.where(spread <= flat, 0.0, 1.0 / self.unit)


class Descent:
    """Newton's iteration in the coordinates of a frame, which the fits of a path share."""

    def __init__(self, task: Task, start: Floats | None, b: float) -> None:
        self.task = task
        frame = task.design.kept("frame", task, Frame)
        self.A, self.p, self.unit, self.turn = frame.A, frame.p, frame.unit, frame.turn
        self.means, self.constant, p = frame.means, frame.constant, frame.p
        self.ridge = np.append(task.l2 / self.unit**2, np.zeros(int(task.intercept)))
        self.theta = np.zeros(self.A.shape[1])
        if start is not None and self.turn is None:
            self.theta[:p] = start * self.unit
            b += float(start @ self.means)
        self.theta[p:] = b
        self.z = self.A @ self.theta
        self.best, self.caution = Best(task), Caution(task.loss, task.epsilon)
        if start is not None and self.turn is not None:
            self.best.offer(task.objective(start, b), start, b)
        self.factor: tuple[Floats, bool] | None = None
        self.kept = 0
        if task.loss == LOGISTIC and task.l2 > 0.0 and p >= MANY:
            self.kept = p // COLUMNS_PER_PASS
        self.pairs: list[tuple[Floats, Floats]] = []

    def solution(self) -> tuple[Floats, float]:
        """Return the coefficients and the intercept of the columns as they were."""
        w = self.theta[: self.p] / self.unit
        w = w if self.turn is None else np.where(self.constant, 0.0, self.turn(w))
        return w, float(self.theta[-1] - self.means @ w) if self.task.intercept else 0.0

    def run(self) -> tuple[int, bool]:
        """Take steps until the gap is closed; return their number and whether it is."""
        task, limit = self.task, self.task.limit
        (self.value, u, curve), stalled = self.look(self.z, self.theta), 0
        here = gradient = self.theta
        for n_steps in range(task.max_passes + 1):
            gap = self.certify(self.value, u)
            if gap <= limit + 2 * task.rounding:
                return n_steps, True
            if n_steps == task.max_passes or task.told(n_steps, gap, *self.solution()):
                break
            gradient, old = self.A.T @ u + self.ridge * self.theta, gradient
            if n_steps > 0:
                self.pairs.append((self.theta - here, gradient - old))
            here = self.theta
            direction, decrement = self.solve(curve, gradient)
            if task.l2 == 0.0 and 0.5 * decrement <= limit + task.rounding:
                return n_steps, True
            before = self.value
            length, self.value, u, curve = self.search(self.value, direction, decrement)
            self.caution.learn(length)
            stalled = stalled + 1 if self.value >= before - 0.1 * task.rounding else 0
            if stalled >= 3:  # as near as rounding lets it come
                break
        return n_steps, bool(gap <= limit + 10 * task.rounding)

    def look(self, z: Floats, theta: Floats) -> tuple[float, Floats, Floats]:
        """Return the objective, the weighted slopes and the weighted curvatures."""
        risk, u, curve = self.task.terms(z)
        return risk + 0.5 * float(self.ridge @ theta**2), u, curve

    def solve(self, curve: Floats, gradient: Floats) -> tuple[Floats, float]:
        """Return the Newton direction and the squared decrement."""
        if len(gradient) == 0:  # columns of nothing but zeros leave nothing to move
            return gradient, 0.0
        if self.factor is None or (self.task.loss != SQUARED and len(self.pairs) > self.kept):
            curve = self.caution.apply(curve, self.task.shares)
            self.factor = factored(weighted_gram(self.A, curve) + np.diag(self.ridge))
            self.pairs = []
        direction = -self.corrected(gradient)
        return direction, -float(gradient @ direction)

    def corrected(self, gradient: Floats) -> Floats:
        """Return the inverse of the factor, corrected by the pairs since, times the gradient."""
        pairs = [(s, y, float(s @ y)) for s, y in self.pairs]
        pairs = [(s, y, sy) for s, y, sy in pairs if sy > 0.0]
        left, parts = gradient.copy(), []
        for s, y, sy in reversed(pairs):
            parts.append(float(s @ left) / sy)
            left -= parts[-1] * y
        out = np.asarray(linalg.cho_solve(self.factor, left, check_finite=False))
        for (s, y, sy), part in zip(pairs, reversed(parts), strict=True):
            out += (part - float(y @ out) / sy) * s
        return out

    def search(
        self, value: float, direction: Floats, decrement: float
    ) -> tuple[float, float, Floats, Floats]:
        """Halve the step until it decreases enough; a length of zero says that none does."""
        along, length = self.A @ direction, 1.0
        blurred = decrement <= 1e-11 * abs(value)  # rounding hides whether the value falls
        for _ in range(MOST_HALVINGS):
            z, theta = self.z + length * along, self.theta + length * direction
            found, u, curve = self.look(z, theta)
            least = value * (1 + ROUNDING) if blurred else value - ARMIJO * length * decrement
            if found <= least:
                self.z, self.theta = z, theta
                return length, found, u, curve
            length *= 0.5
        return 0.0, *self.look(self.z, self.theta)

    def certify(self, value: float, u: Floats) -> float:
        """Bound the distance to the minimum."""
        if self.task.l2 > 0.0:
            u = balanced(self.task, u)
            if self.turn is None:
                correlations = (self.A[:, : self.p].T @ u) * self.unit
            else:  # rotated columns leave out what rounding hides
                correlations = self.task.design.correlations(u) - self.means * u.sum()
            self.best.bound(u, correlations)
        return max(value - self.best.lower, 0.0) + self.task.rounding


def rotated(X: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return as many columns as X has rows, with X's products, and what turns coefficients back."""
    squares, V = linalg.eigh(linalg.blas.dsyrk(1.0, X.T, trans=1), lower=False, check_finite=False)
    kept = squares > 1e-14 * squares[-1]
    V, roots = V[:, kept], np.sqrt(squares[kept])
    return V * roots, lambda v: np.asarray(X.T @ (V @ (v / roots)))


def weighted_gram(A: Floats, weights: Floats) -> Floats:
    """Return the upper half of A' diag(weights) A, a block of rows at a time."""
    gram = np.zeros((A.shape[1], A.shape[1]), order="F")
    rows, roots = max(64, BLOCK_ENTRIES // A.shape[1]), np.sqrt(weights)
    for i in range(0, len(A), rows):
        block = (A[i : i + rows] * roots[i : i + rows, None]).T
        gram = linalg.blas.dsyrk(1.0, block, 1.0, gram, overwrite_c=1)
    return gram


def factored(hessian: Floats) -> tuple[Floats, bool]:
    """Return the Cholesky factor of a matrix whose diagonal is lifted as far as it takes."""
    diagonal = np.diag_indices_from(hessian)
    lift = JITTER
    while True:
        hessian[diagonal] = hessian[diagonal] * (1.0 + lift) + 1e-300
        try:
            return linalg.cholesky(hessian, check_finite=False), False
        except linalg.LinAlgError:
            lift *= 100.0
