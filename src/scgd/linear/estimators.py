"""scikit-learn estimators: linear models fitted by coordinate sampling."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.special import softmax
from sklearn.base import RegressorMixin
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from scgd.linear.base import LinearModel, checks_parameters
from scgd.typing import Array, Floats


class SCGDRegressor(RegressorMixin, LinearModel):
    r"""Linear regression by coordinate sampling.

    Minimises

    .. math:: \frac{1}{\sum w} \sum_i w_i\, \ell(x_i^\top w + b, y_i)
              + \alpha \Big(\rho \|w\|_1 + \frac{1 - \rho}{2} \|w\|_2^2\Big)

    with :math:`\rho` 0 for ``penalty="l2"``, 1 for ``"l1"`` and ``l1_ratio`` for ``"elasticnet"``;
    the intercept *b* is not penalised.

    Parameters
    ----------
    loss
        ``"squared"`` (half the square) or ``"huber"``.
    penalty, alpha, l1_ratio
        The penalty above; ``None`` for none.
    epsilon
        Where the Huber loss turns from a parabola into a line.
    fit_intercept
        Whether to fit *b*.
    policy
        Which coordinates to visit. ``"adaptive"`` takes the solver that suits the problem: Newton
        steps for few features, else sweeps over working sets in the order of
        :class:`~scgd.Adaptive`. ``"musketeer"`` (half of the draws by gain, half uniform),
        ``"uniform"`` or a policy object: sweeps over all coordinates, in its order.
    dual
        Whether to visit samples instead of coordinates (hinge, squared hinge and logistic loss
        with an l2 penalty only); ``"auto"`` does so for sparse data and the hinge.
    max_iter, tol
        Passes at most (one visit per coordinate or sample, or a Newton step), and the duality gap
        at which to stop, relative to the loss of the best constant. Without a penalty there is no
        such gap; the fit then stops by what a pass, or a Newton step, still gains.
    early_stopping, validation_fraction, n_iter_no_change
        Hold out samples and stop when their loss did not improve at so many stopping tests.
    random_state
        Seed of the coordinate draws.
    warm_start
        Start from the last solution.
    verbose
        Print a line at each stopping test.
    n_jobs
        Threads over several targets or classes, as everywhere in scikit-learn.

    Attributes
    ----------
    coef_, intercept_
        The solution.
    sampling_weights_
        The share of each coordinate in the visits, or the probability with which the policy came
        to draw it; equal where all coordinates move at once.
    n_iter_
        Passes made.
    dual_gap_
        A bound on how far the objective above is from its minimum; infinite without a penalty.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> SCGDRegressor(alpha=0.0).fit(X, [1.0, 3.0, 5.0]).predict([[3.0]]).round(6)
    array([7.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearModel._parameter_constraints,
        "loss": [StrOptions({"squared", "huber"})],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        loss: str = "squared",
        *,
        penalty: str | None = "l2",
        alpha: float = 1e-4,
        l1_ratio: float = 0.15,
        epsilon: float = 1.35,
        fit_intercept: bool = True,
        policy: Any = "adaptive",
        dual: bool | str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.policy = policy
        self.dual = dual
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.n_jobs = n_jobs

    @checks_parameters
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SCGDRegressor:
        """Fit the model.

        Parameters
        ----------
        X, y
            Data, dense or sparse, and real targets; one column for each of several targets.
        sample_weight
            One weight per sample.
        """
        X, y = self._check_Xy(X, y, reset=True, y_numeric=True, multi_output=True)
        self._fit_targets(X, *self._targets(y, checked_weight(sample_weight, X)))
        return self._flatten(y.ndim)

    @checks_parameters
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> SCGDRegressor:
        """Make one pass over the rows of a chunk of data, in their order.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        """
        first = not hasattr(self, "coef_")
        X, y = self._check_Xy(X, y, reset=first, y_numeric=True, multi_output=True)
        targets, weights = self._targets(y, checked_weight(sample_weight, X))
        if first:
            self.coef_, self.intercept_ = np.zeros((len(targets), X.shape[1])), np.zeros(1)
        elif len(targets) != len(self._rows()[0]):
            raise ValueError(f"y has {len(targets)} targets where the first chunk had "
                             f"{len(self._rows()[0])}")  # fmt: skip
        self._stream_targets(X, targets, weights, None)
        return self._flatten(y.ndim)

    def _targets(self, y: Array, weight: Any) -> tuple[list[Floats], list[Any]]:
        """Return an array of doubles per target, and the weights for each."""
        targets = list(np.atleast_2d(np.asarray(y, np.float64).T))
        return targets, [weight] * len(targets)

    def _flatten(self, n_dims: int) -> SCGDRegressor:
        """Keep rows for a matrix of targets only, as scikit-learn does."""
        if n_dims == 1:
            self.coef_, self.sampling_weights_ = self.coef_[0], self.sampling_weights_[0]
        return self

    def __sklearn_tags__(self) -> Any:
        """Declare several targets."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Any) -> Floats:
        """Return the predicted targets."""
        X = self._check_X(X)
        margins = safe_sparse_dot(X, self.coef_.T, dense_output=True)
        if sparse.issparse(self.coef_) and np.shape(margins)[-1] == 1:
            margins = np.ravel(margins)
        return np.asarray(margins) + self.intercept_  # type: ignore[no-any-return]


def has_probabilities(model: Any) -> bool:
    """Tell whether the loss of a model is that of probabilities."""
    return model.loss in ("logistic", "multinomial")


class SCGDClassifier(LinearClassifierMixin, LinearModel):
    r"""Linear classification by coordinate sampling; several classes one against the rest.

    Minimises the same objective as :class:`SCGDRegressor` with a loss of the margin.

    Parameters
    ----------
    loss
        ``"logistic"``, ``"hinge"`` or ``"squared-hinge"``, several classes one against the rest; or
        ``"multinomial"``, one softmax over all classes (for two classes the logistic loss).
    penalty, alpha, l1_ratio, fit_intercept, policy, dual, max_iter, tol
        As for :class:`SCGDRegressor`.
    early_stopping, validation_fraction, n_iter_no_change, random_state, warm_start, verbose, n_jobs
        As for :class:`SCGDRegressor`.
    class_weight
        ``None``, ``"balanced"`` or a weight for each class.

    Attributes
    ----------
    classes_
        The classes.
    coef_, intercept_, sampling_weights_
        As for :class:`SCGDRegressor`, one row per class (one row for two classes).
    n_iter_, dual_gap_
        Passes made and the bound, the most over the classes.

    Examples
    --------
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> SCGDClassifier(alpha=0.01).fit(X, ["no", "no", "yes", "yes"]).predict([[0.5]])
    array(['yes'], dtype='<U3')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearModel._parameter_constraints,
        "loss": [StrOptions({"logistic", "multinomial", "hinge", "squared-hinge"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }
    epsilon = None

    def __init__(
        self,
        loss: str = "logistic",
        *,
        penalty: str | None = "l2",
        alpha: float = 1e-4,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        class_weight: Any = None,
        policy: Any = "adaptive",
        dual: bool | str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.policy = policy
        self.dual = dual
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.n_jobs = n_jobs

    @checks_parameters
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SCGDClassifier:
        """Fit the model.

        Parameters
        ----------
        X, y
            Data, dense or sparse, and labels of any kind.
        sample_weight
            One weight per sample.
        """
        X, y = self._check_Xy(X, y, reset=True, y_numeric=False)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"a classifier needs at least two classes, got 1 class: {self.classes_}"
            )
        targets, weights = self._targets(y, checked_weight(sample_weight, X))
        if self.loss == "multinomial" and len(self.classes_) > 2:
            self._fit_together(X, np.searchsorted(self.classes_, y), len(self.classes_), weights[0])
        else:
            self._fit_targets(X, targets, weights, labels=y)
        return self

    @checks_parameters
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> SCGDClassifier:
        """Make one pass over the rows of a chunk of data, in their order.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        classes
            All classes that will occur; needed in the first call.
        """
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs the labels of all chunks; give partial_fit a dict "
                "of weights, for instance from sklearn.utils.compute_class_weight"
            )
        first = not hasattr(self, "coef_")
        X, y = self._check_Xy(X, y, reset=first, y_numeric=False)
        check_classification_targets(y)
        if first:
            if classes is None:
                raise ValueError("classes must be given in the first call of partial_fit")
            self.classes_ = np.unique(classes)
            n_rows = 1 if len(self.classes_) == 2 else len(self.classes_)
            self.coef_, self.intercept_ = np.zeros((n_rows, X.shape[1])), np.zeros(n_rows)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} differ from those of the first call")
        if unknown := set(np.unique(y).tolist()) - set(self.classes_.tolist()):
            raise ValueError(f"y holds classes that were not announced: {sorted(unknown)}")
        targets, weights = self._targets(y, checked_weight(sample_weight, X))
        together = self.loss == "multinomial" and len(self.classes_) > 2
        codes = np.searchsorted(self.classes_, y) if together else None
        self._stream_targets(X, targets, weights, codes)
        return self

    def _targets(self, y: Array, weight: Any) -> tuple[list[Floats], list[Any]]:
        """Return targets -1 and 1 and weights, once for two classes, else once per class."""
        if self.class_weight is not None:
            by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
            factors = by_class[np.searchsorted(self.classes_, y)]
            weight = factors if weight is None else weight * factors
        positive = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        targets = [np.where(y == label, 1.0, -1.0) for label in positive]
        return targets, [weight] * len(targets)

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class; those of one against the rest are normalised."""
        check_is_fitted(self)
        if self.loss == "multinomial" and len(self.classes_) > 2:
            return np.asarray(softmax(self.decision_function(X), axis=1))
        return np.asarray(self._predict_proba_lr(X))

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


def checked_weight(sample_weight: Any, X: Any) -> Floats | None:
    """Return sample weights, refusing negative ones and nothing but zeros."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not np.any(weight > 0):
        raise ValueError("sample_weight is zero for all samples; give some a positive weight")
    return np.asarray(weight)
