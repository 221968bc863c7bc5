"""Problems over search spaces: COCO's mixed-integer suite, and learners to be tuned.

Peers that know no steps see the unit cube, and what they propose is rounded.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from scgd.spaces import Choice, Float, Int, Parameter, Space
from scgd.typing import Floats
from scgd_arena.bbob import minimiser, problem
from scgd_arena.problems import Task

__all__ = ["TUNING", "boosting", "mixint", "pipeline", "task_of"]

Score = Callable[[dict[str, Any]], float]


def task_of(name: str, space: Space, score: Score, lowest: float) -> Task:
    """Return the task of a function of parameters; its gap is the distance from a low value."""

    def value(x: Floats) -> float:
        return score(space.decode(x))

    return Task(
        name, space.grid.start.copy(), None, lambda seed: value, lambda x: value(x) - lowest,
        domain=(0.0, 1.0), repeats=True, lowest=lowest, looks=False, space=space,
    )  # fmt: skip


def mixint(function: int, dimension: int, instance: int = 1) -> Task:
    """Return a function of COCO's bbob-mixint: four fifths of its variables are whole numbers."""
    made = problem("bbob-mixint", function, dimension, instance)
    kinds: list[type[Float] | type[Int]] = [Int] * made.number_of_integer_variables
    kinds += [Float] * (dimension - len(kinds))
    limits = zip(kinds, made.lower_bounds, made.upper_bounds, strict=True)
    parts: dict[str, Parameter] = {
        f"x{k}": kind(low, high) for k, (kind, low, high) in enumerate(limits)
    }

    def score(params: dict[str, Any]) -> float:
        return float(made(np.array([params[name] for name in parts], np.float64)))

    name, lowest = f"bbob-mixint-f{function}-d{dimension}", float(made(minimiser(made)))
    return task_of(name, Space(parts), score, lowest)


@cache
def boosting(name: str) -> Task:
    """Return LightGBM's cross-validated loss on ``diabetes`` or ``cancer``: ten parameters."""
    import lightgbm
    from sklearn.datasets import load_breast_cancer, load_diabetes
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

    cancer = name == "cancer"
    data, target = (load_breast_cancer if cancer else load_diabetes)(return_X_y=True)
    folds = (StratifiedKFold if cancer else KFold)(3, shuffle=True, random_state=0)
    model = lightgbm.LGBMClassifier if cancer else lightgbm.LGBMRegressor
    scoring = "neg_log_loss" if cancer else "neg_root_mean_squared_error"

    def score(params: dict[str, Any]) -> float:
        learner = model(**params, subsample_freq=1, verbose=-1, n_jobs=1, random_state=0)
        return float(-cross_val_score(learner, data, target, cv=folds, scoring=scoring).mean())

    space = Space(
        learning_rate=Float(1e-3, 0.5, log=True), num_leaves=Int(2, 128, log=True),
        min_child_samples=Int(1, 60), colsample_bytree=Float(0.2, 1), subsample=Float(0.3, 1),
        reg_alpha=Float(1e-6, 10, log=True), reg_lambda=Float(1e-6, 10, log=True),
        n_estimators=Int(10, 200), max_depth=Choice(3, 5, 8, -1),
        boosting_type=Choice("gbdt", "dart"),
    )  # fmt: skip
    return task_of(f"boosting-{name}", space, score, 0.07 if cancer else 55.0)


@cache
def pipeline() -> Task:
    """Return the error of a pipeline on 300 digits with noise: scaler, components, and a kernel."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler
    from sklearn.svm import SVC

    rng, (data, target) = np.random.default_rng(0), load_digits(return_X_y=True)
    rows = rng.choice(len(data), 300, replace=False)
    data, target = data[rows] + rng.normal(0, 4, (300, 64)), target[rows]
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    scalers = {"none": None, "standard": StandardScaler, "range": MinMaxScaler}

    def score(params: dict[str, Any]) -> float:
        parts = dict(params)
        scaler, n = scalers[parts.pop("scaler")], parts.pop("components")
        steps = [PCA(n, random_state=0, svd_solver="full"), SVC(**parts, max_iter=1000)]
        learner = make_pipeline(*([] if scaler is None else [scaler()]), *steps)
        with warnings.catch_warnings():  # a kernel that does not converge is only a bad choice
            warnings.simplefilter("ignore")
            return float(1 - cross_val_score(learner, data, target, cv=folds).mean())

    space = Space(
        scaler=Choice("none", "standard", "range"), components=Int(2, 64, log=True),
        kernel=Choice("linear", "rbf", "poly"), C=Float(1e-3, 1e3, log=True),
        gamma=Float(1e-6, 10, log=True, when={"kernel": ("rbf", "poly")}),
        degree=Int(2, 5, when={"kernel": "poly"}), coef0=Float(0, 2, when={"kernel": "poly"}),
        shrinking=Choice(True, False),
    )  # fmt: skip
    return task_of("pipeline", space, score, 0.0)


TUNING: dict[str, Callable[[], Task]] = {
    "boosting-diabetes": lambda: boosting("diabetes"),
    "boosting-cancer": lambda: boosting("cancer"),
    "pipeline": pipeline,
}
