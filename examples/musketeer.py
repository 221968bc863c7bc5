"""
MUSKETEER against uniform draws
===============================

Learn which coordinates to draw: the algorithm of the paper on a regression with 250 weights.

One feature in ten carries a hundred times the variance of the others. ``full`` estimates all
partial derivatives at each step, ``uniform`` draws coordinates at random, ``musketeer`` learns
which of them bring gains. All use the same step rule and the same number of evaluations. Needs
``pip install matplotlib`` and writes musketeer.svg.
"""

import matplotlib.pyplot as plt
import numpy as np

import scgd

WEIGHTS, ROWS, SEEDS = 250, 2000, range(3)
BUDGETS = (1000, 2000, 5000, 10_000, 20_000)
rng = np.random.default_rng(0)
deviations = np.where(np.arange(WEIGHTS) % 10 == 0, 1, 0.1)
X = rng.standard_normal((ROWS, WEIGHTS)) * deviations
y = X @ rng.standard_normal(WEIGHTS) + 0.1 * rng.standard_normal(ROWS)


def loss(x, rows):
    """Return the mean squared error on a batch of rows."""
    return float(np.mean((X[rows] @ x - y[rows]) ** 2))


def ends(policy):
    """Return the loss on all rows by budget, the median of the seeds."""
    method = scgd.SCGD(policy=policy)
    return [
        np.median([
            loss(
                scgd.minimize(
                    loss, np.zeros(WEIGHTS), method=method, sample=scgd.Rows(ROWS, 16),
                    max_evals=n, seed=seed,
                ).x,
                slice(None),
            )
            for seed in SEEDS
        ])
        for n in BUDGETS
    ]  # fmt: skip


def main():
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    reached = {policy: ends(policy) for policy in ("musketeer", "uniform", "full")}
    for policy, losses in reached.items():
        print(f"{policy:10} {'  '.join(f'{value:.1f}' for value in losses)}")
        (line,) = ax.loglog(BUDGETS, losses, "o-", ms=11)
        side = {"uniform": "top", "full": "bottom"}.get(policy, "center")
        ax.text(BUDGETS[-1] * 1.07, losses[-1], policy, color=line.get_color(), va=side)
    ax.set_xticks(BUDGETS, [f"{n:,}" for n in BUDGETS])
    ax.set_yticks((1, 3, 10, 30), ("1", "3", "10", "30"))
    ax.minorticks_off()
    ax.set_xlabel("evaluations of a batch of 16 rows")
    ax.set_ylabel("mean squared error")
    factor = reached["uniform"][-1] / reached["musketeer"][-1]
    figure.suptitle(f"Learned probabilities: {factor:.0f} times less error", x=0.02, ha="left")
    figure.savefig("musketeer.svg")


if __name__ == "__main__":
    main()
