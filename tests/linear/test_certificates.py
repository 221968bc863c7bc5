"""Gaps are true bounds, solvers agree, and sample terms are those of the losses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize as scipy_minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from scgd import Adaptive, Uniform
from scgd.linear import LOSSES, SCGDClassifier, SCGDRegressor
from scgd.linear.certificate import Best
from scgd.linear.dual import ascend
from scgd.linear.fitting import fit as fitted
from scgd.linear.losses import bend, slope, value
from scgd.linear.newton import newton
from scgd.linear.primal import descend
from scgd.linear.samples import conjugate, terms
from scgd.linear.task import Design, Task

SMOOTH = ("squared", "logistic", "squared-hinge", "huber")


def data(loss, n=60, p=7, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + offset
    z = (X - offset) @ rng.normal(size=p) + 0.5 * rng.normal(size=n) + 0.3
    return X, z if loss in ("squared", "huber") else np.where(z > 0, 1.0, -1.0)


def task(X, y, loss, *, l2=0.01, l1=0.0, intercept=True, shares=None, tol=1e-10, **parts):
    shares = np.full(len(y), 1.0 / len(y)) if shares is None else shares / shares.sum()
    epsilon = {"huber": 1.35, "hinge": parts.pop("epsilon", 0.0)}.get(loss, 0.0)
    settings = {"max_passes": 3000, "seed": 0} | parts
    return Task(
        Design(X), y, shares, LOSSES.index(loss), epsilon, l2, l1, intercept, tol, **settings
    )


def least(problem):
    """Return the minimum by a general solver: positive and negative parts for l1."""
    p = problem.design.n_features

    def f(theta):
        w, b = theta[:p] - theta[p : 2 * p], theta[-1]
        z = problem.design.margins(w) + (b if problem.intercept else 0.0)
        risk, u, _ = problem.terms(z)
        g = problem.design.correlations(u) + problem.l2 * w
        value = risk + 0.5 * problem.l2 * w @ w + problem.l1 * theta[: 2 * p].sum()
        return value, np.concatenate([g + problem.l1, -g + problem.l1, [u.sum()]])

    bounds = [(0, None)] * (2 * p) + [(None, None)]
    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-11}
    found = scipy_minimize(
        f, np.zeros(2 * p + 1), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return found.fun


@pytest.mark.parametrize("loss", LOSSES)
def test_sample_terms_are_those_of_the_losses(loss):
    code, epsilon = LOSSES.index(loss), {"huber": 0.7, "hinge": 0.3}.get(loss, 0.0)
    z, y = np.linspace(-40, 40, 161) + 0.013, np.where(np.arange(161) % 3, 1.0, -1.0)
    values, slopes, bends = terms(code, z, y, epsilon)
    for i in range(len(z)):
        np.testing.assert_allclose(
            values[i], value(code, z[i], y[i], epsilon), rtol=1e-12, atol=2e-14
        )
        np.testing.assert_allclose(
            slopes[i], slope(code, z[i], y[i], epsilon), rtol=1e-12, atol=1e-15
        )
        np.testing.assert_allclose(
            bends[i], bend(code, z[i], y[i], epsilon, 0.0), rtol=1e-9, atol=1e-15
        )


@pytest.mark.parametrize("loss", LOSSES)
def test_conjugates_meet_the_losses_at_their_slopes(loss):
    """Fenchel: l(z) + l*(r) = rz where r is the slope at z, and at least rz elsewhere."""
    code, epsilon = LOSSES.index(loss), {"huber": 0.7, "hinge": 0.3}.get(loss, 0.0)
    z = np.linspace(-3, 3, 61) + 0.01
    y = np.where(np.arange(61) % 2, 1.0, -1.0) if loss != "cross-entropy" else np.full(61, 0.3)
    values, slopes, _ = terms(code, z, y, epsilon)
    stars = conjugate(code, slopes, y, epsilon)
    np.testing.assert_allclose(values + stars, slopes * z, atol=1e-12)
    other = conjugate(code, 0.5 * slopes, y, epsilon)
    assert np.all(values + other >= 0.5 * slopes * z - 1e-12)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("l1", [0.0, 0.02])
@settings(max_examples=6)
@given(seed=st.integers(0, 10**6), passes=st.integers(1, 6))
def test_the_gap_is_never_below_the_distance_to_the_minimum(loss, intercept, l1, seed, passes):
    X, y = data(loss, n=25, p=4, seed=seed % 20)
    rng = np.random.default_rng(seed)
    problem = task(
        X, y, loss, l1=l1, l2=0.01 * (1 - 25 * l1), intercept=intercept, shares=rng.random(25)
    )
    w, b = rng.normal(size=4), rng.normal() if intercept else 0.0
    z = problem.design.margins(w) + b
    here = problem.terms(z)[0] + problem.penalty(w)
    best = least(problem)
    seen = Best(problem)
    seen.look(w, b)
    assert seen.gap >= seen.value - best - 1e-9 and seen.value <= here
    early = descend(task(X, y, loss, l1=l1, intercept=intercept, max_passes=passes), Adaptive())
    full = least(task(X, y, loss, l1=l1, intercept=intercept))
    z = problem.design.margins(early.w) + early.b
    plain = task(X, y, loss, l1=l1, intercept=intercept)
    assert early.gap >= plain.terms(z)[0] + plain.penalty(early.w) - full - 1e-9


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("intercept", [True, False])
def test_solvers_agree(loss, kind, intercept):
    X, y = data(loss, offset=3.0)
    shares = np.random.default_rng(1).random(len(y))
    problem = task(kind(X), y, loss, intercept=intercept, shares=shares)
    fits = [newton(problem), descend(problem, Adaptive())]
    if loss in ("logistic", "squared-hinge"):
        fits.append(
            ascend(task(kind(X), y, loss, intercept=intercept, shares=shares, tol=1e-9), Adaptive())
        )
    for fit in fits:
        assert fit.converged and fit.gap <= 1e-9 * problem.null[1] + 10 * problem.rounding
        np.testing.assert_allclose(fit.w, fits[0].w, atol=2e-4)
        np.testing.assert_allclose(fit.b, fits[0].b, atol=1e-3)


@pytest.mark.parametrize("intercept", [True, False])
def test_wide_data_are_rotated(intercept):
    X, y = data("logistic", n=12, p=40)
    problem = task(X, y, "logistic", intercept=intercept)
    wide, swept = newton(problem), descend(problem, Adaptive())
    assert wide.converged and swept.converged
    np.testing.assert_allclose(wide.w, swept.w, atol=1e-4)


@pytest.mark.parametrize("start", [None, np.full(7, 0.3)])
def test_warm_starts_end_at_the_same_place(start):
    X, y = data("logistic")
    problem = task(X, y, "logistic")
    for solver in (
        newton,
        lambda t, w, b: descend(t, Adaptive(), w, b),
        lambda t, w, b: ascend(t, Adaptive(), w, b),
    ):
        fit = solver(problem, start, 0.1)
        assert fit.converged
        np.testing.assert_allclose(fit.w, newton(problem).w, atol=1e-4)


def test_an_ascent_from_the_solution_is_short():
    problem = task(*data("logistic"), "logistic")
    solved, cold = newton(problem), ascend(problem, Adaptive())
    assert ascend(problem, Adaptive(), solved.w, solved.b).n_passes < cold.n_passes / 2


def test_the_hinge_by_rounding_is_the_hinge_by_ascent():
    problem = task(*data("hinge"), "hinge", tol=1e-6)
    rounded, ascended = fitted(problem, Uniform(), False), fitted(problem, Adaptive(), True)
    assert rounded.converged and ascended.converged
    np.testing.assert_allclose(rounded.value, ascended.value, atol=2e-6)


def test_more_than_two_classes_are_fitted_together_only_where_asked():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    together = SCGDClassifier("multinomial", alpha=0.1, fit_intercept=False).fit(X, y)
    theirs = LogisticRegression(C=1 / 6.0, fit_intercept=False, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(together.coef_, theirs.coef_, atol=1e-3)
    alone = SCGDClassifier("logistic", alpha=0.1).fit(X, y == 2).coef_[0]
    ovr = SCGDClassifier("logistic", alpha=0.1).fit(X, y)
    np.testing.assert_allclose(ovr.coef_[2], alone, atol=1e-6)


def test_one_class_that_has_not_converged_is_said():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y, alpha = np.where(X[:, 0] > 0, 1, 2 * (X[:, 1] > 0)), 0.1
    parts = {"alpha": alpha, "loss": "squared-hinge", "dual": True, "tol": 1e-6}
    passes = [SCGDClassifier(**parts).fit(X, y == label).n_iter_ for label in range(3)]
    assert min(passes) < max(passes)
    with pytest.warns(ConvergenceWarning):
        SCGDClassifier(max_iter=min(passes), **parts).fit(X, y)


def year_column(kind):
    """A column of years beside a counter: a hundred times its own spread away from zero."""
    rng = np.random.default_rng(0)
    X = np.column_stack([2000 + 10 * rng.normal(size=300), rng.normal(size=(300, 5))])
    return kind(X), 0.5 * X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=300)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_tol_bounds_the_gap_where_columns_are_far_from_zero(kind, penalty):
    X, y = year_column(kind)
    model = SCGDRegressor(penalty=penalty, alpha=1e-3, tol=1e-8, max_iter=5000).fit(X, y)
    assert model.dual_gap_ <= 1.1e-8 * np.var(y) / 2 + 1e-9
    assert model.score(X, y) > 0.99


def test_equicorrelated_columns_do_not_fool_the_test():
    rng = np.random.default_rng(0)
    X = np.sqrt(0.99) * rng.normal(size=(400, 1)) + 0.1 * rng.normal(size=(400, 600))
    y = X[:, :5].sum(axis=1) + rng.normal(size=400)
    model = SCGDRegressor(penalty="l1", alpha=1e-2, tol=1e-6).fit(X, y)
    problem = task(X, y, "squared", l2=0.0, l1=1e-2, tol=1e-10, max_passes=20_000)
    best = descend(problem, Adaptive())
    z = problem.design.margins(model.coef_) + model.intercept_[0]
    assert (
        problem.terms(z)[0]
        + problem.penalty(model.coef_)
        - (problem.terms(problem.design.margins(best.w) + best.b)[0] + problem.penalty(best.w))
        <= model.dual_gap_
        <= 1.1e-6 * problem.null[1]
    )


@pytest.mark.parametrize("alpha", [1e-2, 1e-3])
def test_badly_scaled_features(alpha):
    X, y = data("logistic", n=300, p=12)
    units = 10.0 ** np.linspace(-6, 6, 12)
    model = SCGDClassifier(alpha=alpha, tol=1e-8).fit(X * units, y)
    assert model.dual_gap_ <= 1.1e-8


def test_the_hinge_ends_at_its_minimum():
    X, y = data("hinge", n=80, p=5)
    problem = task(X, y, "hinge", l2=0.01, tol=1e-8)
    by_rows = ascend(task(X, y, "hinge", l2=0.01, tol=1e-7, max_passes=20_000), Adaptive())
    model = SCGDClassifier("hinge", alpha=0.01, tol=1e-8).fit(X, y)
    values = [
        problem.terms(problem.design.margins(w) + b)[0] + problem.penalty(w)
        for w, b in ((by_rows.w, by_rows.b), (model.coef_[0], model.intercept_[0]))
    ]
    assert by_rows.converged and abs(values[0] - values[1]) <= 2e-7


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_hinge_with_an_l1_penalty_ends_at_its_minimum(kind, intercept):
    """Rounding alone left gaps of 1e-2 and a warning."""
    X, y = data("hinge", n=80, p=30)
    parts = {"penalty": "l1", "alpha": 0.01, "fit_intercept": intercept}
    model = SCGDClassifier("hinge", **parts).fit(kind(X), y)
    problem = task(X, y, "hinge", l2=0.0, l1=0.01, intercept=intercept)
    here = problem.terms(X @ model.coef_[0] + model.intercept_)[0] + problem.penalty(model.coef_[0])
    rounded = SCGDClassifier("squared-hinge", **parts).fit(X, y)  # another point, not below it
    there = problem.terms(X @ rounded.coef_[0] + rounded.intercept_)[0]
    assert here <= there + problem.penalty(rounded.coef_[0])
    assert model.dual_gap_ <= 1.1e-6 and 0 < np.count_nonzero(model.coef_) < 30
    w, step = model.coef_[0], np.random.default_rng(0).normal(size=(200, 30)) * 1e-3
    near = [problem.terms(X @ (w + d) + model.intercept_)[0] + problem.penalty(w + d) for d in step]
    assert min(near) >= here - 1e-6


def test_without_a_penalty_there_is_no_gap_to_tell():
    X, y = data("squared")
    model = SCGDRegressor(penalty=None).fit(X, y)
    exact = np.linalg.lstsq(np.column_stack([X, np.ones(60)]), y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_, exact[:-1], atol=1e-10)
    assert model.dual_gap_ == np.inf
