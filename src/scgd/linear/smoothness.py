r"""How fast a partial derivative can change: the natural unit of each coordinate.

With :math:`L_k = c \sum_i w_i x_{ik}^2 / n + \lambda_2`, *c* the curvature of the loss, a step of
:math:`1/L_k` along coordinate *k* never overshoots, and :math:`|g_k| / \sqrt{L_k}` compares gains
across coordinates of different units. This is what ``learning_rate="auto"`` uses.
"""

from __future__ import annotations

import numpy as np

from scgd.compiling import njit
from scgd.linear.data import Problem
from scgd.linear.losses import CROSS_ENTROPY, LOGISTIC, SQUARED, curvature
from scgd.typing import Floats

__all__ = ["first_reach", "inverse_smoothness", "visit_costs"]

OVERHEAD = 0.005
"""What a step costs beside its column, in units of a column that every sample enters."""


@njit(cache=True, error_model="numpy", nogil=True)
def square_sums(dense, indptr, indices, values, weights, means, by_columns, out):
    """Set ``out`` to the weighted sums of squares of the columns, about ``means`` where given."""
    if len(dense) > 0:
        for r in range(dense.shape[0]):
            for c in range(dense.shape[1]):
                k, i = (r, c) if by_columns else (c, r)
                x = dense[r, c] - (means[k] if len(means) > 0 else 0.0)
                out[k] += x * x * (weights[i] if len(weights) > 0 else 1.0)
        return
    for r in range(len(indptr) - 1):
        for j in range(indptr[r], indptr[r + 1]):
            k, i = (r, indices[j]) if by_columns else (indices[j], r)
            out[k] += values[j] * values[j] * (weights[i] if len(weights) > 0 else 1.0)


def inverse_smoothness(problem: Problem, n_coords: int, means: Floats) -> Floats:
    """Return 1 / L_k of every coordinate, 0 where nothing depends on it."""
    bound = curvature(problem.loss, problem.epsilon)
    if not np.isfinite(bound):
        raise ValueError(
            "learning_rate='auto' needs a smooth loss; round the hinge with epsilon > 0, "
            "take the squared hinge or give a learning rate"
        )
    by_columns = len(problem.columns.indptr) > 1 or len(problem.columns.dense) > 0
    data = problem.columns if by_columns else problem.rows
    sums = np.zeros(n_coords)
    square_sums(*data, problem.weights, means, by_columns, sums)
    smoothness = bound * sums / len(problem.targets) + problem.l2
    if n_coords > problem.n_features:
        smoothness[-1] = bound
    return np.divide(1.0, smoothness, out=np.zeros(n_coords), where=smoothness > 0)


@njit(cache=True, error_model="numpy", nogil=True)
def fill_largest(dense, indptr, indices, values, weights, means, out):
    """Set ``out`` to the largest entry of each column among samples that count, about ``means``."""
    for k in range(len(dense)):
        mean = means[k] if len(means) > 0 else 0.0
        for i in range(dense.shape[1]):
            if len(weights) == 0 or weights[i] > 0.0:
                out[k] = max(out[k], abs(dense[k, i] - mean))
    for k in range(len(indptr) - 1):
        for j in range(indptr[k], indptr[k + 1]):
            if len(weights) == 0 or weights[indices[j]] > 0.0:
                out[k] = max(out[k], abs(values[j]))


def first_reach(problem: Problem, n_coords: int, means: Floats) -> Floats:
    """Return what tells each coordinate how far to trust its curvature; nothing for squares.

    For logistic losses the largest absolute entry of the column; for piecewise parabolas a radius,
    infinite at first, that follows the steps made.
    """
    if problem.loss == SQUARED:
        return np.empty(0)
    if problem.loss not in (LOGISTIC, CROSS_ENTROPY):
        return np.full(n_coords, np.inf)
    out = np.zeros(n_coords)
    fill_largest(*problem.columns, problem.weights, means, out)
    out[problem.n_features :] = 1.0
    return out


@njit(cache=True, error_model="numpy", nogil=True)
def add_shares(indptr, indices, weights, out):
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
    if len(columns.indptr) <= 1:
        return np.empty(0)
    weights = problem.weights if len(problem.weights) > 0 else np.ones(len(problem.targets))
    out = np.full(n_coords, OVERHEAD)
    add_shares(columns.indptr, columns.indices, weights, out)
    out[problem.n_features :] += 1.0
    return out
