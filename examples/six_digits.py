"""
A simulator that prints six digits
==================================

Minimise a smooth function whose values are rounded to six digits.

``auto`` measures how precise the values are and steps far enough to see a slope. SciPy's BFGS
steps 1.5e-8, sees no change and stops at the start. Needs ``pip install matplotlib cma`` and
writes six_digits.svg.
"""

import cma
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize, rosen

import scgd

BUDGETS, START = (500, 1000, 2000, 5000), np.full(20, -0.5)


def printed(x):
    """Return Rosenbrock's function of 20 inputs as a program prints it."""
    return float(f"{1 + rosen(x):.6g}")


def ours(n):
    return scgd.minimize(printed, START, max_evals=n, seed=0).x


def cma_es(n):
    options = {"maxfevals": n, "seed": 1, "verbose": -9, "tolfun": 0}
    return cma.fmin2(printed, START, 0.3, options)[1].result.xfavorite


def scipy(method):
    return lambda n: minimize(printed, START, method=method, options={"maxfev": n}).x


def bfgs(n):
    return minimize(printed, START, method="BFGS").x


METHODS = {
    "scgd": ours, "CMA-ES": cma_es, "Powell": scipy("Powell"), "SciPy's BFGS": bfgs,
}  # fmt: skip


def main():
    reached = {}
    for name, method in METHODS.items():
        reached[name] = [rosen(method(n)) for n in BUDGETS]
        print(f"{name:13} {'  '.join(f'{value:.1e}' for value in reached[name])}")
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    for name, values in reached.items():
        (line,) = ax.loglog(BUDGETS, values, "o-", ms=11)
        side = {"CMA-ES": "bottom", "Powell": "top"}.get(name, "center")  # their lines meet
        ax.text(BUDGETS[-1] * 1.07, values[-1], name, color=line.get_color(), va=side)
    ax.set_xticks(BUDGETS, [f"{n:,}" for n in BUDGETS])
    ax.minorticks_off()
    ax.set_xlabel("evaluations, each rounded to six digits")
    ax.set_ylabel("true value above the best")
    figure.suptitle("Six digits printed: BFGS stops, scgd arrives", x=0.02, ha="left")
    figure.savefig("six_digits.svg")


if __name__ == "__main__":
    main()
