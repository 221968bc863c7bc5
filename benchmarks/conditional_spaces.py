"""Spaces with conditions: which learner, and its own parameters, in 80 cross-validations.

    python benchmarks/conditional_spaces.py [--seeds 10] [--methods scgd,tpe,group]

Five small data sets of scikit-learn with noise on their inputs. A configuration is a scaler, one of
four learners, and parameters that exist for that learner alone. Printed are the means and medians
of the lowest error found: of ``scgd.minimize``, of Optuna's TPE, and of its multivariate TPE by
groups.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import optuna
from sklearn import datasets
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import scgd
from scgd import Choice, Float, Int, Space

N_EVALS = 80
TASKS = {
    "iris": (datasets.load_iris, 150, 0.3),
    "wine": (datasets.load_wine, 178, 0.7),
    "digits": (datasets.load_digits, 200, 0.5),
    "cancer": (datasets.load_breast_cancer, 200, 1.0),
    "diabetes": (datasets.load_diabetes, 150, 0.0),
}
"""Data, rows, and the noise on inputs in units of their deviation."""
LEARNERS = {
    "svm": (SVC, SVR),
    "knn": (KNeighborsClassifier, KNeighborsRegressor),
    "tree": (DecisionTreeClassifier, DecisionTreeRegressor),
    "ridge": (RidgeClassifier, Ridge),
}
SVM, KNN, TREE = {"learner": "svm"}, {"learner": "knn"}, {"learner": "tree"}
SPACE = Space(
    scale=Choice(True, False),
    learner=Choice(*LEARNERS),
    C=Float(1e-3, 1e3, log=True, when=SVM),
    kernel=Choice("linear", "rbf", "poly", when=SVM),
    gamma=Float(1e-5, 10, log=True, when={"kernel": ("rbf", "poly")}),
    degree=Int(2, 4, when={"kernel": "poly"}),
    n_neighbors=Int(1, 30, when=KNN),
    p=Float(1, 4, when=KNN),
    weights=Choice("uniform", "distance", when=KNN),
    max_depth=Int(1, 12, when=TREE),
    min_samples_leaf=Int(1, 20, when=TREE),
    alpha=Float(1e-4, 1e4, log=True, when={"learner": "ridge"}),
)


class Task:
    """The cross-validated error of a configuration: part of the variance, or of the rows."""

    def __init__(self, name: str) -> None:
        load, n, noise = TASKS[name]
        rng = np.random.default_rng(0)
        x, y = load(return_X_y=True)
        rows = rng.permutation(len(x))[:n]
        self.x, self.y = x[rows] + noise * x.std(0) * rng.standard_normal((n, x.shape[1])), y[rows]
        self.regression = name == "diabetes"

    def __call__(self, params: dict[str, object]) -> float:
        """Return the error over three folds."""
        own = {k: v for k, v in params.items() if k not in ("scale", "learner")}
        if params["learner"] == "svm":
            own |= {"max_iter": 2000, "C": own["C"] * (100 if self.regression else 1)}
        elif params["learner"] == "tree":
            own["random_state"] = 0
        model = LEARNERS[params["learner"]][self.regression](**own)
        x = StandardScaler().fit_transform(self.x) if params["scale"] else self.x
        errors = []
        for fold in range(3):
            out = np.arange(len(x)) % 3 == fold
            with warnings.catch_warnings():  # one that does not converge is only a bad choice
                warnings.simplefilter("ignore")
                said = model.fit(x[~out], self.y[~out]).predict(x[out])
            truth = self.y[out]
            errors.append(
                np.mean((said - truth) ** 2) / truth.var()
                if self.regression
                else np.mean(said != truth)
            )
        return float(np.mean(errors))


def suggested(trial: optuna.Trial) -> dict[str, object]:
    """Return a configuration as a user of Optuna writes it: conditions are branches."""
    found: dict[str, object] = {}
    for name, part in SPACE.parameters.items():
        wanted = (part.when or {}).items()
        if any(found.get(k) not in (v if isinstance(v, tuple) else (v,)) for k, v in wanted):
            continue
        if isinstance(part, Choice):
            found[name] = trial.suggest_categorical(name, part.options)
        elif isinstance(part, Int):
            found[name] = trial.suggest_int(name, part.low, part.high, log=part.log)
        elif isinstance(part, Float):
            found[name] = trial.suggest_float(name, part.low, part.high, log=part.log)
    return found


def lowest(task: Task, method: str, seed: int) -> float:
    """Return the lowest error that a method finds."""
    if method == "scgd":
        return float(scgd.minimize(task, SPACE, max_evals=N_EVALS, seed=seed).fun)
    group = method == "group"
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=group, group=group)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: task(suggested(trial)), n_trials=N_EVALS)
    return float(study.best_value)


def main() -> None:
    """Print a row per task and method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--methods", default="scgd,tpe,group")
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    for name in TASKS:
        task = Task(name)
        for method in args.methods.split(","):
            found = [lowest(task, method, seed) for seed in range(args.seeds)]
            print(f"{name:9} {method:6} {np.mean(found):.4f} {np.median(found):.4f}", flush=True)


if __name__ == "__main__":
    main()
