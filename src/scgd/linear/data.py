"""Data as compiled code reads it: one type for dense and sparse matrices, row by row.

A :class:`Data` holds a C-contiguous matrix or the three arrays of a CSR matrix. The column-wise
view of a matrix is the :class:`Data` of its transpose, which costs nothing for a Fortran-ordered or
CSC matrix and one conversion otherwise. Inner loops take the arrays, not the tuple: a tuple of
arrays costs a reference count per array and access.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from scgd.compiling import njit
from scgd.typing import Array, Floats, Ints

__all__ = [
    "Data",
    "Problem",
    "as_data",
    "dense_dot",
    "dot",
    "empty_data",
    "frozen",
    "sparse_dot",
    "sparse_entry",
    "transposed",
]

REASSOCIATE = {"reassoc", "contract", "nsz"}


class Data(NamedTuple):
    """A matrix by rows: ``dense``, or ``indptr``, ``indices`` and ``values``."""

    dense: Array
    indptr: Ints
    indices: Array
    values: Array


class Problem(NamedTuple):
    r"""A penalised empirical risk, ready for compiled code.

    .. math:: f(\theta) = \frac1n \sum_i w_i\, \ell(x_i^\top \theta, y_i)
              + \frac{\lambda_2}{2} \|\theta\|_2^2 + \lambda_1 \|\theta\|_1

    with weights of mean one (``weights`` is empty when all are equal). An intercept is a last
    coordinate, of a column of ones, without penalty.
    """

    rows: Data
    columns: Data
    targets: Floats
    weights: Floats
    n_features: int
    loss: int
    epsilon: float
    l2: float
    l1: float


def frozen(array: Array) -> Array:
    """Return a read-only view: kernels then have one type for users' arrays of either kind."""
    view = array.view()
    view.flags.writeable = False
    return view


def empty_data(dtype: Any = np.float64) -> Data:
    """Return the data of a matrix that is not there."""
    parts = ((0, 0), dtype), (1, np.int64), (0, np.int32), (0, dtype)
    return Data(*(frozen(np.zeros(shape, kind)) for shape, kind in parts))


def as_data(X: Any) -> Data:
    """Return the row-wise data of a dense or sparse matrix, without copying where rows are stored.

    Examples
    --------
    >>> as_data(np.eye(2)).dense.shape
    (2, 2)
    """
    none = empty_data(X.dtype)
    if not sparse.issparse(X):
        return none._replace(dense=frozen(np.ascontiguousarray(X)))
    csr = X.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    indptr, indices = csr.indptr.astype(np.int64), csr.indices.astype(np.int32, copy=False)
    return Data(none.dense, frozen(indptr), frozen(indices), frozen(csr.data))


def transposed(X: Any) -> Data:
    """Return the column-wise data of a matrix."""
    return as_data(X.T.tocsr() if sparse.issparse(X) else X.T)


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
def dot(dense, indptr, indices, values, i, theta):  # type: ignore[no-untyped-def]
    """Return the product of row ``i`` with the first entries of ``theta``."""
    if len(dense) > 0:
        return dense_dot(dense, i, theta)
    start, stop = indptr[i], indptr[i + 1]
    return sparse_dot(indices[start:stop], values[start:stop], theta)
