"""Calibrate a noisy simulator: weekly contact rates of an epidemic from observed case counts.

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
    return np.log1p(cases)


observed = epidemic(np.log(TRUE), SEEDS)


def misfit(x, rows):
    return float(np.mean((epidemic(x, int(rows[0])) - observed) ** 2))


def main():
    result = scgd.minimize(misfit, np.zeros(WEEKS), sample=SEEDS, max_evals=12_000, seed=1)
    print(result.message)
    print(f"misfit {result.fun:.4f} (+- {result.fun_error:.4f}) after {result.nfev} simulations")
    error = np.mean(np.abs(np.exp(result.x[:30]) - TRUE[:30]))
    print(f"mean error of the contact rates of the first 30 weeks: {error:.3f}")
    figure = make_subplots(1, 2, subplot_titles=("contact rate", "log weekly cases"))
    figure.add_scatter(y=TRUE, name="true rate", row=1, col=1)
    figure.add_scatter(y=np.exp(result.x), name="found", row=1, col=1)
    figure.add_scatter(y=observed, name="observed", row=1, col=2)
    figure.add_scatter(y=epidemic(result.x, 1), name="simulated", row=1, col=2)
    figure.update_layout(template="plotly_white", height=400)
    figure.write_html("simulator_calibration.html")
    print("picture: simulator_calibration.html")


if __name__ == "__main__":
    main()
