r"""Squares with an l1 penalty, few dense columns: the products of columns say it all.

With :math:`G = \sum_i s_i \tilde x_i \tilde x_i^\top` and :math:`c = \sum_i s_i \tilde x_i
\tilde y_i` (centred where there is an intercept) the risk is :math:`\frac12 w^\top G w - c^\top w +
\frac12 \|\tilde y\|^2`, and neither sweeps nor certificates read the data again. One
:class:`Gram` serves a whole path of penalties.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg

from scgd.compiling import njit
from scgd.linear.certificate import Best
from scgd.linear.data import REASSOCIATE
from scgd.linear.leap import settle
from scgd.linear.newton import factored
from scgd.linear.task import Fit, Task
from scgd.typing import Floats

ROUNDS, SWEEPS = 2, 10
"""Rounds of sweeps over the coefficients in use, and sweeps of a round, before Newton steps."""
MOST_SETTLINGS = 100


class Gram:
    """The products of columns with each other and with the targets."""

    def __init__(self, task: Task) -> None:
        design, shares, y = task.design, task.shares, task.y
        self.means, self.mean = np.zeros(design.n_features), 0.0
        if task.intercept:
            self.means, self.mean = design.correlations(shares), float(shares @ y)
        y = y - self.mean
        upper = design.gram(shares)
        matrix = np.triu(upper) + np.triu(upper, 1).T
        diagonal = matrix.diagonal().copy()
        matrix -= np.outer(self.means, self.means)
        flat = matrix.diagonal() <= 1e-14 * diagonal  # constant columns
        matrix[flat], matrix[:, flat] = 0.0, 0.0
        self.matrix = np.ascontiguousarray(matrix)
        self.products = design.correlations(shares * y)
        self.products[flat] = 0.0
        self.square = float(shares @ (y * y))

    def ridge(self, l2: float) -> Floats:
        """Return the coefficients without an l1 penalty."""
        matrix = np.asfortranarray(self.matrix)
        matrix[np.diag_indices_from(matrix)] += l2
        factor = factored(matrix)
        w = np.asarray(linalg.cho_solve(factor, self.products, check_finite=False))
        rest = self.products - self.matrix @ w - l2 * w
        w += np.asarray(linalg.cho_solve(factor, rest, check_finite=False))
        return w

    def solve(self, l2: float, l1: float, limit: float, w: Floats) -> tuple[Floats, float, int]:
        """Return coefficients, a lower bound and the rounds made, starting from ``w``."""
        w, n_rounds = w.copy(), 0
        slope = self.matrix @ w - self.products
        lower = -np.inf
        for _ in range(MOST_SETTLINGS):
            value, bound, n = rounds(
                self.matrix, self.products, self.square, l2, l1, limit, w, slope, ROUNDS, SWEEPS
            )
            n_rounds, lower = n_rounds + n, max(lower, bound)
            if value - lower <= limit:
                break
            sizes = np.where(w != 0.0, np.inf, np.abs(slope))
            used = np.flatnonzero(sizes >= l1)
            part = self.matrix[np.ix_(used, used)]
            part[np.diag_indices_from(part)] += l2
            here, before = w[used], w[used]
            settle(part, slope[used] + l2 * here, here, l1, 1e-6 * limit)
            slope += self.matrix[:, used] @ (here - before)
            w[used] = here
        return w, lower, n_rounds


@njit(cache=True, error_model="numpy", fastmath=REASSOCIATE, nogil=True)
def rounds(gram, products, square, l2, l1, limit, w, slope, most, sweeps):  # type: ignore[no-untyped-def]
    """Sweep over all, then over those in use, until the gap is closed.

    Return the objective, a lower bound and the rounds made.
    ``slope`` is the gradient of the risk at ``w``; both are changed in place.
    """
    p, best = len(w), -np.inf
    for n in range(most + 1):
        dual, largest, fit, length, size = 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(p):
            c = abs(slope[k])
            largest = max(largest, c)
            dual += max(c - l1, 0.0) ** 2
            fit += w[k] * (slope[k] - products[k])
            length += w[k] * products[k]
            size += l1 * abs(w[k]) + 0.5 * l2 * w[k] * w[k]
        rest = square + fit  # the squared residual
        scale = 1.0
        if l2 > 0.0:
            dual /= 2.0 * l2
        else:
            dual = 0.0
            scale = min(1.0, l1 / largest) if largest > 0.0 else 1.0
        lower = -0.5 * scale * scale * rest - scale * (length - square) - dual
        best, value = max(best, lower), 0.5 * rest + size
        if value - best <= limit or n == most:
            return value, best, n
        for t in range(sweeps):
            gain = 0.0
            for k in range(p):
                if (t > 0 and w[k] == 0.0) or gram[k, k] <= 0.0:
                    continue
                bend = gram[k, k] + l2
                goal, cut = w[k] - (slope[k] + l2 * w[k]) / bend, l1 / bend
                goal = max(goal - cut, 0.0) + min(goal + cut, 0.0)
                move = goal - w[k]
                if move != 0.0:
                    w[k] = goal
                    gain += 0.5 * bend * move * move
                    for i in range(p):
                        slope[i] += move * gram[k, i]
            if t > 0 and gain <= 0.01 * limit:
                break
    return value, best, most


def by_gram(task: Task, start: Floats | None = None) -> Fit:
    """Minimise a task of squares by its Gram matrix; its objective is that of the data."""
    gram, best = task.design.kept("gram", task, Gram), Best(task)
    if task.l1 == 0.0:
        w, n_rounds = gram.ridge(task.l2), 1
        best.look(w, gram.mean - float(gram.means @ w))
        return best.fit(1, best.closed)
    w = np.zeros(task.design.n_features) if start is None else start
    w, lower, n_rounds = gram.solve(task.l2, task.l1, 0.5 * task.limit, w)
    best.lower = lower - task.rounding
    best.offer(-np.inf, w, gram.mean - float(gram.means @ w))
    found = best.fit(max(1, n_rounds), True)  # which computes the objective from the data
    return replace(found, converged=best.closed)
