r"""How far from the minimum: a dual point made from the slopes at the current margins.

For :math:`u_i = s_i r_i` with slopes :math:`r` and, with an intercept, :math:`\sum u_i = 0`,

.. math:: \min P \ge -\sum_i s_i\, \ell^*(r_i) - \Omega^*(-X^\top u), \qquad
          \Omega^*(c) = \sum_j \frac{(|c_j| - \lambda_1)_+^2}{2 \lambda_2}

(without :math:`\lambda_2`, zero where all :math:`|c_j| \le \lambda_1`). Slopes are made to fit by
shrinking those of the heavier sign, then all of them: towards zero the conjugate stays finite.
"""

from __future__ import annotations

import numpy as np

from scgd.linear.samples import conjugate
from scgd.linear.task import Fit, Task
from scgd.typing import Floats


def balanced(task: Task, u: Floats) -> Floats:
    """Return weighted slopes whose sum is zero where there is an intercept."""
    if not task.intercept:
        return u
    above, below = np.maximum(u, 0.0), np.minimum(u, 0.0)
    up, down = float(above.sum()), -float(below.sum())
    if up == down:
        return u
    if up > down:
        return above * (down / up) + below
    return above + below * (up / down)


def dual_value(task: Task, u: Floats, correlations: Floats) -> float:
    """Return a lower bound of the objective.

    Parameters
    ----------
    task
        What is minimised.
    u
        Slopes times shares, :func:`balanced`.
    correlations
        The products of the columns with ``u``.
    """
    sizes = np.abs(correlations)
    largest, dual_penalty = float(sizes.max(initial=0.0)), 0.0
    if task.l2 > 0:
        excess = np.maximum(sizes - task.l1, 0.0)
        dual_penalty = float(excess @ excess) / (2.0 * task.l2)
    elif largest > task.l1:
        if task.l1 == 0.0:
            return -np.inf
        u = u * (task.l1 / largest)
    held, shares = task.held, task.shares[task.held]
    values = conjugate(task.loss, u[held] / shares, task.y[held], task.epsilon)
    return -float(shares @ values) - dual_penalty


class Best:
    """The best point seen and the highest lower bound: what every solver returns.

    It begins with the best constant. A solver offers its first point, those it comes to and the
    bounds it finds; whatever happens on the way, it returns the point of the lowest objective, and
    the gap of that point.

    Parameters
    ----------
    task
        What is minimised.
    """

    def __init__(self, task: Task) -> None:
        self.task, self.lower = task, -np.inf
        self.w = np.zeros(task.design.n_features)
        self.b, self.value = task.null

    def offer(self, value: float, w: Floats, b: float) -> None:
        """Keep a point if it is better than all before."""
        if value < self.value:
            self.value, self.w, self.b = value, w.copy(), float(b)

    def bound(self, u: Floats, correlations: Floats) -> None:
        """Keep the lower bound of balanced slopes if it is higher than all before."""
        self.lower = max(self.lower, dual_value(self.task, u, correlations))

    def look(self, w: Floats, b: float) -> None:
        """Offer a point and bound the minimum by its own slopes, computed from the data."""
        risk, slopes, _ = self.task.terms(self.task.design.margins(w) + b)
        self.offer(risk + self.task.penalty(w), w, b)
        u = balanced(self.task, slopes)
        self.bound(u, self.task.design.correlations(u))

    @property
    def gap(self) -> float:
        """A bound on how far the best point is from the minimum."""
        return max(self.value - self.lower, 0.0) + self.task.rounding

    @property
    def closed(self) -> bool:
        """Whether the gap is as small as the task wants it."""
        return self.gap <= self.task.limit + 2 * self.task.rounding

    def adopt(self, fit: Fit) -> None:
        """Take over what another solver found."""
        self.offer(fit.value, fit.w, fit.b)
        self.lower = max(self.lower, fit.value - fit.gap + self.task.rounding)

    def fit(self, n_passes: int, converged: bool, visits: Floats | None = None) -> Fit:
        """Return the best point, with its objective computed afresh from the data."""
        p = len(self.w)
        value = self.task.objective(self.w, self.b)
        if np.isfinite(value):
            self.value = value
        visits = np.full(p, 1.0 / p) if visits is None else visits
        return Fit(self.w, self.b, n_passes, self.value, self.gap, converged, visits)
