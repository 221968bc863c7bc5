"""
A week in a laboratory
======================

Six settings, batches of five, values that fail or come late; the notebook is closed every evening
and opened every morning.

Run it: ``python examples/laboratory.py`` (writes laboratory.html).
"""

import tempfile
from pathlib import Path

import numpy as np
from plotly.subplots import make_subplots

import scgd

rng = np.random.default_rng(1)
WEIGHTS = np.array([1, 2, 0.5, 1, 0.2, 3])
NAMES = ["temperature", "acid", "time", "catalyst", "stirring", "pressure"]


def true_yield(x):
    return 1 - float(np.sum((x - 0.3) ** 2 * WEIGHTS))


def measure(x):
    """Return a noisy yield; one flask in ten breaks."""
    if rng.random() < 0.1:
        return RuntimeError("the flask broke")
    return true_yield(x) + 0.02 * rng.standard_normal()


def main():
    opt = scgd.Optimizer(np.full(6, 0.5), bounds=[(0, 1)] * 6, max_evals=120, maximize=True, seed=0)
    opt.add([0.5, 0.4, 0.5, 0.5, 0.5, 0.4], 0.86)  # measured last year
    late = []
    with tempfile.TemporaryDirectory() as folder:
        notebook = Path(folder) / "notebook.npz"
        while not opt.done:
            batch = opt.ask(5)
            for trial in late:
                opt.tell(trial.id, measure(trial.x))
            late = batch[:2]
            for trial in batch[2:]:
                opt.tell(trial.id, measure(trial.x))
            opt.save(notebook)
            opt = scgd.Optimizer.load(notebook)
    result = opt.result()
    print(result.message)
    print(f"true yield: {true_yield(np.full(6, 0.5)):.3f} before, {true_yield(result.x):.3f} after")
    picture(opt, result).write_html("laboratory.html", config={"displayModeBar": False})
    print("picture: laboratory.html")


def picture(opt, result):
    """Draw every measurement, and the settings recommended."""
    figure = make_subplots(
        1, 2, subplot_titles=("yield measured", "settings recommended"), column_widths=[0.6, 0.4]
    )
    rows = [row for row in opt.trials if row["state"] == "told"]
    failed = [row for row in opt.trials if row["state"] == "failed"]
    figure.add_scatter(
        x=[row["id"] for row in rows], y=[row["value"] for row in rows], mode="markers",
        marker_color="#2563eb", row=1, col=1,
    )  # fmt: skip
    bottom = min(row["value"] for row in rows)
    figure.add_scatter(
        x=[row["id"] for row in failed], y=[bottom] * len(failed), mode="markers",
        marker={"color": "#ea580c", "symbol": "x"}, row=1, col=1,
    )  # fmt: skip
    figure.add_bar(x=result.x, y=NAMES, orientation="h", marker_color="#2563eb", row=1, col=2)
    figure.add_vline(x=0.3, line_dash="dot", line_color="#ea580c", row=1, col=2)
    figure.update_xaxes(title_text="trial (crosses: failed)", row=1, col=1)
    figure.update_xaxes(title_text="setting (dotted: the true best)", range=[0, 1], row=1, col=2)
    figure.update_layout(template="plotly_white", height=460, showlegend=False, font_size=14)
    return figure


if __name__ == "__main__":
    main()
