"""The objective of a linear model at many iterates at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scgd.compiling import njit
from scgd.linear.losses import LOGISTIC, value
from scgd.typing import Floats
from scgd_paper.linear.inputs import Problem, dot

__all__ = ["objective", "penalties", "quadratic"]


BLOCK = 512
"""Rows whose margins are computed at a time; they stay in cache until their losses are added."""


class Quadratic(NamedTuple):
    """The mean squared loss as a quadratic form: half of t'At - 2b't + c."""

    gram: Floats
    linear: Floats
    constant: float

    def __call__(self, thetas: Floats) -> Floats:
        """Return the mean loss at each row of ``thetas``."""
        bent = np.einsum("rk,rk->r", thetas @ self.gram, thetas)
        return np.asarray(0.5 * (bent + self.constant) - thetas @ self.linear)


def quadratic(problem: Problem) -> Quadratic:
    """Return the quadratic form of a dense problem with squared loss and without intercept."""
    X, y, n_samples = problem.rows.dense, problem.targets, len(problem.targets)
    weights = (problem.weights if len(problem.weights) else np.ones(n_samples)) / n_samples
    weighted = X * weights[:, None]
    return Quadratic(weighted.T @ X, weighted.T @ y, float(weights @ y**2))


def log_losses(margins: Floats, targets: Floats) -> Floats:
    """Return the logistic losses of margins with NumPy's vector instructions.

    1 + exp loses digits that log1p would keep, 1e-16 in all: nothing beside a mean loss.
    """
    signed = margins * -targets[:, None]
    return np.asarray(np.maximum(signed, 0.0) + np.log(1.0 + np.exp(-np.abs(signed))))


@njit(cache=True, error_model="numpy", nogil=True)
def add_losses(loss, epsilon, margins, targets, weights, first, n_samples, out):  # type: ignore[no-untyped-def]
    """Add the weighted losses of a block of margins (samples x iterates) to ``out``."""
    for i in range(len(margins)):
        j = first + i
        weight = (weights[j] if len(weights) > 0 else 1.0) / n_samples
        for r in range(len(out)):
            out[r] += weight * value(loss, margins[i, r], targets[j], epsilon)


def dense_risks(problem: Problem, thetas: Floats, out: Floats) -> None:
    """Add the weighted mean loss to ``out`` for dense data, by products of matrices."""
    dense, n_features, n_samples = problem.rows.dense, problem.n_features, len(problem.targets)
    coefs = np.ascontiguousarray(thetas[:, :n_features].T)
    start = not coefs.any()  # most runs start at zero, where the products need not be formed
    for first in range(0, n_samples, BLOCK):
        rows = dense[first : first + BLOCK]
        margins = np.zeros((len(rows), coefs.shape[1])) if start else rows @ coefs
        if thetas.shape[1] > n_features:
            margins = margins + thetas[:, n_features]
        if problem.loss == LOGISTIC:
            weights = problem.weights[first : first + BLOCK]
            losses = log_losses(margins, problem.targets[first : first + BLOCK])
            out += (weights @ losses if len(weights) else losses.sum(axis=0)) / n_samples
            continue
        add_losses(
            problem.loss, problem.epsilon, margins, problem.targets, problem.weights, first,
            n_samples, out,
        )  # fmt: skip


@njit(cache=True, error_model="numpy", nogil=True)
def risks(problem, thetas, out):  # type: ignore[no-untyped-def]
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
    l2 = 0.5 * problem.l2 * np.einsum("rk,rk->r", coefs, coefs)
    return np.asarray(l2 + problem.l1 * np.abs(coefs).sum(axis=1))


def objective(problem: Problem, thetas: Floats) -> Floats:
    """Return the penalised mean loss at each row of ``thetas``.

    For dense data the last bits depend on how many rows are handed in at once, not on the thread.
    """
    thetas = np.ascontiguousarray(thetas, np.float64)
    out = np.zeros(len(thetas))
    if problem.rows.dense is None:
        risks(problem, thetas, out)
    else:
        dense_risks(problem, thetas, out)
    return out + penalties(problem, thetas)
