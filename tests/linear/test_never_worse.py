"""No fit is worse than something it saw, and its gap is at least the true one: against SciPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning

from scgd.linear import SCGDClassifier, SCGDRegressor

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
LOSSES = ("squared", "huber", "logistic", "hinge", "squared-hinge")
REAL = LOSSES[:2]
EPSILON = 1.35


def losses(loss: str, z: Any, y: Any) -> tuple[Any, Any]:
    """Return the losses and their slopes, by their formulas."""
    r, short = z - y, np.maximum(1.0 - y * z, 0.0)
    if loss == "squared":
        return 0.5 * r**2, r
    if loss == "huber":
        inside = np.abs(r) <= EPSILON
        return np.where(inside, 0.5 * r**2, EPSILON * (np.abs(r) - 0.5 * EPSILON)), np.clip(
            r, -EPSILON, EPSILON
        )
    if loss == "logistic":
        return np.logaddexp(0.0, -y * z), -y / (1.0 + np.exp(np.clip(y * z, -700, 700)))
    return (short, -y * (short > 0)) if loss == "hinge" else (short**2, -2.0 * y * short)


def objective(loss: str, X: Any, y: Any, s: Any, l2: float, l1: float, w: Any, b: float) -> float:
    """Return the penalised risk."""
    risk = float(s @ losses(loss, np.asarray(X @ w) + b, y)[0])
    return risk + 0.5 * l2 * float(w @ w) + l1 * float(np.abs(w).sum())


def reference(loss: str, X: Any, y: Any, s: Any, l2: float, l1: float, intercept: bool) -> float:
    """Return the least objective that SciPy finds, with coefficients split into two parts."""
    n, p = X.shape
    free = float(intercept)

    def value(v: Any) -> tuple[float, Any]:
        w, b = v[:p] - v[p : 2 * p], free * v[2 * p]
        part, slope = losses(loss, X @ w + b, y)
        grad = X.T @ (s * slope) + l2 * w
        f = float(s @ part) + 0.5 * l2 * w @ w + l1 * v[: 2 * p].sum()
        return f, np.concatenate([grad + l1, l1 - grad, [free * (s @ slope)]])

    def program(v: Any) -> tuple[float, Any]:
        w, xi = v[:p] - v[p : 2 * p], v[2 * p + 1 :]
        f = s @ xi + 0.5 * l2 * w @ w + l1 * v[: 2 * p].sum()
        return f, np.concatenate([l2 * w + l1, l1 - l2 * w, [0.0], s])

    bounds: list[tuple[float | None, float | None]] = [(0.0, None)] * (2 * p) + [(None, None)]
    if loss != "hinge":
        done = optimize.minimize(value, np.zeros(2 * p + 1), jac=True, method="L-BFGS-B",
                                 bounds=bounds, options={"maxiter": 5000, "maxfun": 20000,
                                                         "ftol": 1e-16, "gtol": 1e-12})  # fmt: skip
        v = done.x
    else:
        rows = np.hstack([y[:, None] * X, -y[:, None] * X, free * y[:, None], np.eye(n)])
        held = {"type": "ineq", "fun": lambda v: rows @ v - 1.0, "jac": lambda v: rows}
        first = np.append(np.zeros(2 * p + 1), np.ones(n))
        v = optimize.minimize(program, first, jac=True, method="SLSQP", constraints=[held],
                              bounds=bounds + [(0.0, None)] * n,
                              options={"maxiter": 300, "ftol": 1e-14}).x  # fmt: skip
    return objective(loss, X, y, s, l2, l1, v[:p] - v[p : 2 * p], free * v[2 * p])


@st.composite
def problems(draw: Any) -> dict[str, Any]:
    """Draw data that are wide or tall, uneven, separable or weighted, and a penalty."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, p = draw(st.sampled_from([(12, 3), (25, 6), (8, 15), (5, 30)]))
    X = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-draw(st.sampled_from([0, 2])), 0, p)
    loss = draw(st.sampled_from(LOSSES))
    y = X @ rng.normal(size=p) + draw(st.sampled_from([0.0, 1.0])) * rng.normal(size=n)
    if loss not in REAL:
        y = np.where(y > np.median(y), 1.0, -1.0)
    weight = rng.uniform(size=n) * (rng.uniform(size=n) < 0.8) + 1e-3
    if not draw(st.booleans()):
        weight = np.ones(n)
    return {
        "loss": loss, "X": X, "y": y, "weight": weight, "intercept": draw(st.booleans()),
        "penalty": draw(st.sampled_from(["l2", "l1", "elasticnet"])),
        "alpha": 10.0 ** -draw(st.floats(0.5, 4.0)), "sparse": draw(st.booleans()),
        "policy": draw(st.sampled_from(["adaptive", "adaptive", "adaptive", "uniform"])),
        "dual": draw(st.sampled_from(["auto", "auto", False, True])),
    }  # fmt: skip


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problems())
def test_objective_and_certificate_against_scipy(made: dict[str, Any]) -> None:
    loss, X, y, weight = (made[name] for name in ("loss", "X", "y", "weight"))
    params = {name: made[name] for name in ("penalty", "alpha", "policy", "dual")}
    kind: Any = SCGDRegressor if loss in REAL else SCGDClassifier
    model = kind(loss, l1_ratio=0.5, fit_intercept=made["intercept"], random_state=0, **params)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(sparse.csr_array(X) if made["sparse"] else X, y, sample_weight=weight)
    share = {"l2": 0.0, "l1": 1.0, "elasticnet": 0.5}[made["penalty"]]
    s, l2, l1 = weight / weight.sum(), made["alpha"] * (1 - share), made["alpha"] * share
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    found = objective(loss, X, y, s, l2, l1, w, b)
    best = reference(loss, X, y, s, l2, l1, made["intercept"])
    base = float(s @ y) if made["intercept"] and loss in REAL else 0.0
    null = objective(loss, X, y, s, l2, l1, np.zeros_like(w), base)
    slack = 1e-9 * max(null, 1e-3)
    assert found <= null + slack
    assert found - model.dual_gap_ <= best + slack, "the gap promises more than is so"
    if not caught:
        assert model.dual_gap_ <= 1.01 * model.tol * null + slack
        assert found <= best + model.tol * null + slack


