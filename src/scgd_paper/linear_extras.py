"""What came after the paper, on its problems: ``scgd.minimize`` at the same number of queries.

One evaluation is f of one sample (or mini-batch), as every query of the paper's methods is; the
budget is that of the panel's own methods, two queries per coordinate step.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from scgd.compiling import njit
from scgd.linear.losses import value
from scgd.minimize import minimize
from scgd.options import Rows
from scgd.typing import Array
from scgd_paper.linear.inputs import Problem
from scgd_paper.linear.objective import objective
from scgd_paper.linear_rows import LinearProblem
from scgd_paper.rows import Job

__all__ = ["minimized"]


@njit(cache=True)
def sampled_loss(theta, rows, X, y, loss, l2):  # type: ignore[no-untyped-def]
    """Return the penalised loss of some rows."""
    total, square = 0.0, 0.0
    for i in rows:
        z = 0.0
        for k in range(len(theta)):
            z += X[i, k] * theta[k]
        total += value(loss, z, y[i], 1.0)
    for k in range(len(theta)):
        square += theta[k] * theta[k]
    return total / len(rows) + 0.5 * l2 * square


class Curve:
    """The loss at the recommended point whenever so many evaluations are used up."""

    def __init__(self, problem: Problem, queries: Array) -> None:
        self.problem, self.queries = problem, queries
        self.losses = np.full(len(queries), np.nan)
        self.seconds = np.zeros(len(queries))
        self.started, self.n_seen = time.perf_counter(), 0

    def __call__(self, result: Any) -> None:
        """Note the loss if the next look is due."""
        due = np.searchsorted(self.queries, result.nfev, side="right")
        if due > self.n_seen:
            looks = slice(self.n_seen, due)
            self.losses[looks] = objective(self.problem, result.x[None])[0]
            self.seconds[looks] = time.perf_counter() - self.started
            self.n_seen = int(due)

    def finish(self, result: Any) -> None:
        """Note the end for all that is left: nothing more was evaluated."""
        looks = slice(min(self.n_seen, len(self.queries) - 1), None)
        self.losses[looks] = objective(self.problem, result.x[None])[0]
        self.seconds[looks] = time.perf_counter() - self.started


def minimized(job: Job, problem: Problem, data: Any, passes: Array, seed: int) -> dict[str, Array]:
    """Return the history of one run of ``scgd.minimize`` on a panel."""
    row: LinearProblem = job.panel.problem
    queries = 2.0 * passes * row.n_coords
    curve = Curve(problem, queries)
    curve.losses[0], curve.n_seen = data.f_start, 1
    result = minimize(
        sampled_loss,
        np.zeros(row.n_coords),
        (data.X, data.y, problem.loss, problem.l2),
        method=job.method.recipe,
        sample=Rows(row.n_samples, row.batch_size),
        max_evals=int(queries[-1]),
        seed=seed,
        reporting=curve,
    )
    curve.finish(result)
    return {"pass": passes, "queries": queries, "seconds": curve.seconds, "loss": curve.losses}
