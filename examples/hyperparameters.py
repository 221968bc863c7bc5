"""
Hyper-parameters
================

Tune the 11 parameters of a kernel model in 100 trials: a scale per feature, and the penalty.

All are floats on a log scale; integers, choices and conditions work too (see the page on
spaces). Optuna's default sampler (TPE) searches the same space. Needs ``pip install
scgd[optuna] matplotlib`` and writes hyperparameters.svg.
"""

import matplotlib.pyplot as plt
import numpy as np
import optuna
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold

import scgd

data = load_diabetes()
X, y, NAMES = data.data / data.data.std(0), data.target, data.feature_names
FOLDS = list(KFold(5, shuffle=True, random_state=0).split(X))
TRIALS, SEEDS = 100, range(4)
SPACE = scgd.Space(
    **{name: scgd.Float(1e-3, 1, log=True) for name in NAMES},
    penalty=scgd.Float(1e-3, 10, log=True),
)


def rmse(params):
    """Return the error of kernel ridge regression over five folds."""
    Z = X * [params[name] for name in NAMES]
    kernel = np.exp(-np.sum((Z[:, None] - Z) ** 2, axis=2))
    squares = 0.0
    for train, test in FOLDS:
        mean = y[train].mean()
        among = kernel[np.ix_(train, train)] + params["penalty"] * np.eye(len(train))
        guess = mean + kernel[np.ix_(test, train)] @ np.linalg.solve(among, y[train] - mean)
        squares += np.sum((guess - y[test]) ** 2)
    return float(np.sqrt(squares / len(y)))


def ours(seed):
    """Return the errors in the order of the trials."""
    seen = []
    scgd.minimize(
        lambda params: seen.append(rmse(params)) or seen[-1], SPACE, max_evals=TRIALS, seed=seed
    )
    return seen


def tpe(seed):
    def objective(trial):
        params = {name: trial.suggest_float(name, 1e-3, 1, log=True) for name in NAMES}
        return rmse({**params, "penalty": trial.suggest_float("penalty", 1e-3, 10, log=True)})

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(objective, n_trials=TRIALS)
    return [trial.value for trial in study.trials]


def main():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    best = {
        name: np.median([np.minimum.accumulate(method(seed)) for seed in SEEDS], axis=0)
        for name, method in {"scgd": ours, "Optuna, TPE": tpe}.items()
    }
    for name, errors in best.items():
        print(f"{name:12} {errors[24]:.2f} after 25 trials, {errors[-1]:.2f} after {TRIALS}")
    sooner = 1 + int(np.argmax(best["scgd"] <= best["Optuna, TPE"][-1]))
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    for name, errors in best.items():
        (line,) = ax.step(range(1, TRIALS + 1), errors, where="post")
        ax.text(TRIALS + 2, errors[-1], name, color=line.get_color(), va="center")
    ax.set_ylim(best["scgd"][-1] - 0.3, best["scgd"][-1] + 4)
    ax.set_xlabel("trials, medians of 4 seeds")
    ax.set_ylabel("RMSE, five folds")
    figure.suptitle(
        f"11 hyper-parameters: {sooner} trials do what takes TPE {TRIALS}", x=0.02, ha="left"
    )
    figure.savefig("hyperparameters.svg")


if __name__ == "__main__":
    main()
