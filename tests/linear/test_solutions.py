"""Fitted models agree with scikit-learn's own solvers of the same objectives."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets
from sklearn.linear_model import ElasticNet, HuberRegressor, Lasso, LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from scgd import Uniform
from scgd.linear import SCGDClassifier, SCGDRegressor
from scgd_paper.linear.inputs import as_problem
from scgd_paper.linear.objective import objective

TIGHT = {"tol": 1e-12, "max_iter": 100_000, "random_state": 0}


def standardized(X, y):
    return StandardScaler().fit_transform(X), y


def text_like(n_samples=400, n_features=1500, seed=0):
    rng = np.random.default_rng(seed)
    shape = (n_samples, n_features)
    X = sparse.csr_array(rng.random(shape) * (rng.random(shape) < 0.02))
    return X, X @ rng.normal(size=n_features) + 0.1 * rng.normal(size=n_samples)


def wide(seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 200)) * np.arange(1.0, 201.0) ** -0.7
    return X, X @ rng.normal(size=200) + 0.1 * rng.normal(size=60)


def units(seed=2):
    """Columns in wildly different units, one of them constant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 8)) * 10.0 ** np.array([-3, -2, -1, 0, 1, 2, 3, 0])
    X[:, -1] = 4.0
    return X, X @ rng.normal(size=8) + 1e3 + rng.normal(size=150)


LABELLED = {
    "breast cancer": lambda: standardized(*datasets.load_breast_cancer(return_X_y=True)),
    "wine": lambda: standardized(*datasets.load_wine(return_X_y=True)),
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "digits": lambda: standardized(*datasets.load_digits(n_class=3, return_X_y=True)),
    "moons": lambda: datasets.make_moons(200, noise=0.3, random_state=0),
}
REAL = {
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
    "linnerud": lambda: (lambda d: (d.data, d.target[:, 0]))(datasets.load_linnerud()),
    "friedman": lambda: datasets.make_friedman1(200, random_state=0),
    "wide": wide,
    "units": units,
    "text-like": text_like,
}


def value(X, y, coef, intercept, **penalised):
    """Return the objective of a linear model with an intercept in the column of ones."""
    problem = as_problem(X, y, **penalised)
    theta = np.append(np.ravel(coef), np.ravel(intercept))
    return float(objective(problem, theta[None])[0])


def signs(y):
    return np.where(y == y.max(), 1.0, -1.0)


@pytest.mark.parametrize("name", REAL)
def test_ridge(name):
    X, y = REAL[name]()
    alpha = 0.01
    theirs = Ridge(alpha=alpha * len(y), solver="auto" if sparse.issparse(X) else "svd").fit(X, y)
    ours = SCGDRegressor(alpha=alpha, **TIGHT).fit(X, y)
    best = value(X, y, theirs.coef_, theirs.intercept_, l2=alpha)
    found = value(X, y, ours.coef_, ours.intercept_, l2=alpha)
    assert found <= best * (1 + 1e-6)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_elastic_net_and_the_support_of_the_lasso(name, l1_ratio):
    X, y = REAL[name]()
    alpha = 0.02 * float(np.abs(X.T @ (y - y.mean())).max()) / len(y)
    X = sparse.csc_array(X) if sparse.issparse(X) else X
    parts = {"alpha": alpha, "tol": 1e-12, "max_iter": 200_000}
    theirs = Lasso(**parts) if l1_ratio == 1 else ElasticNet(l1_ratio=l1_ratio, **parts)
    theirs.fit(X, y)
    penalty = {"penalty": "elasticnet", "l1_ratio": l1_ratio, "alpha": alpha}
    ours = SCGDRegressor(**penalty, **TIGHT | {"tol": 1e-17}).fit(X, y)
    weights = {"l1": alpha * l1_ratio, "l2": alpha * (1 - l1_ratio)}
    best = value(X, y, theirs.coef_, theirs.intercept_, **weights)
    found = value(X, y, ours.coef_, ours.intercept_, **weights)
    assert found <= best * (1 + 1e-6)
    np.testing.assert_array_equal(ours.coef_ != 0, theirs.coef_ != 0)


@pytest.mark.parametrize("name", LABELLED)
def test_logistic_regression(name):
    X, labels = LABELLED[name]()
    y, alpha = signs(labels), 1e-3
    theirs = LogisticRegression(C=1 / (alpha * len(y)), tol=1e-10, max_iter=100_000).fit(X, y)
    ours = SCGDClassifier(alpha=alpha, **TIGHT).fit(X, y)
    parts = {"loss": "logistic", "l2": alpha}
    best = value(X, y, theirs.coef_, theirs.intercept_, **parts)
    assert value(X, y, ours.coef_, ours.intercept_, **parts) <= best * (1 + 1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("loss", "tolerance"), [("squared-hinge", 1e-6), ("hinge", 1e-6)])
