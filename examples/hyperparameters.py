"""
Hyper-parameters
================

Tune 30 hyper-parameters by a cross-validated score whose split is random.

Each feature of a nearest-neighbour classifier gets its own scale. A split is a sample that can be
held fixed, so every step compares like with like. Writes hyperparameters.html.
"""

import numpy as np
from plotly.subplots import make_subplots
from sklearn.datasets import load_breast_cancer

import scgd

data, target = load_breast_cancer(return_X_y=True)
data = (data - data.mean(axis=0)) / data.std(axis=0)
SPLITS = 1000


def loss(log_scales, rows, width=1.0):
    """Return the log loss of a soft nearest-neighbour classifier on a random half of the data."""
    order = np.random.default_rng([int(rows[0]), 8]).permutation(len(data))
    train, test = order[: len(order) // 2], order[len(order) // 2 :]
    scaled = data * np.exp(np.clip(log_scales, -5, 3))
    squares = (scaled**2).sum(axis=1)
    distance = squares[test, None] + squares[train] - 2 * scaled[test] @ scaled[train].T
    closeness = np.exp(-(distance - distance.min(axis=1, keepdims=True)) / width)
    share = closeness @ target[train] / closeness.sum(axis=1)
    share = np.clip(share, 0.01, 0.99)
    return float(-np.mean(np.where(target[test] == 1, np.log(share), np.log(1 - share))))


def mean_loss(x):
    return np.mean([loss(x, [SPLITS + i]) for i in range(40)])


def main():
    x0 = np.full(data.shape[1], -1.0)
    result = scgd.minimize(loss, x0, sample=SPLITS, bounds=[(-5, 3)], max_evals=3000, seed=1)
    print(result.message)
    print(f"log loss on fresh splits: {mean_loss(x0):.4f} before, {mean_loss(result.x):.4f} after")
    picture(result, x0).write_html("hyperparameters.html", config={"displayModeBar": False})
    print("picture: hyperparameters.html")


def picture(result, x0):
    """Draw the descent and the scales, largest first."""
    figure = make_subplots(
        1, 2, subplot_titles=("log loss of the splits seen", "scale of each feature"),
        column_widths=[0.45, 0.55], horizontal_spacing=0.22,
    )  # fmt: skip
    seen = {"color": "rgba(37, 99, 235, 0.35)", "width": 1}
    nfev, fun = result.history["nfev"], result.history["fun"]
    figure.add_scatter(x=nfev, y=fun, line=seen, row=1, col=1)
    width = max(1, len(fun) // 15)
    smooth = np.convolve(fun, np.ones(width) / width, mode="valid")
    mean = {"color": "#2563eb", "width": 3}
    figure.add_scatter(x=nfev[width - 1 :], y=smooth, line=mean, row=1, col=1)
    order = np.argsort(result.x)
    names = load_breast_cancer().feature_names[order]
    figure.add_bar(
        x=np.exp(result.x[order]), y=names, orientation="h", marker_color="#2563eb", row=1, col=2
    )
    figure.add_vline(x=float(np.exp(x0[0])), line_dash="dot", line_color="#ea580c", row=1, col=2)
    figure.update_xaxes(title_text="evaluations", row=1, col=1)
    figure.update_xaxes(title_text="scale (dotted: at the start)", row=1, col=2)
    figure.update_yaxes(tickfont_size=10, dtick=1, row=1, col=2)
    figure.update_layout(
        template="plotly_white", height=620, showlegend=False, font_size=14,
        title=f"30 hyper-parameters: log loss {mean_loss(x0):.3f} before, "
        f"{mean_loss(result.x):.3f} after",
    )  # fmt: skip
    return figure


if __name__ == "__main__":
    main()
