"""A population that goes by ranks, where noise hides every slope."""

from __future__ import annotations

import numpy as np

from scgd.problem import Problem
from scgd.strategies.asks import Asking, Report
from scgd.strategies.budget import Budget
from scgd.strategies.cma_es import NARROWEST, Evolution, default_size
from scgd.strategies.incumbent import reevaluate
from scgd.strategies.regression import Evaluations
from scgd.strategies.trust_region_radius import Surroundings
from scgd.typing import Floats

FULL = 100
"""Coordinates up to which a covariance is learned: beyond, its p^2 entries cost too many values."""


def least_budget(n_coords: int) -> int:
    """Return the evaluations of eight generations; fewer teach a population nothing."""
    return 8 * default_size(n_coords)


def noisy_population(
    problem: Problem, x: Floats, found: Surroundings, rng: np.random.Generator, budget: Budget,
    data: Evaluations, sigma: float = 0.5,
) -> Asking:  # fmt: skip
    """Let CMA-ES go down by ranks, and compare its end with x; return the better one.

    A mean of differences learns little on functions that change in jumps, such as returns of
    episodes; the better half of a generation leads on. What counts is the mean of the population,
    never its luckiest point. Beyond a bound it sees f at the bound and a penalty (Hansen 2009).

    Parameters
    ----------
    problem, x, found
        What is known, where it starts, and what is known of f there.
    rng, budget
        As for every strategy.
    data
        Takes all points and values.
    sigma
        How wide it is at first, in units of x: half of the typical size of a coordinate.

    Returns
    -------
    won
        A :class:`scgd.strategies.incumbent.Candidate`.
    """
    unit, over = problem.unit, False
    state = Evolution(x / unit, sigma, rng, diagonal=x.size > FULL)
    n_compared = 2 * int(np.clip(budget.total // 100, 4, 10))
    yield Report(solver="cma", message="No slope shows at any distance: CMA-ES.")
    while budget.left >= state.size + n_compared and not over:
        normal, steps = state.sample()
        points = state.mean + state.sigma * steps
        asked = problem.clipped(points * unit)
        values = (yield asked[:, None])[:, 0]
        data.add(asked, values)
        ranked = np.where(np.isnan(values), np.inf, values)
        state.learn(normal, steps, ranked + state.penalties(points - asked / unit, ranked))
        state.mean = problem.clipped(state.mean * unit) / unit
        over = state.over(ranked, NARROWEST) or not np.all(np.isfinite(state.covariance))
    end = problem.clipped(state.mean * unit)
    won = yield from reevaluate([end], n_compared, x, found.values, found.deviation)
    yield Report(x=won.x, values=won.values, solver="spsa")
    return won
