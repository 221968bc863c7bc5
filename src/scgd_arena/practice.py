"""Problems as users bring them: far starts, laboratories, simulators, portfolios, many inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from scgd.typing import Floats
from scgd_arena.problems import Task, observed

__all__ = ["PRACTICE", "epidemic", "far_sphere", "laboratory", "portfolio", "relevant_inputs"]


def far_sphere(noise: float = 0.1) -> Task:
    """Return a sphere around 1 seen from 100: little noise under a large signal."""

    def value(x: Floats) -> float:
        return float(np.sum((np.asarray(x) - 1.0) ** 2))

    x0 = np.full(20, 100.0)
    return Task("far-sphere", x0, None, observed(value, noise), value, domain=(0.0, 100.0))


def laboratory(noise: float = 0.02) -> Task:
    """Return six factors between 0 and 1, measured with an error; the best setting is .3."""
    weights = np.array([1.0, 2.0, 0.5, 1.0, 0.2, 3.0])

    def value(x: Floats) -> float:
        return float(weights @ (np.asarray(x) - 0.3) ** 2)

    bounds = [(0.0, 1.0)] * 6
    return Task(
        "laboratory", np.full(6, 0.5), None, observed(value, noise), value, bounds,
        domain=(0.0, 1.0),
    )  # fmt: skip


@cache
def portfolio(n_assets: int = 60, n_days: int = 2000) -> Task:
    """Return CVaR less twice the mean return of a portfolio, its shares a softmax of x.

    The gap is measured from the value SLSQP reaches on the simplex, -.00359, rounded down.
    """
    rng = np.random.default_rng(0)
    factors, loads = rng.standard_normal((n_days, 5)), 0.3 * rng.standard_normal((5, n_assets))
    mean = rng.normal(0.03, 0.05, n_assets)
    returns = 0.2 * mean + 0.1 * (factors @ loads)
    returns += 0.1 * rng.standard_normal((n_days, n_assets))
    lowest = -0.0036

    def value(x: Floats) -> float:
        shares = np.exp(x - np.max(x))
        gains = returns @ (shares / shares.sum())
        worst = np.partition(gains, n_days // 20)[: n_days // 20]
        return float(-worst.mean() - 2 * gains.mean())

    return Task(
        "portfolio", np.zeros(n_assets), None, lambda seed: value,
        lambda x: value(np.asarray(x)) - lowest, domain=(-5.0, 5.0), repeats=True, lowest=lowest,
    )  # fmt: skip


@cache
def epidemic(n_cities: int = 10) -> Task:
    """Return the misfit of ten coupled epidemics to noisy counts: 30 parameters within bounds.

    A corner gives NaN, as simulators do. The gap is the misfit itself (.0022 at the truth).
    """
    rng = np.random.default_rng(7)
    mixing = np.exp(-rng.exponential(2, size=(n_cities, n_cities)))
    np.fill_diagonal(mixing, 1)
    mixing /= mixing.sum(1, keepdims=True)
    parts = (rng.uniform(0.2, 0.6, n_cities), rng.uniform(0.05, 0.2, n_cities))
    truth = np.concatenate([*parts, rng.uniform(-4, -2, n_cities)])
    seen = simulate(truth, mixing) * np.exp(0.05 * rng.standard_normal((n_cities, 21)))

    def value(theta: Floats) -> float:
        theta = np.asarray(theta)
        if theta[0] > 0.85:
            return float("nan")
        counts = np.maximum(simulate(theta, mixing), 1e-12)
        return float(np.mean((np.log(counts) - np.log(seen)) ** 2))

    x0 = np.repeat([0.5, 0.15, -3.5], n_cities)
    low, high = np.repeat([0.05, 0.01, -6.0], n_cities), np.repeat([1.0, 0.5, -1.0], n_cities)
    bounds = list(zip(low.tolist(), high.tolist(), strict=True))
    return Task(
        "epidemic", x0, None, lambda seed: value, value, bounds, domain=(low, high), repeats=True
    )  # fmt: skip


def simulate(theta: Floats, mixing: Floats) -> Floats:
    """Return the infected share of each city at 21 times."""
    from scipy.integrate import solve_ivp

    n = len(mixing)
    contacts, recovery, first = theta[:n], theta[n : 2 * n], 10 ** theta[2 * n :]

    def slope(t: float, y: Floats) -> Floats:
        new = contacts * y[:n] * (mixing @ y[n:])
        return np.concatenate([-new, new - recovery * y[n:]])

    begin, times = np.concatenate([1 - first, first]), np.linspace(0, 60, 21)
    done = solve_ivp(slope, (0, 60), begin, t_eval=times, rtol=1e-6, atol=1e-9)
    return done.y[n:] if done.success else np.full((n, 21), np.nan)


def relevant_inputs(p: int = 5000, noise: float = 0.0, instance: int = 0) -> Task:
    """Return a function of 15 of p inputs, with interactions; the gap is from 0, not from f*."""
    rng = np.random.default_rng(instance)
    which = np.sort(rng.choice(p, 15, replace=False))
    goal, weight = rng.uniform(-1, 1, 15), rng.uniform(0.5, 2, 15)

    def value(x: Floats) -> float:
        z = np.asarray(x)[which] - goal
        mixed = z[0] * z[1] + np.sin(3 * z[2]) * z[3] + np.exp(0.5 * z[4] * z[5]) + abs(z[6] * z[7])
        return float(weight @ z**2 + mixed)

    name = f"inputs{p}" + ("noisy" if noise else "")
    return Task(
        name, np.zeros(p), None, observed(value, noise), value, domain=(-1.0, 1.0),
        repeats=not noise,
    )  # fmt: skip


PRACTICE: dict[str, Callable[[int], Task]] = {
    "far-sphere": lambda instance: far_sphere(),
    "laboratory": lambda instance: laboratory(),
    "portfolio": lambda instance: portfolio(),
    "epidemic": lambda instance: epidemic(),
    "inputs5000": lambda instance: relevant_inputs(instance=instance),
    "inputs5000noisy": lambda instance: relevant_inputs(noise=0.3, instance=instance),
}
