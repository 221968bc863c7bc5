r"""The plain hinge by rounding: parabolas at its corner, narrower and narrower.

The slopes of a rounded hinge are slopes that the plain hinge can have, so they certify the plain
problem: the way ends when its own gap is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from scgd.linear.certificate import Best, balanced
from scgd.linear.task import Fit, Task
from scgd.typing import Floats

WIDTHS = 10.0 ** -np.arange(1.0, 9.0)
Solver = Callable[[Task, Floats | None, float], Fit]


def follow_rounded(task: Task, solve: Solver, start: Floats | None, b: float) -> Fit:
    """Solve rounded problems in turn, each from the last one's solution."""
    best, n_passes, closed = Best(task), 0, False
    for width in WIDTHS:
        left = task.max_passes - n_passes
        part = replace(task, epsilon=float(width), tol=0.3 * task.tol, max_passes=max(1, left // 2))
        fit = solve(part, start, b)
        start, b, n_passes = fit.w, fit.b, n_passes + fit.n_passes
        z = task.design.margins(fit.w) + fit.b
        best.offer(task.terms(z)[0] + task.penalty(fit.w), fit.w, fit.b)
        u = balanced(task, part.terms(z)[1])
        best.bound(u, task.design.correlations(u))
        closed = best.closed or (task.l1 == task.l2 == 0.0 and 0.5 * width <= task.limit)
        if closed or n_passes >= task.max_passes:
            break
    return best.fit(n_passes, bool(closed), fit.visits)
