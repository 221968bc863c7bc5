"""Which solver for which problem.

=====================================  ==========================================================
few features or few samples, no l1     Newton steps (:mod:`~scgd.linear.newton`)
hinge with l2; sparse rows, no l1      dual coordinates (:mod:`~scgd.linear.dual`)
hinge with l1 alone, not too large      a linear program (:mod:`~scgd.linear.program`)
hinge otherwise                        rounded (:mod:`~scgd.linear.rounding`)
all else                               sweeps over columns (:mod:`~scgd.linear.primal`)
=====================================  ==========================================================

A policy other than the adaptive one, early stopping and ``dual=False`` leave the sweeps (and the
rounded hinge); a dual ascent that does not close the gap hands over to them.
"""

from __future__ import annotations

from dataclasses import replace

from scgd.linear.dual import LOSSES_WITH_DUAL, ascend
from scgd.linear.losses import HINGE, SQUARED
from scgd.linear.newton import newton
from scgd.linear.primal import descend
from scgd.linear.program import solve_program, suits_program
from scgd.linear.rounding import follow_rounded
from scgd.linear.task import Fit, Task
from scgd.policies import Adaptive, Policy
from scgd.typing import Floats

__all__ = ["fit"]

FEW = {True: 1500, False: 500}
"""Columns (or rows) that a Newton step takes, for squares, which need one, and other losses."""
MOST_ENTRIES = 50_000_000
SMALL, FILL = 1_000_000, 200
"""Sparse entries written out for Newton steps: any such number, or so many per one stored."""
MOST_ASCENTS = 100
BY_SAMPLES = Adaptive(least=0.5)


def fit(
    task: Task, policy: Policy, dual: bool | str, start: Floats | None = None, b: float = 0.0
) -> Fit:
    """Minimise a task from ``start`` and ``b``.

    Parameters
    ----------
    task, policy
        What is minimised, and the order of visits.
    dual
        Whether to take dual coordinates where they exist; ``"auto"`` decides by the data.
    start, b
        First coefficients (default: none) and intercept.
    """
    free = isinstance(policy, Adaptive) and not task.watched
    ascends = dual is not False and has_dual(task) and isinstance(policy, Adaptive)
    if dual is True and ascends:
        return ascend(task, BY_SAMPLES, start, b)
    if task.loss == HINGE and task.epsilon == 0.0:
        if ascends and not (free and suits_newton(task)):
            return ascend(task, BY_SAMPLES, start, b)
        program = solve_program(task) if free and suits_program(task) else None
        if program is not None and program.converged:
            return program
        return follow_rounded(task, lambda part, w, b: fit(part, policy, False, w, b), start, b)
    if free and suits_newton(task):
        return newton(task, start, b)
    if ascends and free and task.design.sparse:
        first = ascend(replace(task, max_passes=min(task.max_passes, MOST_ASCENTS)),
                       BY_SAMPLES, start, b)  # fmt: skip
        left = task.max_passes - first.n_passes
        if first.converged or left <= 0:
            return first
        last = descend(replace(task, max_passes=left), policy, first.w, first.b)
        return replace(last, n_passes=first.n_passes + last.n_passes)
    return descend(task, policy, start, b)


def has_dual(task: Task) -> bool:
    """Tell whether samples have dual variables."""
    return task.loss in LOSSES_WITH_DUAL and task.l1 == 0.0 and task.l2 > 0.0


def suits_newton(task: Task) -> bool:
    """Tell whether Newton steps are cheap."""
    n, p = task.design.n_samples, task.design.n_features
    few = min(n, p) <= FEW[task.loss == SQUARED]
    if task.design.sparse and n * p > max(SMALL, FILL * task.design.X.nnz):
        return False  # written out it would need far more memory than it came with
    return task.l1 == 0.0 and few and n * p <= MOST_ENTRIES // (1 + 4 * task.design.sparse)
