"""
Policy search
=============

Teach a small neural network to balance a pole, from the cost of whole episodes alone.

481 weights, no gradients. All policies of a step start from one common state. Costs of single
episodes are chaotic in the weights, so what ``auto`` measures near the start misleads it. Use
``spsa`` with the typical size of a weight, ``scale=1``. Writes policy_search.html.
"""

import numpy as np
from plotly.subplots import make_subplots

import scgd
from scgd_arena.outside import rollout

GREY, BLUE = "#94a3b8", "#2563eb"


def main():
    task = rollout()
    cost = task.make(0)
    result = scgd.minimize(
        cost, task.x0, method="spsa", scale=1.0, sample=task.sample, max_evals=20_000, seed=1
    )
    print(result.message)
    before, after = (np.sort([cost(x, [i]) for i in range(200)]) for x in (task.x0, result.x))
    print(f"mean cost over 200 starts: {before.mean():.3f} before, {after.mean():.4f} after")
    picture(result, before, after).write_html(
        "policy_search.html", config={"displayModeBar": False}
    )
    print("picture: policy_search.html")


def picture(result, before, after):
    """Draw the descent and the costs of 200 starts."""
    figure = make_subplots(
        1, 2, subplot_titles=("cost of the episodes seen", "cost of 200 starts, sorted")
    )
    nfev, fun = result.history["nfev"], result.history["fun"]
    figure.add_scatter(
        x=nfev, y=fun, mode="markers", marker={"size": 3, "color": BLUE}, showlegend=False
    )
    for costs, name, color in ((before, "before", GREY), (after, "after", BLUE)):
        line = {"color": color, "width": 3}
        figure.add_scatter(y=costs, name=name, line=line, row=1, col=2)
    figure.update_yaxes(type="log", dtick=1, exponentformat="power")
    figure.update_xaxes(title_text="episodes", row=1, col=1)
    figure.update_xaxes(title_text="start", row=1, col=2)
    figure.update_layout(
        template="plotly_white", height=420, font_size=14, legend={"orientation": "h", "y": -0.2},
        title=f"A pole balanced by 481 weights after {result.nfev:,} episodes",
    )  # fmt: skip
    return figure


if __name__ == "__main__":
    main()
