"""
A week in a laboratory
======================

Tune six settings of a reaction with 60 measurements, in batches of four, of which one in ten
fails.

The notebook is saved and loaded after each batch, as it would be overnight. Optuna's default
sampler (TPE) and random settings get as many measurements, with the same failures. The picture
shows medians of eight weeks. Needs ``pip install scgd[optuna] matplotlib`` and writes
laboratory.svg.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import optuna

import scgd

NAMES = ["temperature", "acid", "time", "catalyst", "stirring", "pressure"]
WEIGHTS, START = np.array([1, 2, 0.5, 1, 0.2, 3]), 0.5
BUDGETS, WEEKS = (20, 40, 60), range(8)


def lost(settings):
    """Return the share of the best yield that is lost, without noise."""
    return float(np.sum((settings - 0.3) ** 2 * WEIGHTS))


def measure(settings, rng):
    """Return a noisy yield, or an exception: one flask in ten breaks."""
    if rng.random() < 0.1:
        return RuntimeError("the flask broke")
    return 1 - lost(settings) + 0.02 * rng.standard_normal()


def values(params):
    return np.array([params[name] for name in NAMES])


def ours(n, week, notebook):
    """Return the settings recommended after n measurements."""
    rng = np.random.default_rng(week)
    space = scgd.Space(**{name: scgd.Float(0, 1) for name in NAMES})
    opt = scgd.Optimizer(space, max_evals=n, maximize=True, seed=week)
    while not opt.done:
        for trial in opt.ask(4):
            opt.tell(trial.id, measure(values(trial.params), rng))
        opt.save(notebook)
        opt = scgd.Optimizer.load(notebook)
    return values(opt.result().params)


def tpe(n, week, notebook, sampler=optuna.samplers.TPESampler):
    rng = np.random.default_rng(week)
    study = optuna.create_study(direction="maximize", sampler=sampler(seed=week))
    study.enqueue_trial(dict.fromkeys(NAMES, START))
    for _ in range(n):
        trial = study.ask()
        value = measure(np.array([trial.suggest_float(name, 0, 1) for name in NAMES]), rng)
        failed = isinstance(value, RuntimeError)
        study.tell(trial, *([None, optuna.trial.TrialState.FAIL] if failed else [value]))
    return values(study.best_params)


def at_random(n, week, notebook):
    return tpe(n, week, notebook, optuna.samplers.RandomSampler)


def main():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    print(f"lost at the start: {lost(np.full(6, START)):.3f}")
    methods = {"scgd": ours, "Optuna, TPE": tpe, "random": at_random}
    with tempfile.TemporaryDirectory() as folder:
        for name, method in methods.items():
            gaps = [
                100
                * np.median([lost(method(n, week, Path(folder) / "week.npz")) for week in WEEKS])
                for n in BUDGETS
            ]
            print(f"{name:12} {'  '.join(f'{gap:.1f} %' for gap in gaps)}")
            (line,) = ax.plot(BUDGETS, gaps, "o-", ms=11)
            ax.text(BUDGETS[-1] + 1, gaps[-1], name, color=line.get_color(), va="center")
            if name == "scgd":
                best = gaps[-1]
    ax.set_ylim(0)
    ax.set_xticks(BUDGETS)
    ax.set_xlabel("measurements; one flask in ten breaks")
    ax.set_ylabel("yield lost, %")
    figure.suptitle(f"60 measurements: {100 - best:.0f} % of the best yield", x=0.02, ha="left")
    figure.savefig("laboratory.svg")


if __name__ == "__main__":
    main()
