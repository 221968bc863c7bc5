"""
A first run
===========

A first run: minimise a noisy black box in which 5 of 200 inputs matter.

Prints progress and a result, and writes first_run.html: the descent and the law learned.
"""

import numpy as np
from plotly.subplots import make_subplots

import scgd

important = np.array([3, 31, 77, 120, 199])


def simulator(x, xi):
    """A slow, noisy machine, as far as the optimizer can tell; xi is the noise of one run of it."""
    return float(np.sum((x[important] - 1.0) ** 2) + 1e-4 * x @ x + 0.1 * xi * x[3])


def main():
    result = scgd.minimize(
        simulator,
        np.zeros(200),
        method="musketeer",
        sample=lambda rng: rng.standard_normal(),
        max_evals=20_000,
        seed=1,
        progress=True,
    )
    found = np.sort(np.argsort(result.weights)[-5:])
    print(f"\n{result.message}")
    value = f"{result.fun:.4f} (+- {result.fun_error:.4f})"
    print(f"f fell from 5 to {value} in {result.nfev} evaluations")
    print(f"inputs that matter: {important.tolist()}; most often drawn: {found.tolist()}")
    picture(result).write_html("first_run.html", config={"displayModeBar": False})
    print("picture: first_run.html")


def picture(result):
    figure = make_subplots(1, 2, subplot_titles=("observed value", "sampling law learned"))
    figure.add_scatter(x=result.history["nfev"], y=result.history["fun"], row=1, col=1, name="f")
    figure.add_bar(y=result.weights, width=2.0, row=1, col=2, name="weights")
    figure.update_xaxes(title_text="evaluations", row=1, col=1)
    figure.update_xaxes(title_text="coordinate", row=1, col=2)
    figure.update_layout(template="plotly_white", showlegend=False, height=360, margin_t=60)
    return figure


if __name__ == "__main__":
    main()
