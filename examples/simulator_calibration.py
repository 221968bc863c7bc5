"""
Calibrating a simulator
=======================

Calibrate a noisy simulator: weekly contact rates of an epidemic from observed case counts.

After the wave there are too few cases to tell the rates, and they stay near their start.

A run of the simulator is random, but its seed can be held fixed, so ``sample=`` is given: the same
seed serves all evaluations of a step. Writes simulator_calibration.html.
"""

import numpy as np
from plotly.subplots import make_subplots

import scgd

WEEKS, PEOPLE, SEEDS = 40, 1_000_000, 10_000
TRUE = 0.9 + 0.5 * np.sin(np.arange(WEEKS) / 5.0)


def epidemic(log_rates, seed):
    """Return weekly new cases of a stochastic SIR model."""
    rng = np.random.default_rng([seed, 3])
    susceptible, infected, cases = PEOPLE - 1000, 1000, []
    for rate in np.exp(np.clip(log_rates, -4, 2)):
        risk = 1 - np.exp(-rate * infected / PEOPLE)
        new = rng.binomial(susceptible, risk)
        susceptible, infected = susceptible - new, infected + new - rng.binomial(infected, 0.5)
        cases.append(new)
    return np.array(cases, float)


observed = epidemic(np.log(TRUE), SEEDS)


def misfit(x, rows):
    """Compare square roots, in which counts of any size are equally uncertain."""
    cases = epidemic(x, int(rows[0]))
    return float(np.mean((np.sqrt(cases) - np.sqrt(observed)) ** 2))


def main():
    result = scgd.minimize(misfit, np.zeros(WEEKS), sample=SEEDS, max_evals=40_000, seed=1)
    print(result.message)
    print(f"misfit {result.fun:.4f} (+- {result.fun_error:.4f}) after {result.nfev} simulations")
    error = np.mean(np.abs(np.exp(result.x[:20]) - TRUE[:20]))
    print(f"mean error of the contact rates of the first 20 weeks: {error:.3f}")
    picture(result).write_html("simulator_calibration.html", config={"displayModeBar": False})
    print("picture: simulator_calibration.html")


def picture(result):
    """Draw the rates and what they predict: twenty simulations with seeds never used before."""
    figure = make_subplots(
        1, 2, subplot_titles=("contact rate", "weekly cases"), horizontal_spacing=0.1
    )
    weeks = np.arange(1, WEEKS + 1)
    for seed in range(20):
        cases = np.maximum(epidemic(result.x, SEEDS + 1 + seed), 0.5)
        line = {"color": "rgba(37, 99, 235, 0.25)", "width": 1}
        figure.add_scatter(
            x=weeks, y=cases, line=line, row=1, col=2, name="simulated, 20 fresh seeds",
            showlegend=seed == 0,
        )  # fmt: skip
    grey, blue = {"color": "#94a3b8", "width": 3}, {"color": "#2563eb", "width": 2.5}
    figure.add_scatter(x=weeks, y=TRUE, name="true", line=grey, row=1, col=1)
    figure.add_scatter(x=weeks, y=np.exp(result.x), name="found", line=blue, row=1, col=1)
    marker = {"color": "#ea580c", "size": 6}
    figure.add_scatter(
        x=weeks,
        y=np.maximum(observed, 0.5),
        name="observed",
        mode="markers",
        marker=marker,
        row=1,
        col=2,
    )
    figure.update_xaxes(title_text="week")
    figure.update_yaxes(type="log", dtick=1, exponentformat="power", row=1, col=2)
    figure.update_layout(
        template="plotly_white", height=420, font_size=14, legend={"orientation": "h", "y": -0.2},
        title=f"40 contact rates from 40 case counts, {result.nfev:,} simulations",
    )  # fmt: skip
    return figure


if __name__ == "__main__":
    main()
