"""Penalties chosen along a path: the path itself, the choice, and that nothing else decides it."""

import inspect
from collections import Counter

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV
from sklearn.metrics import make_scorer, mean_squared_error
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from scgd.linear import SCGDClassifier, SCGDClassifierCV, SCGDRegressor, SCGDRegressorCV
from scgd.linear.pathcv import CHOSEN
from scgd.linear.paths import alpha_path, best_place

LEAST = {"SCGDRegressorCV": 55, "SCGDClassifierCV": 58}
SMALL = {"alphas": 3, "cv": 2, "random_state": 0}
mark = parametrize_with_checks([SCGDRegressorCV(**SMALL), SCGDClassifierCV(**SMALL)])
CHECKS = list(mark.args[1])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(mark.args[0], CHECKS, **mark.kwargs)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_all_checks_are_made():
    counts = Counter(type(getattr(c, "values", c)[0]).__name__ for c in CHECKS)
    assert all(counts[name] >= least for name, least in LEAST.items()), counts


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 6)) * [1, 2, 0.5, 1, 1, 3] + 1.0
    y = X @ [1.5, 0, 0, -1, 0, 0] + rng.normal(size=80)
    return X, y


@pytest.mark.parametrize(
    ("single", "path"), [(SCGDRegressor, SCGDRegressorCV), (SCGDClassifier, SCGDClassifierCV)]
)
def test_takes_what_the_single_estimator_takes(single, path):
    mine, its = (inspect.signature(cls).parameters for cls in (path, single))
    assert set(its) - CHOSEN == set(mine) - {"alphas", "eps", "cv", "scoring", "n_jobs"}
    assert all(mine[name].default == its[name].default for name in set(its) - CHOSEN)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared-hinge"])
@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_the_first_penalty_is_the_least_that_leaves_nothing(data, loss, penalty, fit_intercept):
    X, y = data
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    kind = SCGDRegressor if loss == "squared" else SCGDClassifier
    y = y if loss == "squared" else np.where(y > 0.5, "b", "a")
    share = {"l1": 1.0, "elasticnet": 0.3}[penalty]
    words = {"loss": loss, "fit_intercept": fit_intercept}
    first = alpha_path(X, y, weight, l1_share=share, **words)[0]
    for factor, n_nonzero in ((1.001, 0), (0.98, 1)):
        model = kind(
            penalty=penalty, l1_ratio=0.3, alpha=factor * first, tol=1e-10, random_state=0, **words
        )
        assert np.count_nonzero(model.fit(X, y, weight).coef_) == n_nonzero


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_l1_the_first_penalty_is_the_sum_of_variances(data, fit_intercept):
    X, y = data
    weight = np.arange(1.0, len(y) + 1)
    center = np.average(X, axis=0, weights=weight) if fit_intercept else 0.0
    expected = np.average((X - center) ** 2, axis=0, weights=weight).sum()
    for matrix in (X, sparse.csr_array(X)):
        path = alpha_path(matrix, y, weight, fit_intercept=fit_intercept, n_alphas=4)
        np.testing.assert_allclose(path, expected * np.array([1, 1e-2, 1e-4, 1e-6]))
    assert alpha_path(X, y, n_alphas=1).shape == (1,)
    assert alpha_path(np.zeros((5, 2)), np.zeros(5))[0] == 1.0


def test_chooses_as_lasso_does(data):
    X, y = data
    folds = list(KFold(4, shuffle=True, random_state=1).split(X))
    scoring = make_scorer(mean_squared_error, greater_is_better=False)
    model = SCGDRegressorCV(
        penalty="l1", cv=folds, alphas=15, tol=1e-12, scoring=scoring, random_state=0
    ).fit(X, y)
    reference = LassoCV(alphas=model.alphas_, cv=folds, tol=1e-9, max_iter=10_000).fit(X, y)
    assert model.alpha_ == reference.alpha_
    np.testing.assert_allclose(-model.scores_, reference.mse_path_, rtol=1e-4)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-4)
    assert model.best_score_ == model.scores_.mean(axis=1).max()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_warm_starts_save_passes_and_change_nothing(seed):
    """Neighbours alike, and a loss that takes more than a look at the products of columns."""
    rng = np.random.default_rng(seed)
    X = np.cumsum(rng.normal(size=(150, 60)), axis=1) / np.sqrt(np.arange(1, 61))
    y = X[:, :5] @ [1.5, 0, 0, -1, 0.5] + rng.normal(size=150) > 0
    alphas = np.geomspace(0.2, 0.02, 10)
    model = SCGDClassifierCV(alphas=alphas, penalty="l1", tol=1e-8, random_state=0).fit(X, y)
    cold = SCGDClassifier(penalty="l1", alpha=model.alpha_, tol=1e-8, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-5)
    assert model.n_iter_ < cold.n_iter_ and not model.model_.warm_start


def test_the_path_changes_nothing_of_a_lasso(data):
    X, y = data
    model = SCGDRegressorCV(penalty="l1", tol=1e-10, random_state=0).fit(X, y)
    cold = SCGDRegressor(penalty="l1", alpha=model.alpha_, tol=1e-10, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-5)


