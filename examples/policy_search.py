"""
Policy search
=============

Teach a neural network of 481 weights to balance a pole, from the cost of whole episodes alone.

Costs of single episodes are chaotic in the weights. Use ``spsa`` with the typical size of a
weight, ``scale=1``, and let both points of a step start from one state (``sample=``). CMA-ES
(pycma, diagonal) gets as many episodes. Needs ``pip install matplotlib cma`` and writes
policy_search.svg.
"""

import cma
import matplotlib.pyplot as plt
import numpy as np

import scgd
from scgd_arena.outside import rollout

EPISODES, SEEDS = (500, 1000, 2000, 4000), range(5)
TASK = rollout()
COST = TASK.make(0)


def ours(n, seed):
    return scgd.minimize(
        COST, TASK.x0, method="spsa", scale=1.0, sample=TASK.sample, max_evals=n, seed=seed
    ).x


def cma_es(n, seed):
    rng = np.random.default_rng(seed)
    options = {"maxfevals": n, "seed": seed + 1, "verbose": -9, "tolfun": 0, "CMA_diagonal": True}
    es = cma.fmin2(lambda x: COST(x, [rng.integers(1000)]), TASK.x0, 0.3, options)[1]
    return es.result.xfavorite


def test(x):
    """Return the mean cost over 200 starts."""
    return np.mean([COST(x, [start]) for start in range(200)])


def main():
    print(f"mean cost of the start: {test(TASK.x0):.3f}")
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    for name, method in {"scgd, spsa": ours, "CMA-ES": cma_es}.items():
        costs = np.array([[test(method(n, seed)) for n in EPISODES] for seed in SEEDS])
        median = np.median(costs, axis=0)
        print(f"{name:10} {'  '.join(f'{cost:.4f}' for cost in median)}")
        (line,) = ax.loglog(EPISODES, median, "o-", ms=11)
        ax.fill_between(EPISODES, costs.min(0), costs.max(0), color=line.get_color(), alpha=0.15)
        ax.text(EPISODES[-1] * 1.06, median[-1], name, color=line.get_color(), va="center")
    ax.set_xticks(EPISODES, [f"{n:,}" for n in EPISODES])
    ax.minorticks_off()
    ax.set_xlabel("episodes seen; band: best to worst of 5 seeds")
    ax.set_ylabel("mean cost, 200 starts")
    figure.suptitle("A pole balanced by 481 weights in 4,000 episodes", x=0.02, ha="left")
    figure.savefig("policy_search.svg")


if __name__ == "__main__":
    main()
