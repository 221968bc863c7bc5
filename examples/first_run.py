"""
A first run
===========

Calibrate a noisy simulator in which 5 of 200 inputs matter.

No two runs of the simulator agree. Prints the result and writes first_run.html: the cost against
evaluations, and how relevant each input is.
"""

import numpy as np
from plotly.subplots import make_subplots

import scgd

INPUTS = 200
matter = np.array([12, 57, 110, 171, 190])
best = np.array([0.8, -0.6, 0.5, -0.9, 0.7])
rng = np.random.default_rng(0)


def simulator(x):
    """Return the cost of a run: 2 at best, with noise of 0.1."""
    return 2 + float(np.sum((x[matter] - best) ** 2)) + 0.1 * rng.standard_normal()


def main():
    result = scgd.minimize(simulator, np.zeros(INPUTS), max_evals=5000, seed=0)
    found = np.sort(np.argsort(result.relevance)[-5:])
    print(result)
    print(f"inputs that matter: {matter.tolist()}; most relevant: {found.tolist()}")
    print(f"best values: {best.tolist()}; found: {result.x[found].round(2).tolist()}")
    right = len(set(found) & set(matter))
    picture(result, right).write_html("first_run.html", config={"displayModeBar": False})
    print("picture: first_run.html")


def picture(result, right):
    """Draw the cost, and the relevance of every input."""
    figure = make_subplots(
        1, 2, subplot_titles=("cost of the point reached", "relevance of each input")
    )
    line, orange = {"color": "#2563eb", "width": 3}, "#ea580c"
    figure.add_scatter(x=result.history["nfev"], y=result.history["fun"], line=line, row=1, col=1)
    figure.add_bar(y=result.relevance, width=2.0, marker_color=orange, row=1, col=2)
    figure.update_xaxes(title_text="evaluations", row=1, col=1)
    figure.update_xaxes(title_text="input", range=[-4, 204], row=1, col=2)
    figure.update_yaxes(rangemode="tozero")
    figure.update_layout(
        template="plotly_white", showlegend=False, height=420, font_size=14,
        title=f"{right} of the 5 inputs that matter found among 200, in {result.nfev:,} noisy runs",
    )  # fmt: skip
    return figure


if __name__ == "__main__":
    main()
