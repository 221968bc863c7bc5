"""
Which of 2,000 inputs matter, with error bars
=============================================

``scgd.screen`` decides for each input of a noisy simulator whether it matters, at a stated
false-discovery rate, with a confidence interval for its effect. Writes screen_inputs.html.

Twelve of 2,000 matter: some bend, two only act together. There are 1,000 noisy runs.
"""

import numpy as np
import plotly.graph_objects as go

import scgd

INPUTS, RUNS, NOISE = 2000, 1000, 0.5
rng = np.random.default_rng(7)
matter = np.sort(rng.choice(INPUTS, 12, replace=False))
slopes = np.array([2.0, -1.6, 1.3, -1.0, 0.8, -0.6])
bends = np.array([2.0, -1.5, 1.0, 0.7])
LEVELS = np.linspace(-1, 1, 4)  # the levels at which screen tries an input


def simulator(x):
    z = x[matter]
    clean = slopes @ z[:6] + bends @ z[6:10] ** 2 + 1.5 * z[10] * z[11]
    return float(clean) + NOISE * rng.standard_normal()


def main():
    found = scgd.screen(simulator, [(-1, 1)] * INPUTS, max_evals=RUNS, seed=0)
    print(found)
    said = np.flatnonzero(found.decisions == "matters")
    right = len(set(said) & set(matter))
    print(f"{right} of the 12 that matter, and {len(said) - right} of the 1,988 others")
    picture(found, said, right).write_html("screen_inputs.html", config={"displayModeBar": False})
    print("picture: screen_inputs.html")


def rows(found, said):
    """Return name, effect, limits and truth of what was found, the largest effect first."""
    true = {k: abs(s) * np.std(LEVELS) for k, s in zip(matter[:6], slopes, strict=True)}
    true |= {k: abs(b) * np.std(LEVELS**2) for k, b in zip(matter[6:10], bends, strict=True)}
    for k in said:
        if found.low[k] > 0:  # by itself
            limits = found.low[k], found.high[k]
            yield f"input {k}", found.sizes[k], *limits, true.get(k, 0.0)
    pair = tuple(f"x[{k}]" for k in matter[10:])
    for one in found.interactions:
        words = " x ".join(name[2:-1] for name in one["inputs"])
        size, band = one["size"], 2 * one["error"]
        truth = 1.5 * np.var(LEVELS) if one["inputs"] == pair else 0.0
        yield words, size, size - band, size + band, truth


def picture(found, said, right):
    """Draw effects with their intervals, and the true ones."""
    table = sorted(rows(found, said), key=lambda row: -row[1])
    names, size, low, high, true = (np.array(column) for column in zip(*table, strict=True))
    figure = go.Figure()
    figure.add_scatter(
        x=names, y=size, mode="markers", name="effect, 95 % interval",
        marker={"size": 13, "color": "#0f766e"},
        error_y={"array": high - size, "arrayminus": size - low, "symmetric": False,
                 "thickness": 3, "width": 0, "color": "#0f766e"},
    )  # fmt: skip
    figure.add_scatter(
        x=names,
        y=true,
        mode="markers",
        name="truth",
        marker={"symbol": "line-ew", "size": 22, "line": {"width": 3, "color": "#ea580c"}},
    )
    others = np.setdiff1d(np.arange(INPUTS), said)
    figure.add_scatter(
        x=[f"{len(others):,} others"] * len(others), y=found.sizes[others], mode="markers",
        name="not said to matter", marker={"size": 7, "color": "#94a3b8"},
    )  # fmt: skip
    false = len(said) - right
    figure.update_yaxes(title_text="effect on the output", rangemode="tozero")
    figure.update_xaxes(tickangle=-40)
    figure.update_layout(
        template="plotly_white", height=590, font_size=17, margin={"t": 90, "r": 20},
        legend={"orientation": "h", "y": 1.0, "x": 0, "yanchor": "bottom"},
        title=f"Finds {right} of the 12 inputs that matter, of 2,000, in {found.nfev:,} noisy runs"
        f" ({false} false alarm{'s' if false != 1 else ''})",
    )  # fmt: skip
    return figure


if __name__ == "__main__":
    main()
