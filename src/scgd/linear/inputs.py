"""Check the data of a linear problem and lay it out for compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from scgd.linear.data import Problem, as_data, empty_data, frozen
from scgd.linear.losses import CORNERS, LOSSES
from scgd.typing import Floats

__all__ = ["as_matrix", "as_problem"]


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
    targets = np.ascontiguousarray(y, np.float64)
    if targets.shape != (X.shape[0],):
        raise ValueError(f"y must have one target for each of {X.shape[0]} rows, got {np.shape(y)}")
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {LOSSES}, got {loss!r}")
    check_targets(targets, loss)
    epsilon = CORNERS.get(loss, 0.0) if epsilon is None else epsilon
    for name, number in (("l2", l2), ("l1", l1), ("epsilon", epsilon)):
        if not (np.isfinite(number) and number >= 0):
            raise ValueError(f"{name} must be finite and not negative, got {number!r}")
    return Problem(
        rows=as_data(X),
        columns=empty_data(X.dtype),
        targets=frozen(targets),
        weights=frozen(as_weights(sample_weight, len(targets))),
        n_features=X.shape[1],
        loss=LOSSES.index(loss),
        epsilon=float(epsilon),
        l2=float(l2),
        l1=float(l1),
    )


def as_matrix(X: Any) -> Any:
    """Return a finite float matrix, dense or sparse, in its own precision where that is a float."""
    if not sparse.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must be a matrix with rows and columns, got shape {X.shape}")
    if X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
    entries = X.data if sparse.issparse(X) else X
    if not np.isfinite(entries.sum()) and not np.all(np.isfinite(entries)):
        raise ValueError("X has NaN or infinite entries; impute or drop them first")
    return X


def check_targets(targets: Floats, loss: str) -> None:
    """Refuse targets that a loss cannot read."""
    if not np.all(np.isfinite(targets)):
        raise ValueError("y has NaN or infinite targets; drop those rows first")
    signs = loss in ("logistic", "hinge", "squared-hinge")
    if signs and not np.all(np.abs(targets) == 1.0):
        raise ValueError(f"targets of the {loss} loss must be -1 or 1, got {targets[:5]}...")


def as_weights(sample_weight: Any, n_samples: int) -> Floats:
    """Return sample weights of mean one; empty when there are none."""
    if sample_weight is None:
        return np.empty(0)
    weights = np.ascontiguousarray(sample_weight, np.float64)
    if weights.shape != (n_samples,) or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError(f"sample_weight must be {n_samples} finite numbers >= 0")
    if weights.sum() == 0:
        raise ValueError("sample_weight is zero for all samples; give some a positive weight")
    return weights / weights.mean()
