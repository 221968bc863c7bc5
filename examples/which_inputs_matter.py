"""
Which inputs matter
===================

Find the 12 inputs that matter among 5,000, with one and a half evaluations per input.

Every evaluation is noisy. ``result.relevance`` says which inputs change the function. CMA-ES
(pycma) gets as many evaluations; what it moved furthest is what it tells. Needs ``pip install
matplotlib cma`` and writes which_inputs_matter.svg.
"""

import cma
import matplotlib.pyplot as plt
import numpy as np

import scgd

INPUTS, EVALS = 5000, 7500
rng = np.random.default_rng(0)
MATTER = np.sort(rng.choice(INPUTS, 12, replace=False))
BEST = rng.uniform(0.5, 2, 12) * rng.choice([-1, 1], 12)


def noisy(x):
    """Return the squared distance to the best values of 12 inputs, with noise of 0.3."""
    return float(np.sum((x[MATTER] - BEST) ** 2)) + 0.3 * rng.standard_normal()


def right(scores):
    """Return how many of the 12 largest scores are of inputs that matter."""
    return len(set(np.argsort(scores)[-12:]) & set(MATTER))


def main():
    result = scgd.minimize(noisy, np.zeros(INPUTS), max_evals=EVALS, seed=0)
    options = {"maxfevals": EVALS, "seed": 1, "verbose": -9, "CMA_diagonal": True}
    moved = np.abs(cma.fmin2(noisy, np.zeros(INPUTS), 0.3, options)[1].result.xfavorite)
    print(result.message)
    print(f"scgd: {right(result.relevance)} of 12 found; CMA-ES: {right(moved)}")
    picture(result.relevance, right(result.relevance), right(moved))


def picture(relevance, ours, others):
    """Draw the relevance of every input."""
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    rest = np.setdiff1d(np.arange(INPUTS), MATTER)
    ax.plot(rest, 100 * relevance[rest], "o", ms=5, color="#858d97")
    ax.vlines(MATTER, 0, 100 * relevance[MATTER], color="#0b8f8a", lw=3)
    ax.plot(MATTER, 100 * relevance[MATTER], "o", ms=13, color="#0b8f8a")
    ax.text(2050, 0.4, "4,988 others", color="#858d97", ha="center", va="bottom")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel("input")
    ax.set_ylabel("relevance, %")
    figure.suptitle(
        f"{ours} of 12 inputs found among 5,000; CMA-ES finds {others}", x=0.02, ha="left"
    )
    figure.savefig("which_inputs_matter.svg")


if __name__ == "__main__":
    main()
