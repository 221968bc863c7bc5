"""The objective of a linear model at many iterates at once."""

from __future__ import annotations

import numpy as np

from scgd.compiling import njit
from scgd.linear.data import Problem, dot
from scgd.linear.losses import value
from scgd.typing import Floats

__all__ = ["objective", "penalties"]


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
    n_samples, intercept = len(targets), thetas.shape[1] > problem.n_features
    for i in range(n_samples):
        weight = (weights[i] if len(weights) > 0 else 1.0) / n_samples
        for r in range(len(thetas)):
            z = dot(dense, indptr, indices, values, i, thetas[r])
            if intercept:
                z += thetas[r, problem.n_features]
            out[r] += weight * value(loss, z, targets[i], epsilon)


def penalties(problem: Problem, thetas: Floats) -> Floats:
    """Return the penalties at each row of ``thetas``."""
    coefs = thetas[:, : problem.n_features]
    with np.errstate(over="ignore"):
        l2 = 0.5 * problem.l2 * np.einsum("rk,rk->r", coefs, coefs)
        return np.asarray(l2 + problem.l1 * np.abs(coefs).sum(axis=1))


def objective(problem: Problem, thetas: Floats) -> Floats:
    """Return the penalised mean loss at each row of ``thetas``, each exactly as if alone."""
    out = np.zeros(len(thetas))
    risks(problem, np.ascontiguousarray(thetas, np.float64), out)
    return out + penalties(problem, thetas)
