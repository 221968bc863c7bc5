"""The objective of a linear model at many iterates at once."""

from __future__ import annotations

import numpy as np

from scgd.compiling import njit
from scgd.linear.data import REASSOCIATE, Problem, dot
from scgd.linear.losses import value
from scgd.typing import Floats

__all__ = ["objective", "penalties"]


@njit(cache=True, error_model="numpy", fastmath=REASSOCIATE)
def four_margins(dense, i, j, thetas, r, out):
    """Write the products of rows ``i`` and ``j`` with four iterates from ``r`` on into ``out``.

    Eight sums at a time need half as many reads as one at a time.
    """
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
    for k in range(dense.shape[1]):
        x, y = dense[i, k], dense[j, k]
        s, t, u, v = thetas[r, k], thetas[r + 1, k], thetas[r + 2, k], thetas[r + 3, k]
        a0, a1, a2, a3 = a0 + x * s, a1 + x * t, a2 + x * u, a3 + x * v
        b0, b1, b2, b3 = b0 + y * s, b1 + y * t, b2 + y * u, b3 + y * v
    out[0, 0], out[0, 1], out[0, 2], out[0, 3] = a0, a1, a2, a3
    out[1, 0], out[1, 1], out[1, 2], out[1, 3] = b0, b1, b2, b3


@njit(cache=True, error_model="numpy", nogil=True)
def dense_risks(problem, thetas, out):
    """Add the weighted mean loss to ``out`` for dense data; a multiple of four iterates."""
    dense, targets, weights = problem.rows.dense, problem.targets, problem.weights
    n_samples, n_features = len(targets), problem.n_features
    margins, intercept = np.empty((2, 4)), thetas.shape[1] > n_features
    for i in range(0, n_samples, 2):
        last = min(i + 1, n_samples - 1)
        for r in range(0, len(thetas), 4):
            four_margins(dense, i, last, thetas, r, margins)
            for j in range(i, last + 1):
                weight = (weights[j] if len(weights) > 0 else 1.0) / n_samples
                for c in range(4):
                    z = margins[j - i, c] + (thetas[r + c, n_features] if intercept else 0.0)
                    out[r + c] += weight * value(problem.loss, z, targets[j], problem.epsilon)


@njit(cache=True, error_model="numpy", nogil=True)
def risks(problem, thetas, out):
    """Add the weighted mean loss at each row of ``thetas`` to ``out``, for sparse data."""
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
    n = len(thetas)
    if problem.rows.dense.size == 0:
        out = np.zeros(n)
        risks(problem, np.ascontiguousarray(thetas, np.float64), out)
        return out + penalties(problem, thetas)
    padded = np.zeros((n + -n % 4, thetas.shape[1]))
    padded[:n] = thetas
    out = np.zeros(len(padded))
    dense_risks(problem, padded, out)
    return out[:n] + penalties(problem, thetas)