def test_the_number_of_threads_does_not_matter(data):
    X, y = data
    one = SCGDClassifierCV(random_state=2).fit(X, y > 0.5)
    two = clone(one).set_params(n_jobs=2).fit(X, y > 0.5)
    np.testing.assert_array_equal(one.scores_, two.scores_)
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_sorted_rows_do_no_harm(data):
    X, y = data
    order = np.argsort(y)
    model = SCGDRegressorCV(random_state=0).fit(X[order], y[order])
    assert model.best_score_ > 0.5
    assert SCGDRegressorCV(cv=KFold(5), random_state=0).fit(X[order], y[order]).best_score_ < 0


def test_groups_and_stratified_splitters(data):
    X, y = data
    groups = np.arange(len(y)) // 10
    model = SCGDRegressorCV(cv=GroupKFold(4), alphas=3, random_state=0).fit(X, y, groups=groups)
    assert model.scores_.shape == (3, 4)
    labels = np.digitize(y, [0, 1])
    model = SCGDClassifierCV(cv=StratifiedKFold(3), alphas=3).fit(X, labels)
    assert model.scores_.shape == (3, 3) and len(model.classes_) == 3
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


def test_balanced_classes_are_heard():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + rng.normal(size=200) > 1.5).astype(int)
    plain, balanced = (
        SCGDClassifierCV(random_state=0, alphas=5, class_weight=w).fit(X, y)
        for w in (None, "balanced")
    )
    assert balanced.predict(X).sum() > 2 * plain.predict(X).sum()


def test_a_path_warns_once(data):
    X, y = data
    with pytest.warns(ConvergenceWarning) as caught:
        SCGDRegressorCV("huber", penalty="l1", max_iter=1, alphas=5, random_state=0).fit(X, y)
    assert len(caught) == 1


def test_own_penalties_are_sorted_and_checked(data):
    X, y = data
    model = SCGDRegressorCV(alphas=[0.1, 1.0, 0.01, 0.1], cv=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.alphas_, [1.0, 0.1, 0.01])
    for wrong in ([], [-1.0], [np.nan], [[1.0]], [np.inf]):
        with pytest.raises(ValueError, match="alphas must be"):
            SCGDRegressorCV(alphas=wrong).fit(X, y)
    with pytest.raises(ValueError, match="'penalty' parameter"):
        SCGDRegressorCV(penalty=None).fit(X, y)


def test_of_equal_scores_the_strongest_wins():
    assert best_place(np.array([[0.5, 0.5], [0.9, 0.7], [0.7, 0.9]])) == 1
    assert best_place(np.array([[np.nan, 0.5], [0.4, 0.4]])) == 1
    with pytest.raises(ValueError, match="no score is a number"):
        best_place(np.full((2, 2), np.nan))


def test_a_list_of_ratios_has_a_path_for_each(data):
    X, y = data
    parts = {"penalty": "elasticnet", "alphas": 6, "cv": KFold(3), "random_state": 0}
    both = SCGDRegressorCV(l1_ratio=[0.2, 0.9], **parts).fit(X, y)
    alone = [SCGDRegressorCV(l1_ratio=ratio, **parts).fit(X, y) for ratio in (0.2, 0.9)]
    assert both.scores_.shape == (2, 6, 3) and both.alphas_.shape == (2, 6)
    best = max(alone, key=lambda model: model.best_score_)
    assert both.alpha_ == best.alpha_ and both.l1_ratio_ == best.model_.l1_ratio
    np.testing.assert_array_equal(both.coef_, best.coef_)


def test_the_path_of_coefficients_and_gaps_ends_at_the_model(data):
    X, y = data
    model = SCGDRegressorCV(penalty="l1", alphas=8, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.coef_path_[-1], model.coef_)
    assert (
        len(model.coef_path_) == len(model.dual_gaps_) and model.dual_gap_ == model.dual_gaps_[-1]
    )
    assert np.all(model.dual_gaps_ <= 1e-6 * 0.5 * y.var() + 1e-12)


def test_scores_are_those_of_scikit_learn(data):
    X, y = data
    weight = np.arange(1.0, len(y) + 1)
    parts = {"alphas": 4, "cv": KFold(3), "random_state": 0}
    for kind, target, scoring in (
        (SCGDRegressorCV, y, "r2"),
        (SCGDClassifierCV, np.digitize(y, [0, 2]), "accuracy"),
    ):
        ours, theirs = (kind(scoring=s, **parts).fit(X, target, weight) for s in (None, scoring))
        np.testing.assert_allclose(ours.scores_, theirs.scores_, rtol=1e-9)


def test_multinomial_has_probabilities(data):
    X, y = data
    labels = np.digitize(y, [0, 2])
    model = SCGDClassifierCV("multinomial", alphas=4, cv=3, random_state=0).fit(X, labels)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("ratio", [[0.5, 1.5], [-0.1, 0.5]])
def test_shares_of_l1_lie_between_none_and_all(data, ratio):
    with pytest.raises(ValueError, match="l1_ratio must be a number from 0 to 1 or a list"):
        SCGDRegressorCV(l1_ratio=ratio).fit(*data)