def test_hinge_with_more_features_than_samples() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 1000))
    y = np.where(X[:, 0] + rng.normal(size=100) > 0, 1, -1)
    model = SCGDClassifier("hinge", alpha=0.01, fit_intercept=False, random_state=0).fit(X, y)
    found = objective("hinge", X, y, np.full(100, 0.01), 0.01, 0.0, model.coef_[0], 0.0)
    dual = SCGDClassifier("hinge", alpha=0.01, fit_intercept=False, dual=True, random_state=0)
    least = objective("hinge", X, y, np.full(100, 0.01), 0.01, 0.0, dual.fit(X, y).coef_[0], 0.0)
    assert found <= least + model.dual_gap_
    assert model.dual_gap_ <= 1e-6


def test_a_descent_that_is_interrupted_tells_its_own_gap() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 100))
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)
    least = objective("hinge", X, y, np.full(40, 1 / 40), 0.01, 0.0,
                      SCGDClassifier("hinge", alpha=0.01, fit_intercept=False, tol=1e-9).fit(X, y)
                      .coef_[0], 0.0)  # fmt: skip
    for max_iter in (1, 3, 10, 30, 100):
        model = SCGDClassifier("hinge", alpha=0.01, fit_intercept=False, dual=False,
                               max_iter=max_iter, random_state=0).fit(X, y)  # fmt: skip
        found = objective("hinge", X, y, np.full(40, 1 / 40), 0.01, 0.0, model.coef_[0], 0.0)
        assert found - model.dual_gap_ <= least


@pytest.mark.parametrize("seed", range(5))
def test_l1_logistic_descends_where_curvatures_vanish(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 150))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=80) > 0, 1.0, -1.0)
    model = SCGDClassifier(penalty="l1", alpha=1e-4, fit_intercept=False, random_state=0,
                           warm_start=True).fit(X, y)  # fmt: skip
    s = np.full(80, 1 / 80)
    least = objective("logistic", X, y, s, 0.0, 1e-4, model.coef_[0], 0.0)
    model.coef_ = -8.0 * model.coef_  # far on the wrong side of all samples
    model.set_params(max_iter=60).fit(X, y)
    found = objective("logistic", X, y, s, 0.0, 1e-4, model.coef_[0], 0.0)
    assert found < np.log(2.0)
    assert found - model.dual_gap_ <= least


def test_elastic_net_sees_columns_of_small_norm() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2000)) * 10 ** rng.uniform(-1.5, 0, 2000)
    y = X @ rng.normal(size=2000) + rng.normal(size=300)
    alpha = 0.2 * float(np.abs(X.T @ (y - y.mean())).max()) / 300
    params: dict[str, Any] = {"penalty": "elasticnet", "l1_ratio": 0.5, "alpha": alpha}
    model = SCGDRegressor(**params, random_state=0).fit(X, y)
    all_of_them = SCGDRegressor(**params, policy="uniform", random_state=0).fit(X, y)
    assert model.dual_gap_ <= 1e-6 * 0.5 * y.var()
    assert np.count_nonzero(model.coef_) == np.count_nonzero(all_of_them.coef_)


@pytest.mark.parametrize("shape", [(300, 20), (60, 200)])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_hinge_on_dense_rows_closes_its_gap_in_few_steps(
    shape: tuple[int, int], intercept: bool
) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=shape) * 10.0 ** rng.uniform(-2, 2, shape[1]) + 3.0
    y = np.where(X[:, 0] / np.abs(X[:, 0]).mean() + rng.normal(size=shape[0]) > 1, 1.0, -1.0)
    weight = rng.uniform(size=shape[0])
    model = SCGDClassifier("hinge", alpha=0.01, tol=1e-9, fit_intercept=intercept, random_state=0)
    model.fit(X, y, sample_weight=weight)
    null = objective("hinge", X, y, weight / weight.sum(), 0.0, 0.0, np.zeros(shape[1]), 0.0)
    assert model.dual_gap_ <= 1.1e-9 * null
    assert model.n_iter_ <= 150


def test_the_hinge_on_sparse_rows_with_a_weak_penalty_closes_its_gap() -> None:
    rng = np.random.default_rng(2)
    X = sparse.random_array((800, 3000), density=0.01, rng=rng, format="csr")
    y = np.where(np.asarray(X @ rng.normal(size=3000)) + 0.1 * rng.normal(size=800) > 0, 1.0, -1.0)
    model = SCGDClassifier("hinge", alpha=0.1 / 800, random_state=0).fit(X, y)
    assert model.dual_gap_ <= 1.1e-6
    assert model.n_iter_ <= 100


def test_a_softmax_on_nearly_separable_columns_of_uneven_size_converges() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 20)) * 10.0 ** rng.uniform(-2, 1, 20) + 5.0
    scores = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(20, 5))
    y = np.argmax(scores, axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = SCGDClassifier("multinomial", alpha=1e-5, max_iter=400).fit(X, y)
    assert model.dual_gap_ <= 1e-6 * np.log(5)
