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
from scgd.typing import Array

REASSOCIATE = {"reassoc", "contract", "nsz"}


class Data(NamedTuple):
    """A matrix by rows: ``dense``, or ``indptr``, ``indices`` and ``values``.

    What is not there is None. Numba sees that by the type and leaves out what is behind a test for
    it: loops over dense or over sparse rows are compiled only where there are such. (A test is left
    out only where the tested argument is None, so that each branch needs a test of its own.)
    """

    dense: Any
    indptr: Any = None
    indices: Any = None
    values: Any = None


def frozen(array: Array) -> Array:
    """Return a read-only view: kernels then have one type for users' arrays of either kind."""
    view = array.view()
    view.flags.writeable = False
    return view


def as_data(X: Any) -> Data:
    """Return the row-wise data of a dense or sparse matrix, without copying where rows are stored.

    Examples
    --------
    >>> as_data(np.eye(2)).dense.shape
    (2, 2)
    """
    if not sparse.issparse(X):
        return Data(frozen(np.ascontiguousarray(X)))
    csr = X.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    indptr, indices = csr.indptr.astype(np.int64), csr.indices.astype(np.int32, copy=False)
    return Data(None, frozen(indptr), frozen(indices), frozen(csr.data))


def transposed(X: Any) -> Data:
    """Return the column-wise data of a matrix."""
    return as_data(X.T.tocsr() if sparse.issparse(X) else X.T)


@njit(cache=True, error_model="numpy", nogil=True)
def gather_columns(indptr, indices, values, starts, places, entries):  # type: ignore[no-untyped-def]
    """Write entries of sparse rows column by column, from ``starts`` on; below 0: not wanted."""
    for i in range(len(indptr) - 1):
        for j in range(indptr[i], indptr[i + 1]):
            place = starts[indices[j]]
            if place >= 0:
                places[place], entries[place] = i, values[j]
                starts[indices[j]] = place + 1
