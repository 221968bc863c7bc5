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
from scgd.linear.task import Task
from scgd.typing import Floats

__all__ = ["balanced", "dual_value", "gap_at"]


def balanced(task: Task, u: Floats) -> Floats:
    """Return weighted slopes whose sum is zero where there is an intercept."""
    if not task.intercept:
        return u
    up, down = float(u[u > 0].sum()), -float(u[u < 0].sum())
    if up == down:
        return u
    if up > down:
        return np.where(u > 0, u * (down / up), u)
    return np.where(u < 0, u * (up / down), u)


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
    held = task.shares > 0
    slopes = u[held] / task.shares[held]
    values = conjugate(task.loss, slopes, task.y[held], task.epsilon)
    return -float(task.shares[held] @ values) - dual_penalty


def gap_at(task: Task, w: Floats, b: float) -> float:
    """Return a bound on how far the objective at coefficients is from its minimum."""
    z = task.design.margins(w) + b
    risk, slopes, _ = task.terms(z)
    u = balanced(task, slopes)
    lower = dual_value(task, u, task.design.correlations(u))
    return max(risk + task.penalty(w) - lower, 0.0) + task.rounding
