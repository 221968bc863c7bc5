"""
A portfolio
===========

Spread money over 60 assets: little loss on the worst days, high mean return, shares that sum to
one.

The shares keep to their constraint at every evaluation. A linear program knows the true minimum
here, because it may look inside the formula; the methods see values only. SciPy's SLSQP stops
early, because the risk has kinks. CMA-ES (pycma) searches softmax weights. Needs ``pip install
matplotlib cma`` and writes portfolio.svg.
"""

import cma
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import LinearConstraint, linprog, minimize

import scgd

rng, N, DAYS, WORST = np.random.default_rng(0), 60, 2000, 100
BUDGETS = (1500, 3000, 6000, 12_000)
factors, loads = rng.standard_normal((DAYS, 5)), rng.standard_normal((5, N)) * 0.3
mean = rng.normal(0.03, 0.05, N)
returns = mean * 0.2 + 0.1 * (factors @ loads) + 0.1 * rng.standard_normal((DAYS, N))
EQUAL, TO_ONE = np.full(N, 1 / N), LinearConstraint(np.ones(N), 1, 1)


def risk(shares):
    """Return the mean loss of the 100 worst days, less twice the mean return."""
    gains = returns @ shares
    return float(-np.partition(gains, WORST)[:WORST].mean() - 2 * gains.mean())


def lowest():
    """Return the true minimum: Rockafellar and Uryasev's linear program."""
    cost = np.r_[-2 * returns.mean(0), 1, np.full(DAYS, 1 / WORST)]
    above = np.c_[-returns, -np.ones(DAYS), -np.eye(DAYS)]
    sums = np.r_[np.ones(N), np.zeros(DAYS + 1)][None]
    bounds = [(0, None)] * N + [(None, None)] + [(0, None)] * DAYS
    return linprog(cost, above, np.zeros(DAYS), sums, [1], bounds).fun


def ours(n):
    return scgd.minimize(
        risk, EQUAL, bounds=[(0, 1)] * N, constraints=TO_ONE, max_evals=n, seed=0
    ).fun


def cma_es(n):
    def soft(z):
        shares = np.exp(z - z.max())
        return risk(shares / shares.sum())

    return soft(cma.fmin2(soft, np.zeros(N), 0.5, {"maxfevals": n, "seed": 1, "verbose": -9})[0])


def main():
    best = lowest()
    slsqp = minimize(risk, EQUAL, method="SLSQP", bounds=[(0, 1)] * N, constraints=TO_ONE)
    print(f"risk {risk(EQUAL):.5f} with equal shares; at best {best:.5f}")
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    for name, method in {"scgd": ours, "CMA-ES": cma_es}.items():
        gaps = [method(n) - best for n in BUDGETS]
        print(f"{name:7} {'  '.join(f'{gap:.1e}' for gap in gaps)}")
        (line,) = ax.loglog(BUDGETS, gaps, "o-", ms=11)
        ax.text(BUDGETS[-1] * 1.06, gaps[-1], name, color=line.get_color(), va="center")
    print(f"SLSQP   {slsqp.fun - best:.1e} after {slsqp.nfev} evaluations, then it stops")
    ax.plot([slsqp.nfev, BUDGETS[-1]], [slsqp.fun - best] * 2, "o:", color="#b4bac2", ms=11)
    ax.text(BUDGETS[-1] * 1.06, slsqp.fun - best, "SLSQP", color="#858d97", va="center")
    ax.set_xticks(BUDGETS, [f"{n:,}" for n in BUDGETS])
    ax.minorticks_off()
    ax.set_xlabel("evaluations; the shares of 60 assets sum to one at each")
    ax.set_ylabel("risk above the best")
    figure.suptitle("A risk with kinks: scgd goes on where SLSQP stops", x=0.02, ha="left")
    figure.savefig("portfolio.svg")


if __name__ == "__main__":
    main()
