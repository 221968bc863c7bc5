"""Doors beside minimize: cross-validated models, searches of other libraries, theory, spaces."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import scgd
from bad_calling import Doors
from scgd import linear, theory
from scgd.sklearn import SCGDSearchCV
from test_bad_calls import CONSTANTS, MODEL, X, Y, bowl

SAMPLED = 60
MANY_X, MANY_Y = np.tile(X, (2, 1)) + 0.1 * np.arange(12)[:, None], np.tile(Y, 2)
MODEL_CV = {
    **MODEL, "alphas": "count+vector+one", "eps": "fraction+none", "cv": "anything", "scoring": "anything",
    "n_jobs": "count+none+whole", "penalty": "choice",
}  # fmt: skip


def cross_validated(cls):
    def call(**keywords):
        quick = {"max_iter": 5, "tol": 0.0, "alphas": 2, "cv": 2}
        return cls(**{**quick, **keywords}).fit(MANY_X, MANY_Y)

    return call


def search_cv(estimator=None, space=None, **keywords):
    estimator = Ridge() if estimator is None else estimator
    space = {"alpha": scgd.Float(1e-3, 1e3, log=True)} if space is None else space
    return SCGDSearchCV(estimator, space, **{"n_iter": 3, "cv": 2, **keywords}).fit(MANY_X, MANY_Y)


DOORS = {
    "SCGDRegressorCV": (cross_validated(linear.SCGDRegressorCV), linear.SCGDRegressorCV, MODEL_CV),
    "SCGDClassifierCV": (
        cross_validated(linear.SCGDClassifierCV), linear.SCGDClassifierCV, MODEL_CV,
    ),
    "SCGDSearchCV": (search_cv, SCGDSearchCV, {
        "estimator": "none", "space": "none", "n_iter": "count", "batch_size": "count",
        "method": "none", "n_jobs": "count+none+whole", "return_train_score": "flag",
    }),
    "check": (
        lambda **k: theory.check(**{"learning_rate": scgd.InverseTime(1.0), **k}), theory.check,
        {"learning_rate": "nonnegative+callable", "mixing": "fraction+none+callable",
         "radius": "nonnegative+none+callable", "importance": "none+vector+one+callable"},
    ),
    "gap_bound": (
        lambda **k: theory.gap_bound(**{
            "t": np.array([1.0, 2.0]), "constants": CONSTANTS, "gamma": 1.0, "alpha": 1.0,
            "beta": 0.5, "gap": 1.0, **k}),
        theory.gap_bound,
        {"t": "anything", "constants": "choice", "gamma": "positive", "alpha": "fraction",
         "beta": "fraction", "gap": "nonnegative"},
    ),
    "gap_recursion": (
        lambda **k: theory.gap_recursion(**{
            "n_steps": 3, "constants": CONSTANTS, "gamma": 1.0, "alpha": 1.0, "beta": 0.5,
            "gap": 1.0, **k}),
        theory.gap_recursion,
        {"n_steps": "natural", "constants": "choice", "gamma": "positive", "alpha": "fraction",
         "beta": "fraction", "gap": "nonnegative"},
    ),
    "regret_bound": (
        lambda **k: theory.regret_bound(**{"terms": np.ones(3), "gamma": 1.0, "distance": 1.0, **k}),
        theory.regret_bound,
        {"terms": "vector+one", "gamma": "positive", "distance": "nonnegative"},
    ),
    "scipy_method": (
        lambda fun=bowl, x0=(1.0, 2.0, 3.0), **k: scgd.scipy_method(
            fun, x0, **{"max_evals": 6, "method": "uniform", "scale": 1.0, **k}),
        scgd.scipy_method,
        {"fun": "callable", "x0": "vector+one+number", "jac": "callable+none", "bounds": "none",
         "constraints": "nothing+none", "callback": "callable+none", "maxiter": "count+none",
         "tol": "fraction+none"},
    ),
}  # fmt: skip
OURS = Doors(
    DOORS,
    ("SCGDRegressorCV", "SCGDClassifierCV", "SCGDSearchCV"),
    frozenset({"cv", "scoring", "refit", "pre_dispatch", "error_score", "hess", "hessp", "disp",
               "t"}),
)  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_every_argument_has_a_row(door):
    OURS.check_rows(door)


@pytest.mark.parametrize("door", DOORS)
def test_odd_values_work_or_are_named(door):
    OURS.check(door, SAMPLED)


@pytest.mark.faults
@pytest.mark.parametrize("door", DOORS)
def test_every_odd_value_works_or_is_named(door):
    OURS.check(door)
