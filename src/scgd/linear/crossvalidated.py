"""Estimators that choose the strength of their penalty by cross-validation along a path."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from scgd.linear.base import checks_parameters
from scgd.linear.estimators import SCGDClassifier, SCGDRegressor
from scgd.linear.pathcv import PathCV, path_constraints
from scgd.typing import Floats


class SCGDRegressorCV(RegressorMixin, PathCV):
    r"""Linear regression whose penalty is chosen by cross-validation along a path.

    For each fold the models of :class:`SCGDRegressor` are fitted from the strongest penalty to the
    weakest, each from the last one's solution; the penalty with the best mean score over the folds,

    .. math:: \hat\alpha = \arg\max_\alpha \frac1K \sum_{k=1}^K
              \mathrm{score}_k(\hat w_{-k}(\alpha)),

    is fitted to all the data. Folds are shuffled, unlike scikit-learn's, so that a sorted file does
    no harm; give a splitter as ``cv`` for groups or time.

    Parameters
    ----------
    loss, penalty, l1_ratio, epsilon, fit_intercept, policy, dual
        As for :class:`SCGDRegressor`; there must be a penalty.
    max_iter, tol
        As for the single estimator; fits of folds, which are only compared, stop at 100 ``tol``. A
        list of ``l1_ratio`` has a path for each.
    random_state, verbose
        As for :class:`SCGDRegressor`, for each fit.
    alphas
        How many penalties to try (see :func:`scgd.linear.paths.alpha_path`), or which ones.
    eps
        The weakest penalty over the strongest (default 1e-3, 1e-6 for ``penalty="l2"``).
    cv
        How many shuffled folds (default 5), or a splitter, or an iterable of splits.
    scoring
        A scorer or its name; default R2.
    n_jobs
        Threads over the folds, as everywhere in scikit-learn. The result does not depend on it.

    Attributes
    ----------
    alpha_, alphas_, scores_, best_score_
        The penalty chosen, those tried (the strongest first), their scores (one column per fold),
        and the mean score of the one chosen; with a list of ratios a first axis for them.
    l1_ratio_
        The ratio chosen.
    coef_path_, dual_gaps_
        Coefficients and duality gaps of the fits to all the data, from the strongest penalty to
        the one chosen.
    model_
        The :class:`SCGDRegressor` fitted to all the data at ``alpha_``.
    coef_, intercept_, sampling_weights_, n_iter_
        Those of ``model_``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> y = X @ [3.0, 0.0, 0.0, -2.0, 0.0] + 0.1 * rng.normal(size=60)
    >>> model = SCGDRegressorCV(penalty="l1", random_state=0).fit(X, y)
    >>> model.coef_.round(1) + 0.0
    array([ 3.,  0.,  0., -2.,  0.])
    """

    _single = SCGDRegressor
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = path_constraints(SCGDRegressor)

    def __init__(
        self,
        loss: str = "squared",
        *,
        alphas: Any = 20,
        eps: float | None = None,
        cv: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        penalty: str = "l2",
        l1_ratio: Any = 0.15,
        epsilon: float = 1.35,
        fit_intercept: bool = True,
        policy: Any = "adaptive",
        dual: bool | str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.alphas = alphas
        self.eps = eps
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.policy = policy
        self.dual = dual
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @checks_parameters
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> SCGDRegressorCV:
        """Choose the penalty and fit the model.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`SCGDRegressor.fit`; weights count in the scores too.
        groups
            Groups of the samples, for splitters that keep them together.
        """
        X, y = self._check_Xy(X, y, y_numeric=True)
        self._fit_path(X, y, sample_weight, groups, np.ones(X.shape[0]))
        return self


class SCGDClassifierCV(ClassifierMixin, PathCV):
    r"""Linear classification whose penalty is chosen by cross-validation along a path.

    As :class:`SCGDRegressorCV`, with stratified folds.

    Parameters
    ----------
    loss, penalty, l1_ratio, fit_intercept, class_weight, policy, dual
        As for :class:`SCGDClassifier`; there must be a penalty. ``"balanced"`` weights are those of
        all the data.
    max_iter, tol
        As for the single estimator; fits of folds, which are only compared, stop at 100 ``tol``. A
        list of ``l1_ratio`` has a path for each.
    random_state, verbose
        As for :class:`SCGDClassifier`, for each fit.
    alphas, eps, cv, n_jobs
        As for :class:`SCGDRegressorCV`.
    scoring
        A scorer or its name; default accuracy.

    Attributes
    ----------
    alpha_, alphas_, scores_, best_score_, l1_ratio_, coef_path_, dual_gaps_
        As for :class:`SCGDRegressorCV`.
    model_
        The :class:`SCGDClassifier` fitted to all the data at ``alpha_``.
    classes_, coef_, intercept_, sampling_weights_, n_iter_
        Those of ``model_``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> y = np.where(X[:, 1] > 0, "up", "down")
    >>> model = SCGDClassifierCV(random_state=0, n_jobs=2).fit(X, y)
    >>> model.scores_.shape, model.predict([[0.0, 1.0, 0.0, 0.0, 0.0]])
    ((20, 5), array(['up'], dtype='<U4'))
    """

    _single = SCGDClassifier
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = path_constraints(SCGDClassifier)

    def __init__(
        self,
        loss: str = "logistic",
        *,
        alphas: Any = 20,
        eps: float | None = None,
        cv: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        penalty: str = "l2",
        l1_ratio: Any = 0.15,
        fit_intercept: bool = True,
        class_weight: Any = None,
        policy: Any = "adaptive",
        dual: bool | str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.alphas = alphas
        self.eps = eps
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.policy = policy
        self.dual = dual
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @checks_parameters
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> SCGDClassifierCV:
        """Choose the penalty and fit the model.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`SCGDClassifier.fit`; weights count in the scores too.
        groups
            Groups of the samples, for splitters that keep them together.
        """
        X, y = self._check_Xy(X, y, y_numeric=False)
        check_classification_targets(y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(f"a classifier needs at least two classes, got 1 class: {classes}")
        if self.class_weight is None:
            self._fit_path(X, y, sample_weight, groups, np.ones(X.shape[0]))
            return self
        factors = compute_class_weight(self.class_weight, classes=classes, y=y)
        weights = dict(zip(classes.tolist(), factors.tolist(), strict=True))
        by_class = factors[np.searchsorted(classes, y)]
        self._fit_path(X, y, sample_weight, groups, by_class, class_weight=weights)
        return self

    @property
    def classes_(self) -> Any:
        """The classes."""
        return self.model_.classes_

    def decision_function(self, X: Any) -> Floats:
        """Return the margins."""
        X = self._check_X(X)
        return np.asarray(self.model_.decision_function(X))

    @available_if(lambda self: self.loss in ("logistic", "multinomial"))
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class."""
        X = self._check_X(X)
        return np.asarray(self.model_.predict_proba(X))

    @available_if(lambda self: self.loss in ("logistic", "multinomial"))
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the probabilities."""
        X = self._check_X(X)
        return np.asarray(self.model_.predict_log_proba(X))
