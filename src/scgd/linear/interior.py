r"""The plain hinge with an l2 penalty as a quadratic program, by an interior point method.

.. math:: \min \sum_i s_i \xi_i + \tfrac{\lambda_2}{2} \|w\|^2, \qquad
          t_i = y_i z_i - 1 + \xi_i \ge 0, \quad \xi_i \ge 0,

with multipliers :math:`\alpha_i` of the first and :math:`\beta_i = s_i - \alpha_i` of the second
inequality. Mehrotra's predictor and corrector (Nocedal and Wright, chapter 16) drive
:math:`\alpha_i t_i` and :math:`\beta_i \xi_i` to zero together; each pair costs one Cholesky factor
of :math:`X^\top D X + \lambda_2` with :math:`D_i = 1 / (t_i / \alpha_i + \xi_i / \beta_i)`. The
multipliers are slopes that the hinge can have: they certify the solution.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import linalg

from scgd.linear.certificate import Best, balanced
from scgd.linear.newton import Descent, factored, weighted_gram
from scgd.linear.task import Fit, Task
from scgd.typing import Floats

STEPS = 20.0
"""Factors that a problem takes, about; hardly any takes more than twice as many."""
MOST_STEPS = 100
BACK = 0.995
"""The part of the way to the boundary that a step may go."""


def interior(task: Task, start: Floats | None = None, b: float = 0.0) -> Fit:
    """Minimise; ``start`` and ``b`` are a point to be better than."""
    best = Best(task)
    if start is not None:
        best.offer(task.objective(start, b), start, b)
    frame = Descent(task, None, 0.0)
    A, ridge, held = frame.A[task.held], frame.ridge, task.held
    y, shares = task.y[held], task.shares[held]
    alpha, slack, short = 0.5 * shares, np.ones(len(y)), np.full(len(y), 2.0)
    slopes, n_steps = np.zeros(len(task.y)), 0
    for n_steps in range(1, min(task.max_passes, MOST_STEPS) + 1):
        beta, z = shares - alpha, A @ frame.theta
        w, b = frame.solution()
        best.offer(float(shares @ np.maximum(1.0 - y * z, 0.0)) + task.penalty(w), w, b)
        slopes[held] = -alpha * y
        u = balanced(task, slopes)
        best.bound(u, task.design.correlations(u))
        if best.closed or task.told(n_steps, best.gap, best.w, best.b):
            break
        D = 1.0 / (slack / alpha + short / beta)
        factor = factored(weighted_gram(A, D) + np.diag(ridge))
        residual = A.T @ (y * alpha) - ridge * frame.theta
        here = (alpha, slack, beta, short)
        at = partial(direction, A, y, factor, D, residual, here, 1.0 - y * z)
        _, rise, d_slack, d_short = at(0.0, 0.0)
        length = longest(alpha, rise, beta, -rise, slack, d_slack, short, d_short)
        there = (alpha + length * rise) @ (slack + length * d_slack)
        there += (beta - length * rise) @ (short + length * d_short)
        now = alpha @ slack + beta @ short
        aim = 0.5 * now / len(y) * (there / now) ** 3
        move, rise, d_slack, d_short = at(aim - rise * d_slack, aim + rise * d_short)
        length = longest(alpha, rise, beta, -rise, slack, d_slack, short, d_short)
        if not length > 1e-10:
            break
        frame.theta = frame.theta + length * move
        alpha, slack = alpha + length * rise, slack + length * d_slack
        short = short + length * d_short
    return best.fit(n_steps, best.closed)


def direction(
    A: Floats, y: Floats, factor: Any, D: Floats, residual: Floats, here: tuple[Floats, ...],
    missing: Floats, c1: Any, c2: Any,
) -> tuple[Floats, ...]:  # fmt: skip
    """Return the moves that bring the products to ``c1`` and ``c2``, to first order."""
    alpha, slack, beta, short = here
    goal = c1 / alpha - c2 / beta + missing
    move = linalg.cho_solve(factor, residual + A.T @ (y * D * goal), check_finite=False)
    rise = D * (goal - y * (A @ move))
    return move, rise, (c1 - slack * rise) / alpha - slack, (c2 + short * rise) / beta - short


def longest(*pairs: Floats) -> float:
    """Return the length, at most 1, of the step that keeps all values above zero."""
    length = 1.0
    for held, move in zip(pairs[::2], pairs[1::2], strict=True):
        down = float(np.max(-move / held, initial=0.0))
        length = min(length, BACK / down) if down > 0.0 else length
    return length
