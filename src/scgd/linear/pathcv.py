"""What the cross-validated estimators share: the path, the folds, the model that is chosen."""

from __future__ import annotations

import inspect
import warnings
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import (
    BaseEstimator,
    is_classifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from scgd.checks import reals
from scgd.linear.paths import Path, alpha_path, at_place, best_place, default_scores, fit_path
from scgd.typing import Array, Floats

FLOATS = (np.float64, np.float32)
N_FOLDS = 5
CHOSEN = {"alpha", "warm_start", "n_jobs", "early_stopping", "validation_fraction",
          "n_iter_no_change"}  # fmt: skip
"""Parameters of the single estimators that the path sets itself, or has no use for."""


def path_constraints(single: Any) -> dict[str, list[Any]]:
    """Return the constraints of the single estimator's parameters and of the path's."""
    own = single._parameter_constraints.items()
    return {
        **{name: kinds for name, kinds in own if name not in CHOSEN},
        "l1_ratio": [Interval(Real, 0, 1, closed="both"), "array-like"],
        "penalty": [StrOptions({"l2", "l1", "elasticnet"})],
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "eps": [Interval(Real, 0, 1, closed="neither"), None],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "n_jobs": [Integral, None],
    }


MOST = 100_000
"""Penalties of a path at most."""


class PathCV(BaseEstimator):
    """What both estimators share: the path, the folds, and the model fitted at the best penalty."""

    _single: ClassVar[Any]
    alphas: Any
    cv: Any
    eps: float | None
    fit_intercept: bool
    l1_ratio: Any
    loss: str
    n_jobs: int | None
    penalty: str
    random_state: Any
    scoring: Any
    tol: float

    def __sklearn_tags__(self) -> Any:
        """Declare what the single estimator takes."""
        tags = super().__sklearn_tags__()
        single = get_tags(self._single())
        tags.input_tags.sparse = single.input_tags.sparse
        tags.target_tags.multi_output = single.target_tags.multi_output
        return tags

    def _model(self, **changes: Any) -> Any:
        """Return a single estimator with this one's parameters."""
        names = set(inspect.signature(self._single.__init__).parameters) - CHOSEN - {"self"}
        return self._single(**{name: getattr(self, name) for name in names} | changes)

    def _fit_path(
        self, X: Any, y: Any, weight: Any, groups: Any, by_class: Any, **changes: Any
    ) -> None:
        """Score the paths on every fold, choose, and fit all the data down to the choice."""
        rng = check_random_state(self.random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=2)
        if weight is not None:
            weight = _check_sample_weight(weight, X, dtype=np.float64, ensure_non_negative=True)
        everyone = by_class * (1.0 if weight is None else weight)
        ratios = self._ratios()
        models = [self._model(random_state=int(seeds[0]), alpha=1.0, l1_ratio=ratio, **changes)
                  for ratio in ratios]  # fmt: skip
        for model in models:
            model._validate_params()
            if is_classifier(self):
                model.classes_ = np.unique(y)
        alphas = np.stack([self._alphas(X, y, everyone, ratio) for ratio in ratios])
        folds = list(self._folds(y, int(seeds[1])).split(X, y, groups))
        scorer = None if self.scoring is None else check_scoring(models[0], scoring=self.scoring)
        parts = (X, y, weight)

        def one(train: Array, test: Array) -> tuple[list[Floats], bool]:
            kept, held = ([None if part is None else _safe_indexing(part, rows) for part in parts]
                          for rows in (train, test))  # fmt: skip
            paths = [fit_path(m, kept[0], kept[1], kept[2], a, rough=True)
                     for m, a in zip(models, alphas, strict=True)]  # fmt: skip
            found = [scores(m, p, held, scorer, np.ndim(y))
                     for m, p in zip(models, paths, strict=True)]  # fmt: skip
            return found, all(path.converged for path in paths)

        run = Parallel(n_jobs=self.n_jobs, prefer="threads")
        found, converged = zip(*run(delayed(one)(*fold) for fold in folds), strict=True)
        all_scores = np.moveaxis(np.array(found), 0, -1)  # ratios x penalties x folds
        best = [best_place(part) for part in all_scores]
        means = [float(part[k].mean()) for part, k in zip(all_scores, best, strict=True)]
        ratio = int(np.nanargmax(means))
        place = best[ratio]
        path = fit_path(models[ratio], X, y, weight, alphas[ratio, : place + 1])
        self.model_ = at_place(models[ratio], path, place, np.ndim(y), X.dtype)
        self.model_.set_params(alpha=float(alphas[ratio, place]))
        several = np.ndim(self.l1_ratio) > 0
        self.alphas_ = alphas if several else alphas[0]
        self.scores_ = all_scores if several else all_scores[0]
        self.alpha_, self.l1_ratio_ = float(alphas[ratio, place]), ratios[ratio]
        self.best_score_, self.dual_gaps_ = means[ratio], path.gaps
        flat = self.model_.coef_.ndim == 1
        self.coef_path_ = path.coefs[:, 0] if flat else path.coefs
        if not (all(converged) and path.converged):
            warnings.warn(
                f"no convergence to tol={self.tol} of all fits of the path; raise max_iter, "
                "standardise the columns or penalise more",
                ConvergenceWarning, stacklevel=3,
            )  # fmt: skip

    def _ratios(self) -> list[float]:
        """Return the shares of l1 to try."""
        told = "be a number from 0 to 1 or a list of them"
        ratios = np.atleast_1d(reals(self.l1_ratio, "l1_ratio", told))
        if ratios.ndim != 1 or not len(ratios) or not np.all((ratios >= 0) & (ratios <= 1)):
            raise ValueError(f"l1_ratio must {told}, got {self.l1_ratio!r}")
        return [float(ratio) for ratio in ratios]

    def _alphas(self, X: Any, y: Any, weight: Floats, ratio: float) -> Floats:
        """Return the penalties to try, the strongest first."""
        if not isinstance(self.alphas, Integral):
            alphas = reals(self.alphas, "alphas", "be a number of them or a list of numbers")
            if alphas.ndim != 1 or not len(alphas) or not np.all((alphas >= 0) & (alphas < np.inf)):
                raise ValueError(f"alphas must be a number or a list of numbers >= 0, got {alphas}")
            return np.unique(alphas)[::-1]
        if int(self.alphas) > MOST:
            raise ValueError(f"alphas must be at most {MOST} penalties, got {self.alphas}")
        share: float = {"l2": 0.0, "l1": 1.0}.get(self.penalty, ratio)
        return alpha_path(
            X, y, weight, l1_share=share, n_alphas=int(self.alphas), span=self.eps,
            loss=self.loss, fit_intercept=self.fit_intercept,
        )  # fmt: skip

    def _folds(self, y: Any, seed: int) -> Any:
        """Return the folds: shuffled ones for a number, others as they are."""
        if self.cv is not None and not isinstance(self.cv, Integral):
            return check_cv(self.cv, y, classifier=is_classifier(self))
        kind = StratifiedKFold if is_classifier(self) else KFold
        return kind(int(self.cv or N_FOLDS), shuffle=True, random_state=seed)

    def _check_X(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, accept_sparse=["csr", "csc"], dtype=FLOATS)

    def _check_Xy(self, X: Any, y: Any, y_numeric: bool) -> Any:
        several = get_tags(self).target_tags.multi_output
        return validate_data(
            self, X, y, accept_sparse=["csr", "csc"], dtype=FLOATS,
            y_numeric=y_numeric, multi_output=several,
        )  # fmt: skip

    def predict(self, X: Any) -> Any:
        """Return what the model fitted at the best penalty predicts."""
        X = self._check_X(X)
        return self.model_.predict(X)

    @property
    def coef_(self) -> Any:
        """Coefficients at the best penalty."""
        return self.model_.coef_

    @property
    def intercept_(self) -> Any:
        """Intercept at the best penalty."""
        return self.model_.intercept_

    @property
    def dual_gap_(self) -> Any:
        """A bound on how far the last fit is from its minimum."""
        return self.model_.dual_gap_

    @property
    def n_iter_(self) -> Any:
        """Passes of the last fit."""
        return self.model_.n_iter_

    @property
    def sampling_weights_(self) -> Any:
        """Sampling weights of the last fit."""
        return self.model_.sampling_weights_


def scores(model: Any, path: Path, held: Any, scorer: Any, n_dims: int) -> Floats:
    """Return the scores of every fit of a path on samples held out."""
    X, y, weight = held
    if scorer is None:
        return default_scores(path, X, y, weight, getattr(model, "classes_", None))
    out, weights = np.empty(len(path.gaps)), {} if weight is None else {"sample_weight": weight}
    single = copy(model)
    for place in range(len(out)):
        out[place] = scorer(at_place(single, path, place, n_dims, X.dtype), X, y, **weights)
    return out
