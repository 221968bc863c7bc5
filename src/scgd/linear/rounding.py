r"""The plain hinge by rounding: parabolas at its corner, narrower and narrower.

The slopes of a rounded hinge are slopes that the plain hinge can have, so they certify the plain
problem: the way ends when its own gap is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from scgd.linear.certificate import balanced, dual_value
from scgd.linear.task import Fit, Task
from scgd.typing import Floats

__all__ = ["follow_rounded"]

WIDTHS = 10.0 ** -np.arange(1.0, 9.0)
Solver = Callable[[Task, Floats | None, float], Fit]


def follow_rounded(task: Task, solve: Solver, start: Floats | None, b: float) -> Fit:
    """Solve rounded problems in turn, each from the last one's solution."""
    limit, n_passes, gap = task.limit + 2 * task.rounding, 0, np.inf
    for width in WIDTHS:
        left = task.max_passes - n_passes
        part = replace(task, epsilon=float(width), tol=0.3 * task.tol, max_passes=max(1, left // 2))
        fit = solve(part, start, b)
        start, b, n_passes = fit.w, fit.b, n_passes + fit.n_passes
        gap = min(gap, plain_gap(task, part, fit))
        closed = gap <= limit or (task.l1 == task.l2 == 0.0 and 0.5 * width <= limit)
        if closed or n_passes >= task.max_passes:
            break
    return replace(fit, n_passes=n_passes, gap=gap, converged=bool(closed))


def plain_gap(task: Task, part: Task, fit: Fit) -> float:
    """Return the gap of the plain hinge at the solution of a rounded one."""
    z = task.design.margins(fit.w) + fit.b
    u = balanced(task, part.terms(z)[1])
    value = task.terms(z)[0] + task.penalty(fit.w)
    return max(value - dual_value(task, u, task.design.correlations(u)), 0.0) + task.rounding
