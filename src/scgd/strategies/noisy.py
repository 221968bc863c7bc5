"""Noise without common random numbers: nobody can evaluate two points under the same noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scgd.problem import Problem
from scgd.strategies.asks import Asking, Outcome, Report, Strategy, Wait
from scgd.strategies.budget import Budget, Stall
from scgd.strategies.joint_directions import joint_directions
from scgd.strategies.low_noise import low_noise
from scgd.strategies.noisy_population import least_budget, noisy_population
from scgd.strategies.regression import Evaluations
from scgd.strategies.screening import FIRST, screen
from scgd.strategies.spsa import LARGEST, SPSA, spsa_rounds
from scgd.strategies.subspace import on_coordinates
from scgd.strategies.trust_region_radius import ROUGH, Surroundings, trust_region_radius
from scgd.typing import Floats, Ints

LARGE = 4000
"""Evaluations from which long stages of joint directions beat rounds: above, SPSA alone was 13
times worse on the benchmark."""
WIDE = 100
"""Coordinates above which they come at once, with such a budget: rounds cannot fit a quadratic."""
OPENING, PART = 1500, 0.15
"""Evaluations of the rounds before them: so many at least, and a part."""
CLEAR, PER_COORDINATE = 100.0, 25
"""The odd part of f, in standard deviations of the noise, from which it may be neglected, and the
evaluations per coordinate that must be left then."""
FEWEST_SCREENED = 1500
"""Evaluations from which screening leaves enough for what it finds."""
SCARCE = 8
"""Evaluations per coordinate from which joint directions move all coordinates, though few explain
what was seen: they find a radius for each. Rounds always keep to the few."""
AGREES = 0.6
"""The part of the values at x0 that must be equal for most to be free of noise."""
WEAK = (
    "nothing near x0 shows above the noise; "
    "give scale= (the typical size of a coordinate) or bounds="
)


def noisy(
    problem: Problem, budget: Budget, rng: np.random.Generator, x: Floats | None = None,
    message: str = "", rare: Strategy | None = None, *, whole: bool = True,
) -> Asking:  # fmt: skip
    """Minimize under noise: find how far to look, go down in rounds, as long as there is budget.

    Parameters
    ----------
    problem, budget, rng
        As for every strategy.
    x
        Where to start; x0 by default.
    message
        A sentence for people about how it came to this.
    rare
        What runs where most repeats agree and few are outliers; None from it: this goes on.
    whole
        Whether these are all coordinates: SCGD's joint directions take no others.
    """
    x = problem.x0 if x is None else x
    p, large, name = problem.n_coords, whole and budget.left > LARGE, f"{message}Independent noise"
    many = p > (WIDE if large else LARGEST)
    data = Evaluations(p, 0 if many else min(1000, budget.total))
    found = yield from trust_region_radius(problem, x, rng, budget.left, data)
    stall = Stall(budget, found.base)
    yield Report(x=x, values=found.values, solver="spsa")
    if found.agreed >= AGREES and rare is not None:
        outcome = yield from rare(problem, budget, rng)
        if outcome is not None:
            return outcome
    if found.deviation > 0 and not found.seen and not problem.scale_known:
        yield Report(message=f"{name}: {WEAK}.")
    else:
        yield Report(message=f"{name}, {found.deviation:.2g}; radius {found.radius:.2g} units.")
    if many and budget.left >= FEWEST_SCREENED and found.seen and not found.rough:
        scarce = not large or budget.left < SCARCE * p
        few = yield from relevant_coordinates(problem, x, rng, budget, found, scarce)
        if len(few):
            message += f"{len(few)} of {p} inputs show an effect; others stay. "
            part = sub_problem(problem, x, few)
            inner = noisy(part, budget, rng, message=message, whole=False)
            return (yield from on_coordinates(inner, x, few))
    if large and many:
        yield Report(solver="joint directions")
        here = yield from joint_directions(problem, budget, rng, x, found.radius, stall, leave=True)
        if not here.gained and not stall.over:  # where no slope shows, ranks may lead
            half, x = budget.part(budget.left // 2), here.x
            if half.left >= least_budget(p) + 8:
                x = (yield from noisy_population(problem, x, found, rng, half, data)).x
                yield Report(solver="joint directions")
            yield from joint_directions(problem, budget, rng, x, found.radius, stall)
        return Outcome(converged=True)
    x, found = yield from descend(problem, budget, rng, x, found, data)
    if found.flat and not large and budget.left >= least_budget(p) + 8:
        won = yield from noisy_population(problem, x, found, rng, budget, data)
        x, found = won.x, replace(found, radius=ROUGH, rough=True, values=np.array(won.values))
    spsa = SPSA.around(problem, x, rng, found)
    if not large:
        return (yield from in_rounds(spsa, budget, data, stall))
    opening = budget.part(int(max(OPENING, PART * budget.left)))
    yield from spsa_rounds(spsa, opening, data, stall)
    if not stall.over:
        yield Report(solver="joint directions")
        yield from joint_directions(problem, budget, rng, spsa.best, found.radius, stall)
    return Outcome(converged=True)


def descend(
    problem: Problem, budget: Budget, rng: np.random.Generator, x: Floats, found: Surroundings,
    data: Evaluations,
) -> Asking:  # fmt: skip
    """Go down while f is far above the noise; return where that ended and what is known there.

    Noise that falls with f is looked at again there, and it goes on. Where it does not fall,
    pairs stay as wide as before: near a minimum the bend tells where it lies.
    """
    while found.clearest > CLEAR and budget.left >= PER_COORDINATE * problem.n_coords:
        before = found
        x = yield from low_noise(problem, x, found.base, found.deviation, rng, budget, data)
        noise = before.deviation
        found = yield from trust_region_radius(problem, x, rng, budget.left, data, noise)
        yield Report(x=x, values=found.values, solver="spsa")
        if not found.deviation < 0.5 * noise:
            found = replace(found, radius=max(found.radius, before.radius))
            break
    return x, found


def in_rounds(spsa: SPSA, budget: Budget, data: Evaluations, stall: Stall) -> Asking:
    """Take SPSA steps in rounds as long as there is budget."""
    while True:
        left = budget.left
        yield from spsa_rounds(spsa, budget, data, stall)
        if stall.over:
            return Outcome(converged=True)
        if budget.left < budget.total // 50 + 2 or budget.left == left:
            yield Wait()
        spsa.go(spsa.best)


def relevant_coordinates(
    problem: Problem, x: Floats, rng: np.random.Generator, budget: Budget, found: Surroundings,
    scarce: bool,
) -> Asking:  # fmt: skip
    """Return the few coordinates that matter where the budget does not pay for the others."""
    n_pairs = max(budget.left // 12, 2 * FIRST) if scarce else budget.left // 40
    radius = min(4 * found.radius, found.farthest)  # what is even in f cancels: it may be wider
    seen = yield from screen(problem, x, rng, radius, n_pairs, found.deviation)
    if seen.relevance is not None:
        yield Report(relevance=seen.relevance)
    few = scarce and seen.sparse and len(seen.coords) <= WIDE
    return seen.coords if few else np.empty(0, np.int64)


def sub_problem(problem: Problem, x: Floats, coords: Ints) -> Problem:
    """Return the problem in which only some coordinates move."""
    bounds = [side[coords] if side.size else side for side in (problem.lower, problem.upper)]
    scale = None if problem.scale is None else problem.scale[coords]
    return Problem(
        x[coords].copy(), bounds[0], bounds[1], scale, problem.scale_known, problem.noise
    )  # fmt: skip
