"""What the cross-validated estimators share: the path, the folds, the model that is chosen."""

from __future__ import annotations

import inspect
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import (
    BaseEstimator,
    clone,
    is_classifier,
)
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from scgd.checks import reals
from scgd.linear.paths import alpha_path, best_place, follow, path_scores
from scgd.typing import Array, Floats

__all__ = ["PathCV", "path_constraints"]

FLOATS = (np.float64, np.float32)
N_FOLDS = 5
CHOSEN = {"alpha", "warm_start"}
"""Parameters of the single estimators that the path sets itself."""


def path_constraints(single: Any) -> dict[str, list[Any]]:
    """Return the constraints of the single estimator's parameters and of the path's."""
    own = single._parameter_constraints.items()
    return {
        **{name: kinds for name, kinds in own if name not in CHOSEN},
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
    l1_ratio: float
    loss: str
    n_jobs: int | None
    penalty: str
    random_state: Any
    scoring: Any

    def __sklearn_tags__(self) -> Any:
        """Declare what the single estimator takes."""
        tags = super().__sklearn_tags__()
        single = get_tags(self._model())
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
        """Score the path on every fold, choose, and fit all the data down to the choice."""
        rng = check_random_state(self.random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=2)
        model = self._model(random_state=int(seeds[0]), **changes)
        if weight is not None:
            weight = _check_sample_weight(weight, X, dtype=np.float64, ensure_non_negative=True)
        self.alphas_ = self._alphas(X, y, by_class * (1.0 if weight is None else weight))
        folds = list(self._folds(y, int(seeds[1])).split(X, y, groups))
        scorer = check_scoring(model, scoring=self.scoring)
        parts = (X, y) if weight is None else (X, y, weight)

        def one(train: Array, test: Array) -> Floats:
            kept, held = ([_safe_indexing(p, rows) for p in parts] for rows in (train, test))
            return path_scores(clone(model), kept, held, self.alphas_, scorer)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = Parallel(n_jobs=self.n_jobs, prefer="threads")
            self.scores_ = np.stack(run(delayed(one)(*fold) for fold in folds), axis=1)
            place = best_place(self.scores_)
            weights = {} if weight is None else {"sample_weight": weight}
            for fitted in follow(model, X, y, self.alphas_[: place + 1], **weights):
                self.model_ = fitted
        self.model_.set_params(warm_start=False)
        self.alpha_, self.best_score_ = float(self.alphas_[place]), self.scores_[place].mean()
        for kind, message in {w.category: str(w.message) for w in caught}.items():
            warnings.warn(message, kind, stacklevel=3)  # one of each kind, not one per fit

    def _alphas(self, X: Any, y: Any, weight: Floats) -> Floats:
        """Return the penalties to try, the strongest first."""
        if not isinstance(self.alphas, Integral):
            alphas = reals(self.alphas, "alphas", "be a number of them or a list of numbers")
            if alphas.ndim != 1 or not len(alphas) or not np.all((alphas >= 0) & (alphas < np.inf)):
                raise ValueError(f"alphas must be a number or a list of numbers >= 0, got {alphas}")
            return np.unique(alphas)[::-1]
        if int(self.alphas) > MOST:
            raise ValueError(f"alphas must be at most {MOST} penalties, got {self.alphas}")
        share: float = {"l2": 0.0, "l1": 1.0}.get(self.penalty, self.l1_ratio)
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
    def n_iter_(self) -> Any:
        """Passes of the last fit."""
        return self.model_.n_iter_

    @property
    def sampling_weights_(self) -> Any:
        """Sampling weights of the last fit."""
        return self.model_.sampling_weights_
