r"""How fast a partial derivative can change: the natural unit of each coordinate.

With :math:`L_k = c \sum_i w_i x_{ik}^2 / n + \lambda_2`, *c* the curvature of the loss, a step of
:math:`1/L_k` along coordinate *k* never overshoots, and :math:`|g_k| / \sqrt{L_k}` compares gains
across coordinates of different units. This is what ``learning_rate="auto"`` uses.
"""

from __future__ import annotations

import numpy as np

from scgd.compiling import njit
from scgd.linear.losses import curvature
from scgd.typing import Floats
from scgd_paper.linear.inputs import Problem

__all__ = ["inverse_smoothness", "visit_costs"]

OVERHEAD = 0.005
"""What a step costs beside its column, in units of a column that every sample enters."""


@njit(cache=True, error_model="numpy", nogil=True)
def square_sums(dense, indptr, indices, values, weights, by_columns, out):  # type: ignore[no-untyped-def]
    """Set ``out`` to the weighted sums of squares of the columns."""
    if dense is not None:
        for r in range(dense.shape[0]):
            for c in range(dense.shape[1]):
                k, i = (r, c) if by_columns else (c, r)
                x = np.float64(dense[r, c])
                out[k] += x * x * (weights[i] if len(weights) > 0 else 1.0)
    if indptr is not None:
        for r in range(len(indptr) - 1):
            for j in range(indptr[r], indptr[r + 1]):
                k, i = (r, indices[j]) if by_columns else (indices[j], r)
                out[k] += values[j] * values[j] * (weights[i] if len(weights) > 0 else 1.0)


def inverse_smoothness(problem: Problem, n_coords: int) -> Floats:
    """Return 1 / L_k of every coordinate, 0 where nothing depends on it."""
    bound = curvature(problem.loss, problem.epsilon)
    if not np.isfinite(bound):
        raise ValueError(
            "learning_rate='auto' needs a smooth loss; round the hinge with epsilon > 0, "
            "take the squared hinge or give a learning rate"
        )
    by_columns = problem.columns is not None
    data = problem.columns or problem.rows
    sums = np.zeros(n_coords)
    square_sums(*data, problem.weights, by_columns, sums)
    smoothness = bound * sums / len(problem.targets) + problem.l2
    if n_coords > problem.n_features:
        smoothness[-1] = bound
    return np.divide(1.0, smoothness, out=np.zeros(n_coords), where=smoothness > 0)


@njit(cache=True, error_model="numpy", nogil=True)
def add_shares(indptr, indices, weights, out):  # type: ignore[no-untyped-def]
    """Add to ``out`` the share of the samples, by weight, that enter each sparse column."""
    n_samples = len(weights)
    for k in range(len(indptr) - 1):
        for j in range(indptr[k], indptr[k + 1]):
            out[k] += weights[indices[j]] / n_samples


def visit_costs(problem: Problem, n_coords: int) -> Floats:
    """Return what a step along each sparse column costs, so that gains can count per time.

    Nothing where all columns are alike. Samples count by their weights, so that repeated ones are
    worth the same as weighted ones.
    """
    columns = problem.columns
    if columns is None or columns.dense is not None:
        return np.empty(0)
    weights = problem.weights if len(problem.weights) > 0 else np.ones(len(problem.targets))
    out = np.full(n_coords, OVERHEAD)
    add_shares(columns.indptr, columns.indices, weights, out)
    out[problem.n_features :] += 1.0
    return out
