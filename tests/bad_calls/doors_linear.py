"""What the arguments of scgd.linear take."""

import numpy as np

import scgd
from scgd import linear

MODEL = {
    "loss": "choice", "penalty": "choice+none", "alpha": "nonnegative", "l1_ratio": "fraction",
    "fit_intercept": "flag", "class_weight": "anything", "policy": "choice", "dual": "flag",
    "max_iter": "count",
    "tol": "nonnegative", "early_stopping": "flag", "validation_fraction": "fraction",
    "n_iter_no_change": "count", "random_state": "anything", "warm_start": "flag",
    "verbose": "anything", "epsilon": "nonnegative", "n_jobs": "count+none+whole",
}  # fmt: skip
X = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [2.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 2.0, 1.0],
              [1.0, 2.0, 0.0]])  # fmt: skip
Y = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
MANY_X, MANY_Y = np.tile(X, (2, 1)) + 0.1 * np.arange(12)[:, None], np.tile(Y, 2)
MODEL_CV = {
    **MODEL, "alphas": "count+vector+one", "eps": "fraction+none", "cv": "anything", "scoring": "anything",
    "n_jobs": "count+none+whole", "penalty": "choice",
    "l1_ratio": "fraction+vector+one",
}  # fmt: skip


def fitted(cls):
    def call(**keywords):
        return cls(**{"max_iter": 5, "tol": 0.0, **keywords}).fit(X, Y)

    return call


def cross_validated(cls):
    def call(**keywords):
        quick = {"max_iter": 5, "tol": 0.0, "alphas": 2, "cv": 2}
        return cls(**{**quick, **keywords}).fit(MANY_X, MANY_Y)

    return call


DOORS = {
    "SCGDRegressor": (fitted(linear.SCGDRegressor), linear.SCGDRegressor, MODEL, True),
    "SCGDClassifier": (fitted(linear.SCGDClassifier), linear.SCGDClassifier, MODEL, True),
    "coordinate_smoothness": (
        lambda X=X, **k: scgd.coordinate_smoothness(X, **k), scgd.coordinate_smoothness,
        {"X": "matrix+np.matrix", "curvature": "nonnegative", "l2": "nonnegative"},
    ),
    "SCGDRegressorCV": (cross_validated(linear.SCGDRegressorCV), linear.SCGDRegressorCV, MODEL_CV,
                        True, ("cv", "scoring")),
    "SCGDClassifierCV": (
        cross_validated(linear.SCGDClassifierCV), linear.SCGDClassifierCV, MODEL_CV, True,
        ("cv", "scoring"),
    ),
}  # fmt: skip