@pytest.mark.parametrize("name", LABELLED)
def test_linear_svc(name, loss, tolerance):
    """LinearSVC penalises its intercept: both fit the column of ones as a feature."""
    X, labels = LABELLED[name]()
    X, y, alpha = np.hstack([X, np.ones((len(X), 1))]), signs(labels), 1e-2
    theirs = LinearSVC(
        loss=loss.replace("-", "_"), C=1 / (alpha * len(y)), fit_intercept=False, tol=1e-8,
        max_iter=1_000_000, dual=loss == "hinge", random_state=0,
    ).fit(X, y)  # fmt: skip
    parts = TIGHT if loss == "squared-hinge" else TIGHT | {"tol": 1e-8, "max_iter": 5000}
    ours = SCGDClassifier(loss, alpha=alpha, fit_intercept=False, **parts).fit(X, y)
    best = value(X, y, theirs.coef_, [], loss=loss, l2=alpha)
    assert value(X, y, ours.coef_, [], loss=loss, l2=alpha) <= best * (1 + tolerance)


def test_huber():
    X, y = REAL["friedman"]()
    y = y.copy()
    y[::10] += 40
    theirs = HuberRegressor(epsilon=1.35, alpha=0.0, tol=1e-10, max_iter=10_000).fit(X, y)
    # HuberRegressor scales its residuals by a fitted sigma; at that corner ours is the same fit.
    corner = 1.35 * theirs.scale_
    ours = SCGDRegressor("huber", epsilon=corner, penalty=None, **TIGHT).fit(X, y)
    parts = {"loss": "huber", "epsilon": corner}
    best = value(X, y, theirs.coef_, theirs.intercept_, **parts)
    assert value(X, y, ours.coef_, ours.intercept_, **parts) <= best * (1 + 1e-6)


def test_several_classes_are_fitted_one_against_the_rest():
    X, y = LABELLED["wine"]()
    model = SCGDClassifier(alpha=1e-3, **TIGHT).fit(X, y)
    for row, label in enumerate(model.classes_):
        alone = SCGDClassifier(alpha=1e-3, **TIGHT).fit(X, y == label)
        np.testing.assert_allclose(model.coef_[row], alone.coef_[0], atol=1e-3)
    assert model.coef_.shape == model.sampling_weights_.shape == (3, 13)


@pytest.mark.parametrize("kind", ["csr", "csc", "float32", "fortran"])
def test_the_layout_of_the_data_does_not_matter(kind):
    X, y = REAL["diabetes"]()
    X = X.astype(np.float32).astype(np.float64)
    other = {
        "csr": lambda: sparse.csr_matrix(X),
        "csc": lambda: sparse.csc_array(X),
        "float32": lambda: X.astype(np.float32),
        "fortran": lambda: np.asfortranarray(X),
    }[kind]()
    expected = SCGDRegressor(alpha=1e-3, **TIGHT).fit(X, y)
    found = SCGDRegressor(alpha=1e-3, **TIGHT).fit(other, y)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-6)


def test_policies_change_the_way_not_the_goal():
    X, y = REAL["diabetes"]()
    parts = {"tol": 1e-9, "alpha": 1e-2, "random_state": 0}
    X = StandardScaler().fit_transform(X)
    by_gain = SCGDRegressor(policy="musketeer", **parts).fit(X, y)
    evenly = SCGDRegressor(policy=Uniform(), **parts).fit(X, y)
    np.testing.assert_allclose(by_gain.coef_, evenly.coef_, rtol=1e-3)
    np.testing.assert_allclose(evenly.sampling_weights_, 1 / 10)
    assert np.ptp(by_gain.sampling_weights_) > 1e-3


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_multinomial(name):
    X, y = LABELLED[name]()
    alpha = 1e-2
    theirs = LogisticRegression(C=1 / (alpha * len(y)), tol=1e-10, max_iter=100_000).fit(X, y)
    ours = SCGDClassifier("multinomial", alpha=alpha, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert ours.dual_gap_ <= 1e-9
    again = SCGDClassifier("multinomial", alpha=alpha, tol=1e-9, warm_start=True)
    again.coef_, again.intercept_ = ours.coef_, ours.intercept_
    assert again.fit(X, y).n_iter_ < ours.n_iter_


def test_multinomial_with_an_l1_penalty_meets_its_optimality_conditions():
    X, y = LABELLED["wine"]()
    weight, alpha = np.random.default_rng(0).random(len(y)), 1e-2
    model = SCGDClassifier("multinomial", penalty="l1", alpha=alpha, tol=1e-7, max_iter=5000)
    model.fit(X, y, sample_weight=weight)
    shares = weight / weight.sum()
    slopes = (shares[:, None] * (model.predict_proba(X) - np.eye(3)[y])).T @ X
    used = model.coef_ != 0
    np.testing.assert_allclose(slopes[used], -alpha * np.sign(model.coef_[used]), atol=3e-4)
    assert np.abs(slopes[~used]).max() <= alpha + 3e-4 and 0 < used.sum() < used.size
    np.testing.assert_allclose(shares @ (model.predict_proba(X) - np.eye(3)[y]), 0, atol=3e-4)


def test_multinomial_refuses_what_it_cannot():
    X, y = LABELLED["iris"]()
    with pytest.raises(ValueError, match="multinomial"):
        SCGDClassifier("multinomial", early_stopping=True).fit(X, y)
