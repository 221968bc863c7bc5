"""
A first run
===========

Calibrate a noisy simulator in which 5 of 200 inputs matter.

Prints progress and a result, and writes first_run.html: the descent and the law learned.
"""

import numpy as np
from plotly.subplots import make_subplots

import scgd

important = np.array([3, 31, 77, 120, 199])
measured = np.array([0.2, 0.4, 0.6, 0.8, 1.0])


def misfit(inputs, weather):
    """Compare one run of the simulator with what was measured; weather is the noise of that run."""
    simulated = inputs[important] + 0.1 * weather
    return float(np.sum((simulated - measured) ** 2))


def main():
    result = scgd.minimize(
        misfit,
        np.zeros(200),
        method="musketeer",
        sample=lambda rng: rng.standard_normal(5),
        max_evals=20_000,
        seed=1,
        progress=True,
    )
    found = np.sort(np.argsort(result.weights)[-5:])
    print(f"\n{result.message}")
    print(f"inputs that matter: {important.tolist()}; most often drawn: {found.tolist()}")
    print(f"measured: {measured.tolist()}; found: {result.x[found].round(2).tolist()}")
    picture(result).write_html("first_run.html", config={"displayModeBar": False})
    print("picture: first_run.html")


def picture(result):
    figure = make_subplots(1, 2, subplot_titles=("misfit of a run", "sampling law learned"))
    line, orange = {"color": "#2563eb", "width": 2}, "#ea580c"
    figure.add_scatter(x=result.history["nfev"], y=result.history["fun"], line=line, row=1, col=1)
    figure.add_bar(y=result.weights, width=2.0, marker_color=orange, row=1, col=2)
    figure.update_xaxes(title_text="evaluations", row=1, col=1)
    figure.update_xaxes(title_text="input", range=[-4, 204], row=1, col=2)
    figure.update_yaxes(rangemode="tozero")
    figure.update_layout(template="plotly_white", showlegend=False, height=360, font_size=14)
    figure.update_layout(margin={"t": 50, "b": 60, "l": 50, "r": 30})
    return figure


if __name__ == "__main__":
    main()
