"""
A first run
===========

Find the five inputs of a noisy simulator that matter, and their best values, among 200.

No two runs of the simulator agree. CMA-ES (pycma) and SciPy's Powell get as many runs, from the
same start. Needs ``pip install matplotlib cma`` and writes first_run.svg.
"""

import cma
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import scgd

INPUTS, BUDGETS, SEEDS = 200, (500, 1000, 2000, 5000), range(5)
MATTER = np.array([12, 57, 110, 171, 190])
BEST = np.array([0.8, -0.6, 0.5, -0.9, 0.7])


def simulator(seed):
    """Return a function with a cost of 2 at best, and noise of 0.1."""
    rng = np.random.default_rng(seed)
    return lambda x: 2 + above_best(x) + 0.1 * rng.standard_normal()


def above_best(x):
    """Return the true cost above the best one, which no method sees."""
    return float(np.sum((x[MATTER] - BEST) ** 2))


def ours(n, seed):
    return scgd.minimize(simulator(seed), np.zeros(INPUTS), max_evals=n, seed=seed).x


def cma_es(n, seed):
    options = {"maxfevals": n, "seed": seed + 1, "verbose": -9, "tolfun": 0, "CMA_diagonal": True}
    return cma.fmin2(simulator(seed), np.zeros(INPUTS), 0.3, options)[1].result.xfavorite


def powell(n, seed):
    return minimize(simulator(seed), np.zeros(INPUTS), method="Powell", options={"maxfev": n}).x


def main():
    result = scgd.minimize(simulator(0), np.zeros(INPUTS), max_evals=5000, seed=0)
    print(result)
    found = np.sort(np.argsort(result.relevance)[-5:])
    print(f"inputs that matter: {MATTER.tolist()}; most relevant: {found.tolist()}")
    print(f"best values: {BEST.tolist()}; found: {result.x[found].round(2).tolist()}")
    methods = {"scgd": ours, "CMA-ES": cma_es, "Powell": powell}
    medians = {
        name: [np.median([above_best(method(n, seed)) for seed in SEEDS]) for n in BUDGETS]
        for name, method in methods.items()
    }
    for name, values in medians.items():
        print(f"{name:7} {'  '.join(f'{value:.1e}' for value in values)}")
    picture(medians)


def picture(medians):
    """Draw the true cost reached within each number of runs."""
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    for name, values in medians.items():
        (line,) = ax.loglog(BUDGETS, values, "o-", ms=11)
        ax.text(BUDGETS[-1] * 1.07, values[-1], name, color=line.get_color(), va="center")
    ax.set_xticks(BUDGETS, [f"{n:,}" for n in BUDGETS])
    ax.minorticks_off()
    ax.set_xlabel("noisy runs of the simulator")
    ax.set_ylabel("cost above the best")
    factor = float(f"{medians['CMA-ES'][-1] / medians['scgd'][-1]:.0e}")
    figure.suptitle(f"5 of 200 inputs: {factor:,.0f} times closer than CMA-ES", x=0.02, ha="left")
    figure.savefig("first_run.svg")


if __name__ == "__main__":
    main()
