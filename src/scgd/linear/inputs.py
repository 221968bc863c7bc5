"""Check the data of a linear problem and lay it out for compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from scgd.checks import reals
from scgd.typing import Floats

LARGEST = 1e120
"""Entries beyond this have squares whose sums overflow."""
FEW_ENTRIES = 10_000
"""Rows of so many entries are sorted in about 0.1 ms, less than any fit takes."""


def as_matrix(X: Any) -> Any:
    """Return a finite float matrix, dense or sparse, in its own precision where that is a float."""
    if sparse.issparse(X):
        check_structure(X)
    elif isinstance(X, np.ma.MaskedArray):
        raise TypeError("X must not be masked; impute or drop the masked entries first")
    else:
        X = as_array(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must be a matrix with rows and columns, got shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X must hold real numbers, got dtype {X.dtype}")
    if X.dtype not in (np.float64, np.float32):
        with np.errstate(over="ignore"):
            X = X.astype(np.float64)
    X = X.tocsr() if sparse.issparse(X) and X.format not in ("csr", "csc") else X
    check_entries(X.data if sparse.issparse(X) else X)
    return X


def as_array(X: Any) -> Any:
    """Return whatever looks like a matrix as an array of NumPy's own."""
    try:
        return np.asarray(X.detach() if hasattr(X, "detach") else X)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"X must be a matrix of numbers: {error}") from None


def check_entries(entries: Any) -> None:
    """Refuse entries that are not finite, or whose squares would not be."""
    with np.errstate(over="ignore", invalid="ignore"):
        if surely_bounded(entries):
            return
        total = float(np.sum(entries, dtype=np.float64))
    if not np.isfinite(total) and not np.all(np.isfinite(entries)):
        raise ValueError("X has NaN or infinite entries; impute or drop them first")
    if entries.dtype == np.float32 or entries.size == 0:
        return
    largest = max(float(entries.max()), -float(entries.min()))
    if largest > LARGEST:
        raise ValueError(
            f"X has entries up to {largest:.3g}, whose squares overflow; divide its columns by "
            "their standard deviations, for instance with StandardScaler"
        )


def surely_bounded(entries: Any) -> bool:
    """Whether one pass shows it, by a finite sum of squares; einsum starts no threads."""
    if entries.dtype != np.float64 or not entries.flags.forc:
        return False
    flat = entries.ravel(order="K")
    return bool(np.einsum("i,i", flat, flat) <= LARGEST**2)


def check_reach(X: Any) -> None:
    """Refuse columns so small that their squares vanish, which matters without a penalty."""
    sizes = abs(X).max(axis=0)
    sizes = np.ravel(sizes.toarray() if sparse.issparse(sizes) else sizes)
    if np.any((sizes > 0.0) & (sizes < 1.0 / LARGEST)):
        worst = float(sizes[sizes > 0.0].min())
        raise ValueError(
            f"X has a column of entries up to {worst:.3g}: its squares vanish; divide columns "
            "by their standard deviations, for instance with StandardScaler"
        )


def check_structure(X: Any) -> None:
    """Refuse sparse matrices whose indices point outside: compiled code would follow them.

    Examples
    --------
    >>> broken = sparse.csr_array(np.eye(2))
    >>> broken.indices[0] = 5
    >>> check_structure(broken)
    Traceback (most recent call last):
    ValueError: X is a damaged csr matrix: indices up to 5 where there are 2
    """
    if X.ndim != 2 or max(X.shape) > np.iinfo(np.int32).max:
        raise ValueError(f"X must be a matrix with at most 2**31 - 1 rows or columns: {X.shape}")
    if X.format == "coo":
        pairs = [(X.row, X.shape[0]), (X.col, X.shape[1])]
        sound = len(X.row) == len(X.col) == len(X.data)
    elif X.format in ("csr", "csc"):
        lines, entries = X.shape if X.format == "csr" else X.shape[::-1]
        pairs, pointers = [(X.indices, entries)], X.indptr
        sound = len(pointers) == lines + 1 and pointers[0] == 0
        sound = sound and bool(np.all(pointers[1:] >= pointers[:-1]))
        sound = sound and pointers[-1] <= min(len(X.indices), len(X.data))
        pairs = [(X.indices[: pointers[-1]], entries)] if sound else []
    else:  # bsr by its own check; the others keep no pointers
        if X.format == "bsr":
            X.copy().check_format(full_check=True)
        return
    if not sound:
        raise ValueError(f"X is a damaged {X.format} matrix: its arrays do not fit together")
    for indices, size in pairs:
        if len(indices) and (indices.min() < 0 or indices.max() >= size):
            worst = indices.min() if indices.min() < 0 else indices.max()
            raise ValueError(
                f"X is a damaged {X.format} matrix: indices up to {worst} where there are {size}"
            )


def as_weights(sample_weight: Any, n_samples: int) -> Floats:
    """Return sample weights of mean one; empty when there are none."""
    if sample_weight is None:
        return np.empty(0)
    weights = np.ascontiguousarray(as_real(sample_weight, "sample_weight"))
    if weights.shape != (n_samples,) or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError(f"sample_weight must be {n_samples} finite numbers >= 0")
    largest = weights.max(initial=0.0)
    if largest == 0:
        raise ValueError("sample_weight is zero for all samples; give some a positive weight")
    weights = weights / largest  # so that sums of any finite weights are finite
    return np.asarray(weights / weights.mean())


def as_real(values: Any, name: str) -> Floats:
    """Return an array of floats, naming the argument that is none."""
    if getattr(getattr(values, "dtype", None), "kind", "") == "b":
        values = np.asarray(values, np.float64)  # classes that are truth values
    try:
        return reals(values, name, "hold real numbers")
    except TypeError as error:
        raise ValueError(str(error)) from None


def merged(X: Any, Y: Floats, weight: Floats | None) -> tuple[Any, Floats, Floats | None]:
    """Return the different rows of small data in order, with their targets and summed weights.

    Weights, repeated samples and their order then give the same model bit for bit. Larger data are
    returned as they are; their models agree to ``tol``.
    """
    if X.shape[0] * X.shape[1] > FEW_ENTRIES:
        return X, Y, weight
    weight = np.ones(len(Y)) if weight is None else weight / weight.max()
    kept, p = weight > 0, X.shape[1]
    rows = np.hstack([X.toarray() if sparse.issparse(X) else X, Y])[kept]
    rows, places = np.unique(rows, axis=0, return_inverse=True)
    values = np.ascontiguousarray(rows[:, :p], X.dtype)
    sums = np.asarray(np.bincount(np.ravel(places), weights=weight[kept]), np.float64)
    return type(X)(values) if sparse.issparse(X) else values, rows[:, p:], sums
