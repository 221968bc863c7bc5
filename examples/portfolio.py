"""
A portfolio
===========

60 assets: the expected loss of the worst days against the mean return, with weights that are not
negative and sum to one at every evaluation.

Run it: ``python examples/portfolio.py`` (writes portfolio.html).
"""

import numpy as np
from plotly.subplots import make_subplots
from scipy.optimize import LinearConstraint

import scgd

rng, N, DAYS = np.random.default_rng(0), 60, 2000
factors, loads = rng.standard_normal((DAYS, 5)), rng.standard_normal((5, N)) * 0.3
mean = rng.normal(0.03, 0.05, N)
returns = mean * 0.2 + 0.1 * (factors @ loads) + 0.1 * rng.standard_normal((DAYS, N))


def risk(weights):
    """Return the mean loss of the worst twentieth of the days, less twice the mean return."""
    losses = np.sort(-returns @ weights)
    return float(losses[-DAYS // 20 :].mean() - 2 * np.mean(returns @ weights))


def main():
    equal = np.full(N, 1 / N)
    result = scgd.minimize(
        risk, equal, bounds=[(0, 1)] * N, constraints=LinearConstraint(np.ones(N), 1, 1),
        max_evals=6000, seed=0,
    )  # fmt: skip
    print(result.message)
    print(
        f"risk {risk(equal):.5f} with equal weights, {result.fun:.5f} after; sum {result.x.sum()}"
    )
    picture(result, equal).write_html("portfolio.html", config={"displayModeBar": False})
    print("picture: portfolio.html")


def picture(result, equal):
    """Draw the descent and the weights, largest first."""
    figure = make_subplots(1, 2, subplot_titles=("risk", "weights, largest first"))
    color = "#2563eb"
    figure.add_scatter(
        x=result.history["nfev"], y=result.history["fun"], line_color=color, row=1, col=1
    )
    figure.add_bar(y=np.sort(result.x)[::-1], marker_color=color, row=1, col=2)
    figure.add_hline(y=float(equal[0]), line_dash="dot", line_color="#ea580c", row=1, col=2)
    figure.update_xaxes(title_text="evaluations", row=1, col=1)
    figure.update_xaxes(title_text="asset (dotted: equal weights)", row=1, col=2)
    figure.update_layout(template="plotly_white", height=440, showlegend=False, font_size=14)
    return figure


if __name__ == "__main__":
    main()
