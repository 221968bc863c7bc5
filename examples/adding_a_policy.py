"""
A policy of one's own
=====================

Write a policy of one's own: draw coordinates by the size of the gradients last seen there.

A policy is one frozen dataclass; its memory is a tuple of arrays, so that checkpoints and workers
need no further thought. Compared with uniform draws and Musketeer on a function in which a tenth of
the coordinates matter. Writes adding_a_policy.html.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

import scgd
from scgd.policies import Policy
from scgd.random import uniform

COORDS = 200
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


def main():
    figure = go.Figure()
    for name, policy in {
        "uniform": "uniform",
        "musketeer": "musketeer",
        "ours": LastSeen(),
    }.items():
        result = scgd.minimize(
            f, np.zeros(COORDS), method=scgd.SCGD(policy=policy), max_evals=8000, seed=1,
            sample=lambda rng: rng.standard_normal(),
        )  # fmt: skip
        print(f"{name}: {result.fun:.4f} (+- {result.fun_error:.4f})")
        figure.add_scatter(x=result.history["nfev"], y=result.history["fun"], name=name)
    figure.update_yaxes(type="log", title_text="observed value", dtick=1)
    figure.update_xaxes(title_text="evaluations")
    figure.update_layout(
        template="plotly_white", height=420, font_size=14, title="20 of 200 coordinates matter"
    )
    figure.write_html("adding_a_policy.html", config={"displayModeBar": False})
    print("picture: adding_a_policy.html")


if __name__ == "__main__":
    main()
