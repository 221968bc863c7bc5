"""The objective of a linear model at many iterates at once."""

from __future__ import annotations

import numpy as np

from scgd.compiling import njit
from scgd.linear.data import REASSOCIATE, Problem, dot
from scgd.linear.losses import value
from scgd.typing import Floats

__all__ = ["objective", "penalties"]


@njit(cache=True, fastmath=REASSOCIATE, error_model="numpy")
def four_dots(row, thetas, r):
    """Return the products of a row with four iterates, reading the row once."""
    a = b = c = d = 0.0
    for j in range(len(row)):
        x = row[j]
        a += x * thetas[r, j]
        b += x * thetas[r + 1, j]
        c += x * thetas[r + 2, j]
        d += x * thetas[r + 3, j]
    return a, b, c, d


@njit(cache=True, error_model="numpy", nogil=True)
def risks(problem, thetas, out):
    """Add the weighted mean loss at each row of ``thetas`` to ``out``."""
    dense, indptr, indices, values = problem.rows
    targets, weights, loss, epsilon = (
        problem.targets,
        problem.weights,
        problem.loss,
        problem.epsilon,
    )
    n_samples, n_thetas, n_features = len(targets), len(thetas), problem.n_features
    margins, fours = np.empty(n_thetas), n_thetas // 4 * 4 if len(dense) > 0 else 0
    for i in range(n_samples):
        for r in range(0, fours, 4):
            margins[r], margins[r + 1], margins[r + 2], margins[r + 3] = four_dots(
                dense[i], thetas, r
            )
        for r in range(fours, n_thetas):
            margins[r] = dot(dense, indptr, indices, values, i, thetas[r])
        weight = (weights[i] if len(weights) > 0 else 1.0) / n_samples
        for r in range(n_thetas):
            z = margins[r]
            if thetas.shape[1] > n_features:
                z += thetas[r, n_features]
            out[r] += weight * value(loss, z, targets[i], epsilon)


def penalties(problem: Problem, thetas: Floats) -> Floats:
    """Return the penalties at each row of ``thetas``."""
    coefs = thetas[:, : problem.n_features]
    with np.errstate(over="ignore"):
        l2 = 0.5 * problem.l2 * np.einsum("rk,rk->r", coefs, coefs)
        return np.asarray(l2 + problem.l1 * np.abs(coefs).sum(axis=1))


def objective(problem: Problem, thetas: Floats) -> Floats:
    """Return the penalised mean loss at each row of ``thetas``."""
    out = np.zeros(len(thetas))
    risks(problem, np.ascontiguousarray(thetas, np.float64), out)
    return out + penalties(problem, thetas)
