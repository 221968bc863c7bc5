"""Check the data of a linear problem, and lay it out for compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scgd.checks import choice, number
from scgd.compiling import njit
from scgd.linear.data import REASSOCIATE, Data, as_data, frozen
from scgd.linear.inputs import as_matrix, as_real, as_weights
from scgd.linear.losses import CORNERS, LOSSES
from scgd.typing import Floats

__all__ = ["Problem", "as_flag", "as_problem", "dot", "entry"]


class Problem(NamedTuple):
    r"""A penalised empirical risk, ready for compiled code.

    .. math:: f(\theta) = \frac1n \sum_i w_i\, \ell(x_i^\top \theta, y_i)
              + \frac{\lambda_2}{2} \|\theta\|_2^2 + \lambda_1 \|\theta\|_1

    with weights of mean one (``weights`` is empty when all are equal). An intercept is a last
    coordinate, of a column of ones, without penalty. ``columns`` is None where rows are read.
    """

    rows: Data
    columns: Data | None
    targets: Floats
    weights: Floats
    n_features: int
    loss: int
    epsilon: float
    l2: float
    l1: float


def as_problem(
    X: Any,
    y: Any,
    *,
    loss: str = "squared",
    l2: float = 0.0,
    l1: float = 0.0,
    sample_weight: Any = None,
    epsilon: float | None = None,
) -> Problem:
    """Check the data of a linear problem and lay it out for compiled code.

    Examples
    --------
    >>> as_problem(np.eye(2), [1.0, -1.0], loss="logistic").targets
    array([ 1., -1.])
    """
    X = as_matrix(X)
    targets = np.ascontiguousarray(as_real(y, "y"))
    if targets.shape != (X.shape[0],):
        raise ValueError(f"y must have one target for each of {X.shape[0]} rows, got {np.shape(y)}")
    choice(loss, "loss", LOSSES)
    check_targets(targets, loss)
    epsilon = CORNERS.get(loss, 0.0) if epsilon is None else epsilon
    for name, given in (("l2", l2), ("l1", l1), ("epsilon", epsilon)):
        number(given, name, 0)
    return Problem(
        rows=as_data(X),
        columns=None,
        targets=frozen(targets),
        weights=frozen(as_weights(sample_weight, len(targets))),
        n_features=X.shape[1],
        loss=LOSSES.index(loss),
        epsilon=float(epsilon),
        l2=float(l2),
        l1=float(l1),
    )


def as_flag(value: Any, name: str) -> bool:
    """Return a truth value, refusing what only looks like one."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_targets(targets: Floats, loss: str) -> None:
    """Refuse targets that a loss cannot read."""
    if not np.all(np.isfinite(targets)):
        raise ValueError("y has NaN or infinite targets; drop those rows first")
    signs = loss in ("logistic", "hinge", "squared-hinge")
    if signs and not np.all(np.abs(targets) == 1.0):
        raise ValueError(f"targets of the {loss} loss must be -1 or 1, got {targets[:5]}...")


@njit(cache=True, fastmath=REASSOCIATE, error_model="numpy")
def dense_dot(dense, i, theta):  # type: ignore[no-untyped-def]
    """Return the product of row ``i`` of a dense matrix with the first entries of ``theta``."""
    total = 0.0
    for j in range(dense.shape[1]):
        total += dense[i, j] * theta[j]
    return total


@njit(cache=True, error_model="numpy")
def sparse_dot(indices, values, theta):  # type: ignore[no-untyped-def]
    """Return the product of a sparse row with ``theta``."""
    total = 0.0
    for j in range(len(indices)):
        total += values[j] * theta[indices[j]]
    return total


@njit(cache=True, error_model="numpy")
def sparse_entry(indices, values, k):  # type: ignore[no-untyped-def]
    """Return entry ``k`` of a sparse row, by bisection."""
    low, high = 0, len(indices)
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < k:
            low = middle + 1
        else:
            high = middle
    return np.float64(values[low]) if low < len(indices) and indices[low] == k else 0.0


@njit(cache=True, error_model="numpy")
def entry(dense, indptr, indices, values, i, k):  # type: ignore[no-untyped-def]
    """Return entry ``k`` of row ``i``."""
    x = 0.0
    if dense is not None:
        x = np.float64(dense[i, k])
    if indptr is not None:
        start, stop = indptr[i], indptr[i + 1]
        x = sparse_entry(indices[start:stop], values[start:stop], k)
    return x


@njit(cache=True, error_model="numpy")
def dot(dense, indptr, indices, values, i, theta):  # type: ignore[no-untyped-def]
    """Return the product of row ``i`` with the first entries of ``theta``."""
    z = 0.0
    if dense is not None:
        z = dense_dot(dense, i, theta)
    if indptr is not None:
        start, stop = indptr[i], indptr[i + 1]
        z = sparse_dot(indices[start:stop], values[start:stop], theta)
    return z
