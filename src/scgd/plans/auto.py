"""``method="auto"``: measure the function first, then choose the parts that fit it.

What is returned is never knowingly worse than x0: points are compared on common samples along the
way and at the end.
"""

from __future__ import annotations

import numpy as np

from scgd.plans.base import Ground, Telling
from scgd.plans.descent import descend, follow, measure, raced, scale_rounds
from scgd.plans.guard import GAIN, Patience, kept, settle_with_start
from scgd.plans.members import block_member, short_member
from scgd.plans.mixed import over_space
from scgd.plans.noisy import noisy
from scgd.plans.opening import FEWEST, TINY, opening
from scgd.plans.steps import steps
from scgd.recipes import RECIPES, Recipe
from scgd.searches import Classify, Judge, Length, ScaleSearch

__all__ = ["auto"]

N_GUARDS = 4
"""Comparisons along the way, before the last one."""
RACE, LARGEST_RACE = 6, 2000
"""Evaluations per coordinate from which searches race, and coordinates up to which they do."""
SPARSE = 400
"""Evaluations from which it is worth asking, beyond those, whether few coordinates matter."""
MODEST = 400
"""Evaluations below which one place must tell whether there is noise."""
SHORT = 6
"""Evaluations per coordinate below which a sweep over coordinates costs too much."""
SCARCE = 1.75
"""The same where f is deterministic and one difference tells a slope, for more coordinates than can
race; up to those a sweep that is cut short still beats random signs unless few of them matter."""


def auto(ground: Ground) -> Telling:
    """Tell noise apart, measure lengths, and let the member that fits run."""
    problem, sampled = ground.problem, ground.samples.controlled
    if problem.space is not None and (telling := over_space(ground)) is not None:
        yield from telling
        return
    wide = problem.n_coords > LARGEST_RACE
    if ground.first_order and (sampled or wide):
        yield from steps(RECIPES["musketeer"].first_order())(ground)
        return
    value = float("nan") if problem.noise else (yield from opening(ground))
    slopes = ground.first_order and bool(np.isfinite(value))
    if slopes and ground.budget < FEWEST:  # nothing is left to ask about noise
        yield from follow(ground, value)
    if problem.noise is None:
        n_reaches = 1 if ground.budget < MODEST else 3
        noise = yield Classify(problem, ground.point, ground.rng(), n_reaches, sampled=sampled)
        kind = noise.kind
    else:
        kind = "uncontrollable" if problem.noise > 0 else "deterministic"
    exact = ground.repeats = kind == "deterministic"
    if ground.first_order and not exact:
        yield from steps(RECIPES["musketeer"].first_order())(ground)
        return
    if kind == "uncontrollable":
        yield from noisy(ground)
        return
    if slopes and ground.budget < TINY and (yield from follow(ground, value)):
        return
    few = problem.n_coords <= LARGEST_RACE and ground.room >= RACE * problem.n_coords
    many = problem.n_coords >= SPARSE // 4 and ground.room >= SPARSE
    asked = exact and (few or many or ground.first_order)
    if asked and (yield from raced(ground)):
        return
    rounds = scale_rounds(ground.budget, few=exact)
    length = yield ScaleSearch(problem, ground.point, ground.rng(), rounds, repeat=False)
    error = yield from measure(ground, length)
    swept = (asked and not wide) or ground.budget >= SCARCE * problem.n_coords
    if exact and swept:
        yield from descend(ground, length, error)
    else:
        yield from blocks(ground, length, error)


def blocks(ground: Ground, length: Length, error: float) -> Telling:
    """Let blocks with a shared base run from guard to guard, as often as there is budget."""
    what = (
        "Deterministic, too wide for a sweep"
        if ground.repeats
        else "Noise that the sample controls"
    )
    ground.sentence = f"{what}; length scale {ground.size(length.length)}."
    ground.hold("laws", np.zeros((2, ground.problem.n_coords)))
    ground.hold("n_laws", np.zeros(1))
    patience = Patience(ground)
    while not ground.converged:
        budget = ground.budget
        start, end = ground.spent, budget - 2 * final_samples(budget)
        shrink, n = 1.0, patience.parts(end - start, N_GUARDS if budget >= 2500 else 0)
        recipe = member(ground, length, error, budget, shrink)
        leg = ground.steps(recipe, length.length * ground.problem.unit, max(1, end - start))
        ground.keep(leg)
        for part in np.arange(1, n + 2) / (n + 1):
            yield leg.begin_leg(int(start + part * (end - start)) - ground.spent)
            if part == 1:
                break
            verdict = yield Judge(ground.point, kept(ground), guard_samples(budget))
            if verdict.worse(3):
                assert ground.kept is not None
                leg.go_back(ground.kept)
                shrink /= 3
                leg.replace_schedules(member(ground, length, error, budget, shrink))
            else:
                ground.keep(leg)
            if leg.weights is not None:
                ground.note_law(leg.weights)
            if patience.note(verdict.better(GAIN)):
                break
        yield from settle_with_start(ground, final_samples(budget))


def member(ground: Ground, length: Length, error: float, budget: int, shrink: float) -> Recipe:
    """Return the recipe for noise that the sample controls."""
    n, bend = ground.problem.n_coords, length.bend
    smallest = 2 * np.sqrt(error * n / bend) if bend > 0 else 0.0
    smallest = max(smallest, length.rough) / length.length
    if budget < SHORT * n:
        return short_member(smallest, shrink)
    return block_member(n, budget, smallest, shrink)


def guard_samples(budget: int) -> int:
    """Return the samples of a comparison: at least 16 where that is not much of the budget."""
    return int(np.clip(budget // 25, 4, max(16, budget // 2000)))


def final_samples(budget: int) -> int:
    """Return the samples of the comparison with x0, which must not be lost by chance."""
    return max(guard_samples(budget), budget // 150)
