"""
Which inputs matter
===================

Find which of 10,000 inputs of a noisy function matter, by reading ``result.weights``.

Twelve do. Every evaluation sees one random sample, which can be held fixed. Writes
which_inputs_matter.html.
"""

import numpy as np
import plotly.graph_objects as go

import scgd

INPUTS, SAMPLES = 10_000, 5000
rng = np.random.default_rng(4)
important = np.sort(rng.choice(INPUTS, 12, replace=False))
features = rng.standard_normal((SAMPLES, 12))
answers = features @ rng.uniform(0.5, 2, 12)


def loss(x, rows):
    i = rows[0]
    return float(features[i] @ x[important] - answers[i]) ** 2 + 1e-9 * float(x @ x)


def main():
    result = scgd.minimize(loss, np.zeros(INPUTS), sample=SAMPLES, max_evals=80_000, seed=1)
    found = np.sort(np.argsort(result.weights)[-12:])
    print(result.message)
    print(f"loss {np.mean(answers**2):.2f} at the start, {result.fun:.2g} at the end")
    print(f"inputs that matter: {important.tolist()}")
    print(f"largest weights:    {found.tolist()} ({len(set(found) & set(important))} of 12 right)")
    picture(result).write_html("which_inputs_matter.html", config={"displayModeBar": False})
    print("picture: which_inputs_matter.html")


def picture(result):
    """Draw the sampling probability of every input on a logarithmic scale."""
    figure = go.Figure()
    rest = np.setdiff1d(np.arange(INPUTS), important)
    figure.add_scattergl(
        x=rest, y=result.weights[rest], mode="markers", name="9,988 other inputs",
        marker={"size": 3, "color": "#94a3b8"},
    )  # fmt: skip
    figure.add_scatter(
        x=important, y=result.weights[important], mode="markers", name="the 12 that matter",
        marker={"size": 9, "color": "#ea580c"},
    )  # fmt: skip
    figure.update_yaxes(
        type="log", title_text="sampling probability", dtick=1, exponentformat="power"
    )
    figure.update_xaxes(title_text="input", range=[-200, INPUTS + 200])
    figure.update_layout(
        template="plotly_white", height=460, font_size=14, legend={"orientation": "h", "y": -0.2},
        title=f"Sampling probabilities after {result.nfev / INPUTS:.0f} evaluations per input",
    )  # fmt: skip
    return figure


if __name__ == "__main__":
    main()
