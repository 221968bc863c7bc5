"""``method="auto"``: find out what kind of function it is, then run what fits it.

================================  =================================================================
f is                              runs
================================  =================================================================
deterministic                     a portfolio of BFGS, CMA-ES and line searches
noisy, with ``sample=``           SCGD on common random numbers, from 16 evaluations per coordinate
noisy otherwise                   SPSA with quadratic models, populations, screening, joint steps
noisy, with ``jac=``              MUSKETEER on exact partial derivatives
over whole numbers or choices     a Gaussian process while evaluations are few, then mutations
================================  =================================================================
"""

from __future__ import annotations

import numpy as np

from scgd.method import NAMED
from scgd.problem import Problem
from scgd.strategies.asks import Asking, Outcome, Report
from scgd.strategies.budget import Budget
from scgd.strategies.common_random_numbers import common_random_numbers, pays
from scgd.strategies.fixed_method import run_method
from scgd.strategies.gaussian_process import MOST_COORDINATES, MOST_POINTS, gaussian_process, models
from scgd.strategies.gradient_check import check_gradient
from scgd.strategies.length_scale import length_scale
from scgd.strategies.mutation import dynamically_dimensioned_search
from scgd.strategies.noise_test import Kind, Noise, classify_noise
from scgd.strategies.noisy import noisy
from scgd.strategies.portfolio import TESTABLE, portfolio
from scgd.strategies.verification import verified, voted

__all__ = ["auto"]

SMALL = 400
"""Evaluations below which one place must tell whether there is noise: three cost nine."""
BOXED, BRIEF = 20, 200
"""Coordinates and evaluations up to which noise within bounds is left to it: with six inputs it
ended at 0.4 of the gap of rounds, with twenty and 280 evaluations level."""
TINY = 100
"""Evaluations below which a run begins with x0, so that it has at least that; above, tests of noise
and comparisons evaluate it."""
UNNOTICED = 50
"""Evaluations after which a value is asked for again: noise of every value was seen before."""
MISLED = 3
"""How often a portfolio may begin again after equal outliers had misled it."""


def auto(problem: Problem, budget: Budget, rng: np.random.Generator) -> Asking:
    """Classify the noise, then hand over."""
    space = problem.space
    if space is not None and (not space.continuous or budget.total <= MOST_POINTS):
        few = problem.n_coords <= MOST_COORDINATES
        search = gaussian_process if few else dynamically_dimensioned_search
        return (yield from search(problem, budget, rng))
    if problem.noise is not None:
        kind: Kind = "independent" if problem.noise > 0 else "deterministic"
        return (yield from follow(Noise(kind), problem, budget, rng, float("nan")))
    f = float("nan")
    if not problem.sampled or budget.total < TINY:
        yield Report(solver="x0", deterministic=not problem.sampled)
        f = yield problem.x0
    if budget.total < TESTABLE and not problem.sampled:
        return (yield from follow(Noise("deterministic"), problem, budget, rng, f))
    yield Report(solver="noise test")
    noise = yield from classify_noise(problem, problem.x0, rng, 1 if budget.total < SMALL else 3)
    return (yield from follow(noise, problem, budget, rng, f))


def follow(
    noise: Noise, problem: Problem, budget: Budget, rng: np.random.Generator, f: float
) -> Asking:
    """Run what fits this kind of noise."""
    kind = noise.kind
    yield Report(deterministic=kind == "deterministic")
    if kind == "deterministic":
        if problem.has_gradient:
            yield from check_gradient(problem, problem.x0, budget)
        return (yield from deterministic(problem, budget, rng, f, tested=noise.n_compared > 0))
    if problem.has_gradient:
        return (yield from run_method(NAMED["musketeer"].first_order())(problem, budget, rng))
    if kind == "common random numbers" and pays(problem.n_coords, budget):
        yield Report(solver="length scale")
        length = yield from length_scale(problem, problem.x0, rng)
        outcome = yield from common_random_numbers(problem, budget, rng, length)
        if outcome is not None:
            return outcome
    few = problem.n_coords <= BOXED and budget.total <= BRIEF
    if few and models(problem.lower, problem.upper, budget.total):
        outcome = yield from gaussian_process(problem, budget, rng, noisy=True)
        if outcome is not None:
            return outcome
    yield Report(solver="noise level")
    return (yield from noisy(problem, budget, rng, rare=mostly_exact))


def deterministic(
    problem: Problem, budget: Budget, rng: np.random.Generator, f: float, *, tested: bool
) -> Asking:
    """Run the portfolio; where a value does not come again, f is noisy after all.

    Where all values of the noise test failed, it tested nothing: a value is asked for again soon.
    """
    start = None if np.isnan(f) else f
    inner = portfolio(problem, budget, rng, f=start)
    if problem.noise is not None:  # the user's word
        return (yield from inner)
    outcome = yield from verified(inner, budget, UNNOTICED if tested else TESTABLE)
    if outcome is not None:
        return outcome
    yield Report(deterministic=False, x=problem.x0, values=())
    message = "Values that seemed deterministic did not repeat. "
    return (yield from noisy(problem, budget, rng, message=message, rare=mostly_exact))


def mostly_exact(problem: Problem, budget: Budget, rng: np.random.Generator) -> Asking:
    """Run the portfolio on values that most repeats agree on; None where they do not."""
    outliers: list[float] = []
    yield Report(message="Most repeated values agree: outliers are outvoted.")
    for _ in range(MISLED + 1):
        done = yield from voted(portfolio, problem, budget, rng, outliers)
        if not done.agrees:
            break
        if done.misled != done.misled:
            return done.found or Outcome()
        outliers.append(done.misled)
    yield Report(deterministic=False)
    return None
