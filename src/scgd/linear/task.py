r"""What a solver minimises, and what it returns.

.. math:: P(w, b) = \sum_i s_i\, \ell(x_i^\top w + b, y_i)
          + \frac{\lambda_2}{2} \|w\|_2^2 + \lambda_1 \|w\|_1, \qquad \sum_i s_i = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse

from scgd.linear.data import Data, as_data, frozen, gather_columns, transposed
from scgd.linear.losses import HINGE, HUBER, SQUARED, SQUARED_HINGE, curvature
from scgd.linear.samples import terms
from scgd.typing import Array, Floats, Ints

Report = Callable[[int, float, Floats, float], bool]
"""Called with the passes made, the gap, the coefficients and the intercept; True stops."""
BLOCK = 4096
ENTRIES = 1 << 18
"""Entries of a block of rows, widened or weighted: what a cache holds."""


class Design:
    """A matrix with the products and layouts that solvers ask for, each made once.

    Parameters
    ----------
    X
        A dense array or a CSR or CSC matrix, of floats.
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self.sparse = bool(sparse.issparse(X))
        self.n_samples, self.n_features = X.shape
        self.made: dict[str, tuple[Any, ...]] = {}
        """What was made of it last, of each kind, with whose targets and shares."""

    @cached_property
    def columns(self) -> Data:
        """The matrix column by column."""
        return transposed(self.X)

    @cached_property
    def rows(self) -> Data:
        """The matrix row by row."""
        return as_data(self.X)

    def kept(self, kind: str, task: Task, make: Callable[[Task], Any] | None = None) -> Any:
        """Return what was made last for the targets and shares of a task, or make and keep it.

        The fits of a path share it. Without ``make`` nothing is made.
        """
        y, shares, intercept, found = self.made.get(kind, (None, None, None, None))
        if y is task.y and shares is task.shares and intercept == task.intercept:
            return found
        if make is None:
            return None
        found = make(task)
        self.made[kind] = task.y, task.shares, task.intercept, found
        return found

    @property
    def by_rows(self) -> bool:
        """Whether only sparse rows are at hand: their columns have to be made."""
        return self.sparse and self.X.format == "csr" and "columns" not in self.__dict__

    @cached_property
    def lengths(self) -> Ints:
        """The entries that a sparse matrix stores of each column."""
        if not self.by_rows:
            return np.asarray(np.diff(self.columns.indptr))
        return np.bincount(self.rows.indices, minlength=self.n_features)

    def some_columns(self, chosen: Ints) -> Data:
        """Return columns of sparse rows under their own numbers, the others left empty."""
        indptr, rows = np.zeros(self.n_features + 1, np.int64), self.rows
        indptr[chosen + 1] = self.lengths[chosen]
        indptr = np.cumsum(indptr)
        starts = np.full(self.n_features, -1)
        starts[chosen] = indptr[chosen]
        places, entries = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], self.X.dtype)
        gather_columns(rows.indptr, rows.indices, rows.values, starts, places, entries)
        return rows._replace(indptr=frozen(indptr), indices=frozen(places), values=frozen(entries))

    def squares(self, shares: Floats) -> Floats:
        """Return the sums of the squares of columns, each row with its share."""
        if not self.sparse:
            return self._summed(lambda block, s: np.einsum("ij,ij,i->j", block, block, s), shares)
        if self.by_rows:
            rows = self.rows
            weights = np.square(rows.values, dtype=np.float64)
            weights *= np.repeat(shares, np.diff(rows.indptr))
            return np.asarray(np.bincount(rows.indices, weights, self.n_features), np.float64)
        columns = self.columns
        values = np.square(columns.values, dtype=np.float64) * shares[columns.indices]
        places = np.repeat(np.arange(self.n_features), np.diff(columns.indptr))
        return np.asarray(np.bincount(places, values, self.n_features), np.float64)

    def gram(self, shares: Floats) -> Floats:
        """Return X' diag(shares) X, the upper half, a block of rows at a time."""
        out = np.zeros((self.n_features,) * 2, order="F")
        roots, size = np.sqrt(shares), max(64, ENTRIES // self.n_features)
        for i in range(0, self.n_samples, size):
            block = self.X[i : i + size]
            block = block.toarray() if self.sparse else block
            block = np.asarray(block * roots[i : i + size, None], np.float64)
            out = linalg.blas.dsyrk(1.0, block.T, 1.0, out, overwrite_c=1)
        return out

    def _summed(self, part: Callable[[Floats, Floats], Floats], shares: Floats) -> Floats:
        """Return the sum of what ``part`` makes of each block of rows."""
        total, size = np.zeros(self.n_features), max(64, ENTRIES // self.n_features)
        for i in range(0, self.n_samples, size):
            total += part(np.asarray(self.X[i : i + size], np.float64), shares[i : i + size])
        return total

    def column_rows(self, chosen: Ints, columns: Data) -> Floats:
        """Return some of the columns at hand written out, one per row."""
        if not self.sparse:
            return np.asarray(columns.dense[chosen], np.float64)
        out = np.zeros((len(chosen), self.n_samples))
        for row, k in zip(out, chosen, strict=True):
            part = slice(columns.indptr[k], columns.indptr[k + 1])
            row[columns.indices[part]] = columns.values[part]
        return out

    @cached_property
    def row_squares(self) -> Floats:
        """The squared lengths of the rows."""
        if not self.sparse:
            return np.asarray(np.einsum("ij,ij->i", self.X, self.X, dtype=np.float64))
        out, starts = np.zeros(self.n_samples), self.rows.indptr[:-1]
        filled = self.rows.indptr[1:] > starts
        if filled.any():
            squares = np.square(self.rows.values, dtype=np.float64)
            out[filled] = np.add.reduceat(squares, starts[filled])
        return out

    def margins(self, w: Floats) -> Floats:
        """Return X w in double precision."""
        return np.asarray(self._product(self.X, w))

    def correlations(self, u: Floats) -> Floats:
        """Return X'u in double precision."""
        return np.asarray(self._product(self.X.T, u))

    def _product(self, X: Any, v: Floats) -> Array:
        if self.sparse or X.dtype == np.float64:
            return np.asarray(X @ v)
        if X.shape[0] < X.shape[1]:  # single precision: a block at a time is widened
            parts = range(0, X.shape[1], BLOCK)
            blocks = (X[:, i : i + BLOCK].astype(np.float64) @ v[i : i + BLOCK] for i in parts)
            return np.asarray(np.sum(list(blocks), axis=0))
        parts = range(0, X.shape[0], BLOCK)
        return np.concatenate([X[i : i + BLOCK].astype(np.float64) @ v for i in parts])


@dataclass(frozen=True)
class Task:
    """A penalised risk to be minimised until the duality gap is at most ``tol`` times f0.

    Attributes
    ----------
    design, y, shares
        Data, targets and the samples' shares in the risk, which sum to one.
    loss, epsilon, l2, l1, intercept
        The objective.
    tol, max_passes, seed, report
        When to stop, the seed of all draws, and whom to tell.
    watched
        Whether the report may stop the fit early, so that it should go in small steps.
    rough
        Whether sweeps may end without a certificate, when a step gains a tenth of the limit.
    """

    design: Design
    y: Floats
    shares: Floats
    loss: int
    epsilon: float
    l2: float
    l1: float
    intercept: bool
    tol: float
    max_passes: int
    seed: int
    report: Report | None = None
    watched: bool = False
    rough: bool = False

    def terms(self, z: Floats) -> tuple[float, Floats, Floats]:
        """Return the risk at margins ``z``, and the slopes and curvatures times the shares."""
        value, slope, bend = terms(self.loss, z, self.y, self.epsilon)
        return float(self.shares @ value), self.shares * slope, self.shares * bend

    def objective(self, w: Floats, b: float) -> float:
        """Return the objective at coefficients and an intercept."""
        return self.terms(self.design.margins(w) + b)[0] + self.penalty(w)

    def rounded(self, epsilon: float) -> Task:
        """Return the task with another corner."""
        return replace(self, epsilon=epsilon)

    def penalised(self, alpha: float) -> Task:
        """Return the task with its penalties times ``alpha``; what they do not change is kept."""
        task = replace(self, l2=alpha * self.l2, l1=alpha * self.l1)
        vars(task).update(null=self.null, held=self.held, rounding=self.rounding)
        return task

    def penalty(self, w: Floats) -> float:
        """Return the penalty of coefficients."""
        return float(0.5 * self.l2 * (w @ w) + self.l1 * np.abs(w).sum())

    @cached_property
    def held(self) -> Any:
        """Which samples have a share; an index that copies nothing where all have."""
        held = self.shares > 0.0
        return slice(None) if held.all() else held

    @cached_property
    def null(self) -> tuple[float, float]:
        """The best constant, up to the loss, and its risk: the unit of ``tol``."""
        b = 0.0
        if self.intercept and self.loss in (SQUARED, HUBER):
            b = float(self.shares @ self.y)
        return b, self.terms(np.full(len(self.y), b))[0]

    @cached_property
    def limit(self) -> float:
        """The gap that closes the task: ``tol`` times f0."""
        return self.tol * (self.null[1] or 1.0)

    @cached_property
    def rounding(self) -> float:
        """How far rounding may falsify a gap: it is the difference of sums of this size."""
        size = float(self.shares @ self.y**2) if self.loss in (SQUARED, HUBER) else 1.0
        return 4e-15 * (self.null[1] + size)

    def told(self, n_passes: int, gap: float, w: Floats, b: float) -> bool:
        """Tell the report where the fit is; return whether it wants to stop."""
        return self.report is not None and self.report(n_passes, gap / (self.null[1] or 1.0), w, b)


class Caution:
    """The least curvature that a model assumes, as a part of the largest the loss has.

    It falls while whole steps are good and rises when they have to be cut: at 1 the model lies
    above the risk, and its steps always decrease the objective. Losses whose curvature jumps to
    zero begin cautiously, the others without.
    """

    def __init__(self, loss: int, epsilon: float) -> None:
        self.most = 100.0 if loss == HINGE else curvature(loss, epsilon)
        self.least = 0.1 if loss in (HINGE, SQUARED_HINGE, HUBER) else 0.0

    def apply(self, curve: Floats, shares: Floats) -> Floats:
        """Return weighted curvatures that are at least the least."""
        return np.maximum(curve, self.least * shares) if self.least > 0.0 else curve

    def learn(self, length: float) -> None:
        """Adapt to the part of the last step that was taken."""
        if length == 1.0:
            self.least = 0.1 * self.least if self.least > 1e-12 else self.least
        elif length < 0.25:
            self.least = min(max(10.0 * self.least, 1e-3 * self.most), self.most)


@dataclass
class Fit:
    """Where a solver ended.

    Attributes
    ----------
    w, b
        Coefficients and intercept.
    n_passes
        Passes made: over the coordinates, the samples, or Newton steps.
    value
        The objective there.
    gap
        A bound on how far the objective is from its minimum; infinite without a penalty.
    converged
        Whether the solver met its stopping test.
    visits
        The share of each coordinate in the visits.
    """

    w: Floats
    b: float
    n_passes: int
    value: float
    gap: float
    converged: bool
    visits: Floats
