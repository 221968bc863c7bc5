"""Find which of 10,000 inputs of a noisy function matter, by reading ``result.weights``.

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
    figure = go.Figure()
    figure.add_scatter(y=result.weights, mode="markers", marker={"size": 3}, name="all inputs")
    figure.add_scatter(
        x=important, y=result.weights[important], mode="markers", name="those that matter"
    )
    figure.update_yaxes(type="log", title_text="sampling weight")
    figure.update_layout(template="plotly_white", height=400)
    figure.write_html("which_inputs_matter.html")
    print("picture: which_inputs_matter.html")


if __name__ == "__main__":
    main()
