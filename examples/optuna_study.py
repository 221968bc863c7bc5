"""
A study in Optuna
=================

Keep your Optuna study and change one line: ``sampler=SCGDSampler(n_trials=80)``.

Two coupled tanks have a controller each: eight gains, tuned by the logarithm of the error that
a simulated step leaves; gains that make the tanks swing fail. Storage and dashboard stay as
they are. Optuna's default sampler (TPE) runs the same study. Needs ``pip install scgd[optuna]
matplotlib`` and writes optuna_study.svg.
"""

import matplotlib.pyplot as plt
import numpy as np
import optuna

from scgd.optuna import SCGDSampler

TRIALS, SEEDS = 80, range(8)
STEP, TARGET, LIMIT, UNSTABLE = 0.05, np.array([1.0, 0.5]), 5, 100


def error(kp, ki, kd, cross):
    """Return the error of both levels over time, late errors counting most, and some effort."""
    level, speed, summed, total = np.zeros(2), np.zeros(2), np.zeros(2), 0.0
    for step in range(400):
        off = TARGET - level
        summed += STEP * off
        flow = np.clip(kp * off + ki * summed - kd * speed + cross * off[::-1], -LIMIT, LIMIT)
        coupling = np.array([0.4 * level[1], -0.3 * level[0]])
        speed = speed + STEP * (np.array([1, 0.8]) * flow + coupling - 1.2 * speed)
        speed -= STEP * np.array([0.5, 0.3]) * level
        level = level + STEP * speed
        total += STEP * (step * STEP * np.abs(off).sum() + 0.01 * flow @ flow)
    return total


def objective(trial):
    gains = [
        np.array([trial.suggest_float(f"{name}{tank}", 0.01, 30, log=True) for tank in (1, 2)])
        for name in ("kp", "ki", "kd")
    ]
    cross = np.array([trial.suggest_float(f"cross{tank}", -3, 3) for tank in (1, 2)])
    found = error(*gains, cross=cross)
    return np.log10(found) if found < UNSTABLE else float("nan")


def errors(sampler):
    """Return the lowest error so far, by trial."""
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=TRIALS)
    values = [np.inf if trial.value is None else trial.value for trial in study.trials]
    return 10 ** np.minimum.accumulate(values)


def main():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers = {
        "scgd": lambda seed: SCGDSampler(n_trials=TRIALS, seed=seed),
        "TPE": lambda seed: optuna.samplers.TPESampler(seed=seed),
    }
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    ends = {}
    for name, sampler in samplers.items():
        lowest = np.median([errors(sampler(seed)) for seed in SEEDS], axis=0)
        ends[name] = lowest[-1]
        print(f"{name:5} error {lowest[39]:.2f} after 40 trials, {lowest[-1]:.2f} after {TRIALS}")
        (line,) = ax.step(range(1, TRIALS + 1), lowest, where="post")
        ax.text(TRIALS + 1, lowest[-1], name, color=line.get_color(), va="center")
    ax.set_yscale("log")
    ax.set_yticks((1, 3, 10, 30), ("1", "3", "10", "30"))
    ax.minorticks_off()
    ax.set_xlabel("trials of the study, medians of 8 seeds")
    ax.set_ylabel("error of the step")
    figure.suptitle(
        f"Eight gains tuned in Optuna: error {ends['TPE'] / ends['scgd']:.1f} times smaller",
        x=0.02, ha="left",
    )  # fmt: skip
    figure.savefig("optuna_study.svg")


if __name__ == "__main__":
    main()
