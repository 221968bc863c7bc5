"""What the arguments of scgd_paper.theory take."""

import numpy as np

import scgd
from scgd_paper import theory

CONSTANTS = theory.Constants(1.0, 0.5, 1.0, 1.0)


DOORS = {
    "Constants": (
        lambda **k: theory.Constants(**{**vars(CONSTANTS), **k}), theory.Constants,
        {"smoothness": "nonnegative", "convexity": "nonnegative", "growth": "nonnegative",
         "noise": "nonnegative", "bias": "nonnegative"},
    ),
    "bias_constant": (
        lambda **k: theory.bias_constant(**{"smoothness": 1.0, "n_coords": 3, **k}),
        theory.bias_constant,
        {"smoothness": "nonnegative", "n_coords": "count", "estimator": "choice", "norm": "choice",
         "sharp": "flag"},
    ),
    "gap_order": (
        lambda **k: theory.gap_order(**{"constants": CONSTANTS, "gamma": 1.0, "beta": 0.5, **k}),
        theory.gap_order,
        {"constants": "choice", "gamma": "positive", "beta": "fraction", "alpha": "fraction"},
    ),
    "gap_rate": (
        lambda **k: theory.gap_rate(**{"alpha": 1.0, "speed": 3.0, **k}), theory.gap_rate,
        {"alpha": "fraction", "speed": "positive"},
    ),
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
        False, ("t",),
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
    "regret_terms": (
        lambda **k: theory.regret_terms(**{"gradients": np.ones(3), "weights": np.ones(3), **k}),
        theory.regret_terms,
        {"gradients": "vector+one+matrix+np.matrix", "weights": "vector+one+positive",
         "variance": "vector+one+nonnegative"},
    ),
    "known": (theory.known, theory.known, {"schedule": "anything"}),
}  # fmt: skip
