"""What the arguments of scgd.linear take."""

import numpy as np
from doors_core import PARTS

import scgd
from scgd import linear

MODEL = {
    "loss": "choice", "penalty": "choice+none", "alpha": "nonnegative", "l1_ratio": "fraction",
    "fit_intercept": "flag", "class_weight": "anything", "policy": "choice", "dual": "flag",
    "batch_size": "count+none", "learning_rate": "positive+callable", "max_iter": "count",
    "tol": "nonnegative", "early_stopping": "flag", "validation_fraction": "fraction",
    "n_iter_no_change": "count", "random_state": "anything", "warm_start": "flag",
    "verbose": "anything", "epsilon": "nonnegative",
}  # fmt: skip
X = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [2.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 2.0, 1.0],
              [1.0, 2.0, 0.0]])  # fmt: skip
Y = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
MANY_X, MANY_Y = np.tile(X, (2, 1)) + 0.1 * np.arange(12)[:, None], np.tile(Y, 2)
MODEL_CV = {
    **MODEL, "alphas": "count+vector+one", "eps": "fraction+none", "cv": "anything", "scoring": "anything",
    "n_jobs": "count+none+whole", "penalty": "choice",
}  # fmt: skip


def fitted(cls):
    def call(**keywords):
        return cls(**{"max_iter": 5, "tol": 0.0, **keywords}).fit(X, Y)

    return call


def solved(**keywords):
    data = {"X": X, "y": Y, "n_passes": 2.0}
    return linear.solve(**{**data, **keywords})


def cross_validated(cls):
    def call(**keywords):
        quick = {"max_iter": 5, "tol": 0.0, "alphas": 2, "cv": 2}
        return cls(**{**quick, **keywords}).fit(MANY_X, MANY_Y)

    return call


DOORS = {
    "SCGDRegressor": (fitted(linear.SCGDRegressor), linear.SCGDRegressor, MODEL, True),
    "SCGDClassifier": (fitted(linear.SCGDClassifier), linear.SCGDClassifier, MODEL, True),
    "block_data": (
        lambda **k: linear.block_data(**{"n_samples": 5, "n_coords": 2, "block": 1, **k}),
        linear.block_data,
        {"kind": "choice", "n_samples": "count", "n_coords": "count", "decay": "number",
         "block": "count", "law": "choice", "seed": "natural", "truth": "none"},
    ),
    "coordinate_smoothness": (
        lambda X=X, **k: scgd.coordinate_smoothness(X, **k), scgd.coordinate_smoothness,
        {"X": "matrix+np.matrix", "curvature": "nonnegative", "l2": "nonnegative"},
    ),
    "solve": (solved, linear.solve, {
        "X": "matrix", "y": "choice", "loss": "choice", "l2": "nonnegative", "l1": "nonnegative",
        "sample_weight": "none", "fit_intercept": "flag", "epsilon": "nonnegative+none", **PARTS,
        "importance": "none+vector", "learning_rate": "positive+callable", "batch_size": "count+none",
        "path": "choice", "shared_sample": "flag", "n_passes": "positive",
        "record_every": "positive+none", "record_loss": "none", "start": "none+vector",
        "seed": "seeds", "n_jobs": "count+none+whole",
    }),
    "SCGDRegressorCV": (cross_validated(linear.SCGDRegressorCV), linear.SCGDRegressorCV, MODEL_CV,
                        True, ("cv", "scoring")),
    "SCGDClassifierCV": (
        cross_validated(linear.SCGDClassifierCV), linear.SCGDClassifierCV, MODEL_CV, True,
        ("cv", "scoring"),
    ),
}  # fmt: skip
