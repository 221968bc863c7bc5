r"""The hinge with an l1 penalty alone is a linear program, and small ones are solved as such.

.. math:: \min \sum_i s_i \xi_i + \lambda_1 \sum_j (w_j^+ + w_j^-), \qquad
          y_i (x_i^\top (w^+ - w^-) + b) + \xi_i \ge 1, \quad w^+, w^-, \xi \ge 0.

The multipliers of the rows are slopes that the hinge can have: they certify the solution.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from scgd.linear.certificate import Best, balanced
from scgd.linear.task import Fit, Task

MOST_ENTRIES = 400_000


def suits_program(task: Task) -> bool:
    """Tell whether the task is a linear program of a size that is solved in about a second."""
    stored = task.design.X.nnz if task.design.sparse else task.design.X.size
    return task.l1 > 0.0 and task.l2 == 0.0 and stored <= MOST_ENTRIES


def solve_program(task: Task) -> Fit | None:
    """Solve the program, or return nothing where the simplex method gives up."""
    n, p, y = task.design.n_samples, task.design.n_features, task.y
    signed = sparse.csc_array(sparse.diags_array(y) @ sparse.csc_array(task.design.X, dtype=float))
    parts = [signed, -signed, sparse.eye_array(n), *([y[:, None]] if task.intercept else [])]
    costs = np.concatenate([np.full(2 * p, task.l1), task.shares, np.zeros(int(task.intercept))])
    bounds = [(0.0, None)] * (2 * p + n) + [(None, None)] * int(task.intercept)
    found = linprog(
        costs, A_ub=-sparse.hstack(parts, format="csc"), b_ub=-np.ones(n), bounds=bounds
    )
    if found.status != 0:
        return None
    w, b = found.x[:p] - found.x[p : 2 * p], float(found.x[-1]) if task.intercept else 0.0
    u = balanced(task, np.clip(found.ineqlin.marginals, -task.shares, 0.0) * y)
    best = Best(task)
    best.look(w, b)
    best.bound(u, task.design.correlations(u))
    return best.fit(1, best.closed)
