"""
One reading in ten is garbage
=============================

Minimise a function that returns 0, far below its minimum, in one call of ten.

``auto`` notices that most repeated evaluations agree, treats the rest as outliers and takes a
value only when two agree. Methods that trust each value chase the zeros. Needs ``pip install
matplotlib cma`` and writes outliers.svg.
"""

import cma
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import scgd

INPUTS, EVALS, SEEDS = 20, 2000, range(8)
SCALES = np.logspace(0, 1.5, INPUTS)


def problem(seed):
    """Return a function that fails silently, and what it measures above its best value of 1."""
    rng = np.random.default_rng(seed)
    best = rng.uniform(-1, 1, INPUTS)

    def true(x):
        return float(np.sum(SCALES * (x - best) ** 2))

    return (lambda x: 0.0 if rng.random() < 0.1 else 1 + true(x)), true


def ours(fun, seed):
    return scgd.minimize(fun, np.zeros(INPUTS), max_evals=EVALS, seed=seed).x


def cma_es(fun, seed):
    options = {"maxfevals": EVALS, "seed": seed + 1, "verbose": -9, "tolfun": 0}
    return cma.fmin2(fun, np.zeros(INPUTS), 0.3, options)[1].result.xfavorite


def scipy(method):
    return lambda fun, seed: (
        minimize(fun, np.zeros(INPUTS), method=method, options={"maxfev": EVALS}).x
    )


METHODS = {
    "Powell": scipy("Powell"), "Nelder-Mead": scipy("Nelder-Mead"), "CMA-ES": cma_es, "scgd": ours,
}  # fmt: skip


def main():
    ends = {}
    for name, method in METHODS.items():
        ends[name] = []
        for seed in SEEDS:
            fun, true = problem(seed)
            ends[name].append(max(true(method(fun, seed)), 1e-16))
        print(f"{name:12} median {np.median(ends[name]):.1e}, worst {np.max(ends[name]):.1e}")
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    for row, (name, values) in enumerate(ends.items()):
        color = "#0b8f8a" if name == "scgd" else "#858d97"
        ax.semilogx(values, np.full(len(values), row), "o", ms=17, alpha=0.6, mew=0, color=color)
    ax.set_yticks(range(len(ends)), list(ends), fontsize=23)
    ax.set_ylim(-0.6, len(ends) - 0.4)
    ax.set_xlim(1e-17, 1e3)
    ax.grid(axis="x")
    ax.set_xlabel("value above the best after 2,000 evaluations, 8 seeds")
    figure.suptitle("One reading in ten is garbage: only scgd arrives", x=0.02, ha="left")
    figure.savefig("outliers.svg")


if __name__ == "__main__":
    main()
