"""What the scikit-learn estimators share: parameters, fitting targets, streaming, storing."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from scgd.linear.fitting import fit
from scgd.linear.inputs import as_weights, check_entries, check_reach, check_structure, merged
from scgd.linear.losses import CORNERS, LOSSES
from scgd.linear.multinomial import fit_multinomial
from scgd.linear.streaming import Stream
from scgd.linear.task import Design, Fit, Report, Task
from scgd.policies import Adaptive, CompiledPolicy, Musketeer, Uniform
from scgd.typing import Array, Floats

Method = TypeVar("Method", bound=Callable[..., Any])

# Half of Musketeer's draws stay uniform: a fit must get every coordinate right, not only those
# that pay.
NAMED = {"adaptive": Adaptive(), "musketeer": Musketeer(mixing=0.5), "uniform": Uniform()}
# Measured on fresh data (docs/linear.md): gains pay for classification, not for squares.
SHUFFLED = Adaptive(least=1.0)
FLOATS = (np.float64, np.float32)
# With two classes the softmax is the logistic loss; with more it has a solver of its own.
LOGISTIC_TOO = {"multinomial": "logistic"}


def checks_parameters(method: Method) -> Method:
    """Have scikit-learn check the parameters before a fit; the method keeps its type."""
    checked: Method = _fit_context(prefer_skip_nested_validation=True)(method)
    return checked


class LinearModel(SparseCoefMixin, BaseEstimator):
    """A linear model with one row of coefficients per target."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [StrOptions({"l2", "l1", "elasticnet"}), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "fit_intercept": ["boolean"],
        "policy": [StrOptions(set(NAMED)), CompiledPolicy, Adaptive],
        "dual": ["boolean", StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "n_jobs": [Integral, None],
    }

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_X(self, X: Any) -> Any:
        check_is_fitted(self)
        if sparse.issparse(X):
            check_structure(X)
        return validate_data(self, X, reset=False, accept_sparse=["csr", "csc"], dtype=FLOATS)

    def _check_Xy(self, X: Any, y: Any, *, reset: bool, **checks: Any) -> tuple[Any, Any]:
        if sparse.issparse(X):
            check_structure(X)
        X, y = validate_data(
            self, X, y, reset=reset, accept_sparse=["csr", "csc"], dtype=FLOATS, **checks
        )
        check_entries(X.data if sparse.issparse(X) else X)
        if self.penalty is None or self.alpha == 0.0:
            check_reach(X)
        return X, y

    def _task(self, design: Design, y: Floats, weight: Any, seed: int, report: Any = None) -> Task:
        """Return what is minimised for one target."""
        share = {"l1": 1.0, "l2": 0.0, "elasticnet": self.l1_ratio}.get(self.penalty)
        l2, l1 = (0.0, 0.0) if share is None else (1.0 - share, share)
        n, weights = len(y), as_weights(weight, len(y))
        epsilon = self.epsilon if self.loss == "huber" else CORNERS.get(self.loss, 0.0)
        return Task(
            design, np.ascontiguousarray(y), weights / n if len(weights) else np.full(n, 1.0 / n),
            LOSSES.index(LOGISTIC_TOO.get(self.loss, self.loss)), float(epsilon),
            self.alpha * l2, self.alpha * l1,
            self.fit_intercept, self.tol, self.max_iter, seed, report, self.early_stopping,
        )  # fmt: skip

    def _fit_targets(
        self, X: Any, targets: list[Floats], weights: list[Any], labels: Array | None = None
    ) -> None:
        """Fit one model per target; they become the rows of the coefficients."""
        if not self.early_stopping:
            X, Y, weight = merged(X, np.stack(targets, axis=1), weights[0])
            targets, weights = list(Y.T), [weight] * len(targets)
        rng = check_random_state(self.random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=len(targets))
        kept, held = np.arange(X.shape[0]), None
        if self.early_stopping:
            kept, held = split(labels, len(kept), self.validation_fraction, rng)
        design = Design(X if held is None else X[kept])
        watched = None if held is None else Design(X[held])

        def fit_one(place: int) -> Fit:
            y, weight, seed = targets[place], weights[place], int(seeds[place])
            w, b = self._start(place, X.shape[1])
            if watched is None:
                task = self._task(design, y, weight, seed, self._report(None))
            else:
                apart = [None if weight is None else weight[part] for part in (kept, held)]
                watch = self._task(watched, y[held], apart[1], seed)
                task = self._task(design, y[kept], apart[0], seed, self._report(watch))
            return fit(task, self._policy(), self.dual, w, b)

        run = Parallel(n_jobs=self.n_jobs, prefer="threads")
        fits = run(delayed(fit_one)(place) for place in range(len(targets)))
        self._store([f.w for f in fits], [f.b for f in fits], [f.visits for f in fits], X.dtype)
        self.n_iter_ = max(f.n_passes for f in fits)
        self.dual_gap_ = max(f.gap for f in fits)
        self._stream = Stream()
        if not (self.early_stopping or all(f.converged for f in fits)):
            self._warn()

    def _fit_together(self, X: Any, codes: Array, n_classes: int, weight: Any) -> None:
        """Fit all classes in one softmax."""
        if self.early_stopping:
            raise ValueError("loss='multinomial' takes no early_stopping; set it to False")
        start: Any = None
        intercepts: Any = 0.0
        if self.warm_start and hasattr(self, "coef_"):
            coefs, offsets = self._rows()
            if coefs.shape == (n_classes, X.shape[1]):
                start, intercepts = coefs, offsets
        X, Y, weight = merged(X, codes[:, None].astype(np.float64), weight)
        codes = Y[:, 0].astype(np.int64)
        task = self._task(Design(X), np.where(codes == 0, 1.0, -1.0), weight, 0)
        found = fit_multinomial(task, codes, n_classes, start, intercepts)
        self._store(found.w, found.b, [found.visits] * len(found.w), X.dtype)
        self.n_iter_, self.dual_gap_ = found.n_passes, found.gap
        if not found.converged:
            self._warn()

    def _warn(self) -> None:
        remedy = "standardise the columns or penalise more"
        if self.n_iter_ >= self.max_iter:
            remedy = f"raise max_iter, {remedy}"
        warnings.warn(
            f"no convergence to tol={self.tol} in {self.n_iter_} passes: the objective is within "
            f"{self.dual_gap_:.3g} of its minimum; {remedy}",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _policy(self) -> Any:
        if self.policy == "adaptive" and self.loss in ("squared", "huber"):
            return SHUFFLED
        return NAMED[self.policy] if isinstance(self.policy, str) else self.policy

    def _start(self, place: int, n_features: int) -> tuple[Floats | None, float]:
        """Return the last solution of a warm start, or nothing."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return None, 0.0
        coefs, intercepts = self._rows()
        if place >= len(coefs) or coefs.shape[1] != n_features:
            return None, 0.0
        return coefs[place], float(intercepts[place]) if self.fit_intercept else 0.0

    def _rows(self) -> tuple[Floats, Floats]:
        """Return the coefficients as dense rows of doubles, and the intercepts."""
        coefs = self.coef_.toarray() if sparse.issparse(self.coef_) else self.coef_  # type: ignore[attr-defined]
        coefs = np.atleast_2d(np.asarray(coefs, np.float64))
        return coefs, np.broadcast_to(np.asarray(self.intercept_, np.float64), len(coefs))

    def _report(self, watch: Task | None) -> Report | None:
        """Return what is done at each stopping test: print, and watch the held-out loss."""
        if watch is None and not self.verbose:
            return None
        best, waited = np.inf, 0

        def report(n_passes: int, gap: float, w: Floats, b: float) -> bool:
            nonlocal best, waited
            if self.verbose:
                print(f"pass {n_passes}: gap {gap:.3g} of the best constant's loss")
            if watch is None:
                return False
            loss = watch.terms(watch.design.margins(w) + b)[0]
            waited = 0 if loss < best * (1.0 - self.tol) else waited + 1
            best = min(best, loss)
            return waited >= self.n_iter_no_change  # type: ignore[no-any-return]

        return report

    def _stream_targets(
        self, X: Any, targets: list[Floats], weights: list[Any], codes: Any
    ) -> None:
        """Make one pass over the rows of a chunk; with codes, for one softmax over all classes."""
        memory = getattr(self, "_stream", None) or Stream()
        self._stream = memory
        coefs, intercepts = self._rows()
        design, tasks = Design(X), zip(targets, weights, strict=True)
        if codes is not None:
            task = self._task(design, targets[0], weights[0], 0)
            ws, bs = memory.step(task, 0, coefs, intercepts, codes)
        else:
            ws, bs = np.empty_like(coefs), np.empty(len(coefs))
            for k, (y, weight) in enumerate(tasks):
                task = self._task(design, y, weight, 0)
                found = memory.step(task, k, coefs[k : k + 1], intercepts[k : k + 1])
                ws[k], bs[k] = found[0][0], found[1][0]
        p = X.shape[1]
        self._store(ws, bs, [np.full(p, 1.0 / p)] * len(ws), X.dtype)
        self.n_iter_ = 1

    def _flatten(self, n_dims: int) -> Any:
        """Return the model; several targets keep a row each."""
        return self

    def _store(self, ws: Any, bs: Any, laws: list[Floats], dtype: Any) -> None:
        """Keep coefficients, intercepts and sampling weights, one row per target."""
        coefs, intercepts = np.stack(ws), np.array(bs)
        if not (np.all(np.isfinite(coefs)) and np.all(np.isfinite(intercepts))):
            raise FloatingPointError("the fit diverged; standardise X")
        self.coef_, self.intercept_ = coefs.astype(dtype), intercepts.astype(dtype)
        self.sampling_weights_ = np.stack(laws)


def split(labels: Array | None, n: int, share: float, rng: Any) -> tuple[Array, Array]:
    """Return the samples to fit and those to watch, with all classes in both where that can be."""
    seed = rng.randint(2**31 - 1)
    if labels is not None:
        counts = np.unique(labels, return_counts=True)[1]
        n_held = int(np.ceil(share * n))
        if counts.min() < 2 or min(n_held, n - n_held) < len(counts):
            labels = None
    kept, held = train_test_split(np.arange(n), test_size=share, random_state=seed, stratify=labels)
    return np.sort(kept), np.sort(held)
