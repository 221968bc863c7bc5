"""
A policy of your own
====================

Write a policy in twenty lines: draw coordinates by the size of the gradients last seen there.

A policy is one frozen dataclass, and its memory is a tuple of arrays; so checkpoints and
workers need no further thought. It is compared with uniform draws and Musketeer on a function
in which a tenth of the coordinates matter. Needs ``pip install matplotlib`` and writes
adding_a_policy.svg.
"""

from dataclasses import dataclass
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

import scgd
from scgd.policies import Policy
from scgd.random import uniform

COORDS, BUDGETS, SEEDS = 200, (1000, 2000, 4000, 8000), range(3)
curvature = np.where(np.arange(COORDS) % 10 == 0, 1.0, 1e-3)


def f(x, xi):
    return float(0.5 * np.sum(curvature * (x - 1 - 0.1 * xi) ** 2))


class Sizes(NamedTuple):
    """What the policy remembers: a running size of the gradient per coordinate."""

    size: np.ndarray


@dataclass(frozen=True)
class LastSeen(Policy):
    """Draw proportional to the gradients last seen, mixed with a share of uniform draws."""

    keep: float = 0.7
    share: float = 0.3

    def init(self, n_coords, replace=True):
        return Sizes(np.ones(n_coords))

    def weights(self, state):
        shares = state.size / state.size.sum()
        return (1 - self.share) * shares + self.share / len(shares)

    def draw(self, state, stream, coords, probs, block, replace):
        weights = self.weights(state)
        ends = np.cumsum(weights)
        for i in range(len(coords)):
            coords[i] = min(np.searchsorted(ends, uniform(stream)), len(ends) - 1)
        probs[:] = weights[coords]

    def update(self, state, coords, probs, grads, mixing):
        state.size[coords] = self.keep * state.size[coords] + (1 - self.keep) * np.abs(grads)


def end(policy, n, seed):
    """Return the expected value at the point reached with n evaluations."""
    result = scgd.minimize(
        f, np.zeros(COORDS), method=scgd.SCGD(policy=policy), max_evals=n, seed=seed,
        sample=lambda rng: rng.standard_normal(),
    )  # fmt: skip
    return f(result.x, 0)


def main():
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    policies = {"LastSeen, ours": LastSeen(), "musketeer": "musketeer", "uniform": "uniform"}
    for name, policy in policies.items():
        ends = [np.median([end(policy, n, seed) for seed in SEEDS]) for n in BUDGETS]
        print(f"{name:15} {'  '.join(f'{value:.3f}' for value in ends)}")
        (line,) = ax.loglog(BUDGETS, ends, "o-", ms=11)
        ax.text(BUDGETS[-1] * 1.06, ends[-1], name, color=line.get_color(), va="center")
    ax.set_xticks(BUDGETS, [f"{n:,}" for n in BUDGETS])
    ax.minorticks_off()
    ax.set_xlabel("evaluations")
    ax.set_ylabel("value above the best")
    figure.suptitle("A policy of your own, in twenty lines", x=0.02, ha="left")
    figure.savefig("adding_a_policy.svg")


if __name__ == "__main__":
    main()
