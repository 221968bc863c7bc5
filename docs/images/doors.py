"""The pictures of doors.md: ``python docs/images/doors.py`` (Optuna; some minutes on one core).

Each door against the default of its library at equal evaluations, ten seeds each: SciPy's minimize
on a noisy function, Optuna's sampler on ten parameters, RandomizedSearchCV on a support vector
machine.
``doors.csv`` keeps the rows, and ``--draw`` draws them again without running anything.
"""

import csv
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import lines  # noqa: E402

SEEDS = range(10)


def scipy_rows():
    """True values of the point returned after so many evaluations of a noisy function."""
    from scipy.optimize import minimize

    import scgd

    methods = {"scgd": scgd.scipy_method, "Nelder-Mead": "Nelder-Mead", "default (BFGS)": None}
    for seed in SEEDS:
        best = np.random.default_rng(seed).uniform(-1, 1, 10)

        def gap(x, best=best):
            return float(np.sum(np.arange(1, 11) * (x - best) ** 2))

        for n in (100, 200, 500, 1000, 2000):
            for name, method in methods.items():
                rng = np.random.default_rng(seed)
                count = [0]

                def noisy(x, count=count, rng=rng, n=n, gap=gap):
                    count[0] += 1
                    if count[0] > n:
                        raise StopIteration
                    return gap(x) + 0.1 * rng.standard_normal()

                x = np.full(10, 0.5)
                if method is None:  # BFGS has no limit of evaluations: its last iterate within n
                    trace = [x]
                    with suppress(StopIteration):
                        minimize(noisy, x, callback=lambda xk, trace=trace: trace.append(xk.copy()))
                    x = trace[-1]
                else:
                    options = {"maxfev": n} | ({"seed": seed} if name == "scgd" else {})
                    x = minimize(noisy, x, method=method, options=options).x
                yield "scipy", name, n, seed, gap(x)


def objective(trial, best):
    """Eight numbers, a whole number and a choice."""
    x = np.array([trial.suggest_float(f"x{k}", -5, 5) for k in range(8)])
    layers = trial.suggest_int("layers", 1, 12)
    kind = trial.suggest_categorical("kind", ["a", "b", "c"])
    return float(np.sum((x - best) ** 2)) / 10 + 0.1 * abs(layers - 7) + 0.3 * (kind != "b")


def optuna_rows():
    """Best values of a study after so many trials."""
    import optuna

    from scgd.optuna import SCGDSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for seed in SEEDS:
        best = np.random.default_rng(seed).uniform(-3, 3, 8)
        for name in ("scgd", "default (TPE)"):
            sampler = SCGDSampler(n_trials=100, seed=seed) if name == "scgd" else (
                optuna.samplers.TPESampler(seed=seed)
            )  # fmt: skip
            study = optuna.create_study(sampler=sampler)
            study.optimize(lambda trial, best=best: objective(trial, best), n_trials=100)
            values = np.minimum.accumulate([trial.value for trial in study.trials])
            for n in (10, 20, 30, 50, 70, 100):
                yield "optuna", name, n, seed, values[n - 1]


def sklearn_rows():
    """Mean errors of the best candidate so far in five-fold cross-validation."""
    from scipy.stats import loguniform
    from sklearn.datasets import load_digits
    from sklearn.model_selection import RandomizedSearchCV
    from sklearn.svm import SVC

    from scgd.sklearn import SCGDSearchCV

    X, y = load_digits(return_X_y=True)
    grid = {
        "C": loguniform(1e-3, 1e4),
        "gamma": loguniform(1e-7, 1e1),
        "kernel": ["rbf", "sigmoid"],
    }
    for seed in SEEDS:
        some = np.random.default_rng(seed).permutation(len(y))[:300]
        for name, door in (("scgd", SCGDSearchCV), ("default (random)", RandomizedSearchCV)):
            search = door(SVC(), grid, n_iter=40, cv=5, random_state=seed).fit(X[some], y[some])
            errors = np.minimum.accumulate(1 - search.cv_results_["mean_test_score"])
            for n in (5, 10, 15, 20, 30, 40):
                yield "sklearn", name, n, seed, errors[n - 1]


DOORS = {
    "scipy": (scipy_rows, "gap to the minimum", "10 inputs, noise of 0.1", "evaluations"),
    "optuna": (optuna_rows, "best value", "10 parameters", "trials"),
    "sklearn": (sklearn_rows, "error", "SVM on digits, cross-validated", "candidates"),
}  # fmt: skip


def run(doors):
    """Write the rows."""
    kept = [row for row in rows() if row[0] not in doors] if (HERE / "doors.csv").exists() else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        new = [(*row[:-1], f"{row[-1]:.4g}") for door in doors for row in DOORS[door][0]()]
    with (HERE / "doors.csv").open("w") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("door", "method", "evaluations", "seed", "value"))
        out.writerows([*kept, *new])


def rows():
    """Return the rows that are kept."""
    with (HERE / "doors.csv").open() as file:
        return [tuple(row) for row in csv.reader(file)][1:]


def draw(door):
    """Write a picture: medians with quartiles; its title says by how much the last ones differ."""
    _, what, where, unit = DOORS[door]
    found = {}
    for _, name, n, _, value in (row for row in rows() if row[0] == door):
        found.setdefault(name, {}).setdefault(int(n), []).append(float(value))
    at = list(next(iter(found.values())))
    bands = {m: np.quantile([found[m][n] for n in at], (0.25, 0.5, 0.75), axis=1) for m in found}
    other = next(name for name in found if "default" in name)
    ours, theirs = bands["scgd"][1, -1], bands[other][1, -1]
    title = f"After {at[-1]:,} {unit}: {ours:.2g}, default {theirs:.2g}"
    curves = {
        name: (at, *band, lines.OURS if name == "scgd" else lines.OTHER)
        for name, band in bands.items()
    }
    note = f"{what}; {where}; ten seeds"
    (HERE / f"door-{door}.svg").write_text(lines.picture(curves, title, note, unit, at, log=True))


if __name__ == "__main__":
    if "--draw" not in sys.argv:
        run(sys.argv[1:] or list(DOORS))
    for door in DOORS:
        draw(door)
