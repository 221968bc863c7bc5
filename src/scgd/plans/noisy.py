"""The story for noise that nobody controls.

A ladder finds how far to look. While f is far above the noise, BFGS goes down to it. A walk along
random signs goes down in rounds; after each one a quadratic fitted to what was seen proposes a
point, which is compared with the walk's. The end is compared with x0. Large budgets go on with
joint directions at radii of their own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scgd.plans.base import Ground, Telling
from scgd.plans.guard import Patience, settle_with_start
from scgd.plans.joint import joint_directions
from scgd.searches import (
    Agreed,
    Archive,
    Check,
    Crowd,
    Footing,
    Judge,
    Ladder,
    Race,
    Raced,
    Reach,
    Screen,
    Slide,
    Walk,
)
from scgd.searches.arms.population import default_size
from scgd.searches.screen import FIRST
from scgd.searches.walk import LARGEST
from scgd.typing import Floats

__all__ = ["noisy"]

LARGE = 4000
"""Evaluations above which joint directions follow."""
WIDE = 100
"""Coordinates above which they come at once, with such a budget."""
OPENING, SHARE = 1500, 0.15
"""Evaluations of the rounds before them: so many at least, and a share."""
WEAK = (
    "nothing near x0 shows above the noise; "
    "give scale= (the typical size of a coordinate) or bounds="
)
FEWEST_SCREENED, PER_PAIR = 1500, 12
"""Evaluations from which many coordinates are screened, and of the run for each pair of that."""
EACH, LOOK = 8, 40
"""Evaluations per coordinate from which all may move, and then of the run for each pair."""
WIDER = 4.0
"""How much wider than the walk's pairs those of a screen are: what is even in f cancels."""
KEPT = 1000
"""Points that regressions look at."""
RARE, TWICE = 0.6, 1.8
"""The part of the values at x0 that must be equal for most to be free of noise, and what a value
then costs: repeats, but for those that are compared by ranks."""
MISLED, COMPARED = 3, 5
"""How often such a race may begin again, and the pairs that tell where."""
MOST_COMPARED, MOST_FINAL = 10, 40
"""Values at each of two points that are compared at most: a population's end and x0, the walk's.
Where noise is a multiple of f, 10 let an end pass that is ten times higher than x0."""
AROUND, GENERATIONS, PROOF = 0.5, 8, 4
"""How wide a population is at first where nothing shows, in units of x, how many generations the
budget must hold, and the least number of values at its end that are compared with x0."""
CLEAR, SLIDES, SLID = 100.0, 25, 0.8
"""The signal, in standard deviations of the noise, from which BFGS is tried, the evaluations per
coordinate that must be left for it, and the part of them that it may take."""
FELL = 0.5
"""The part of its deviation to which noise that falls with f has fallen, at most."""
FALL = 40
"""Evaluations per coordinate from which step lengths fall faster than linearly."""


def noisy(ground: Ground, before: str = "") -> Telling:
    """Find how far to look, go down in rounds, compare with x0; as long as there is budget.

    ``before`` is a sentence for people about how it came to this.
    """
    problem, budget, ground.looks = ground.problem, ground.room, True
    many = problem.n_coords > (WIDE if budget > LARGE else LARGEST)
    archive = archive_of(ground, 0 if many else problem.n_coords)
    footing = yield Ladder(problem, ground.point, ground.rng(), budget, archive)
    moving = ground.hold("moving", np.ones(problem.n_coords))
    few, patience = 0, Patience(ground, footing.base)
    if footing.agreed < RARE and not many:
        footing = yield from slid(ground, footing, before, archive)
    if footing.agreed >= RARE and (yield from raced(ground, before)):
        return
    if many and budget >= FEWEST_SCREENED and footing.seen and not footing.rough:
        few = yield from screened(ground, footing, moving)
        archive = archive_of(ground, few)
    if budget > LARGE and many and not few:
        yield from wide(ground, before, patience)
        return
    if footing.deviation > 0 and not footing.seen and not problem.told:
        ground.warn(WEAK)
    if footing.flat and not many and budget <= LARGE:
        footing = yield from gathered(ground, footing, before)
    noise, radius = f"{before}Noise that nobody controls", ground.size(footing.radius)
    ground.sentence = f"{noise}, {footing.deviation:.2g}; radius {radius}."
    if few:
        ground.sentence += f" {few} of {problem.n_coords} inputs show an effect; others stay."
    walk = Walk(problem, ground.point, ground.rng(), footing, archive, moving)
    ground.live["walk"] = walk
    p, alone = few or problem.n_coords, few or budget <= LARGE
    if not alone:
        opening = int(max(OPENING, SHARE * budget))
        end = ground.budget - budget + opening
        yield from rounds(ground, walk, p, opening, end, patience)
    while alone or ground.converged:
        n_compared = n_final(ground.budget)
        if not ground.converged:
            yield from rounds(ground, walk, p, budget, ground.budget - 2 * n_compared, patience)
        yield from settle_with_start(ground, n_compared, ranks=True)
        if ground.converged:
            return
        budget = ground.room
        alone = few or budget <= LARGE
    yield from joint_directions(ground, footing.radius, patience)


def slid(ground: Ground, footing: Footing, before: str, archive: Archive) -> Any:
    """Let BFGS go down while f is far above the noise; return what is known where it ended.

    Noise that falls with f is looked at again there, and BFGS goes on. Where it does not fall,
    pairs of the walk stay as wide as before: near a minimum the bend tells where it lies.
    """
    problem, smoothly = ground.problem, True
    while smoothly and footing.signal > CLEAR and ground.room >= SLIDES * problem.n_coords:
        noise = f"{before}Little noise that nobody controls, {footing.deviation:.2g}"
        ground.sentence = f"{noise}; radius {ground.size(footing.radius)}."
        room = int(SLID * ground.room)
        end = yield Slide(problem, ground.point, ground.stream(), room, footing)
        smoothly = end.smoothly
        if not smoothly:
            return footing
        found = yield Ladder(problem, ground.point, ground.rng(), ground.room, archive)
        fell = found.deviation < FELL * footing.deviation
        radius = found.radius if fell else max(found.radius, footing.radius)
        footing = replace(found, radius=radius)
    return footing


def raced(ground: Ground, before: str) -> Any:
    """Race on values that came twice; tell whether that was the end.

    Where two equal outliers had misled the race it begins again, and they are known. It begins at
    x0 unless what was reached before looks better.
    """
    problem, strays = ground.problem, list[float]()
    ground.sentence = f"{before}Few values are noisy: a race on values that came twice."
    while len(strays) <= MISLED:
        if not np.array_equal(ground.point.x, problem.x0):
            verdict = yield Judge(ground.point, problem.x0, COMPARED)
            if verdict.worse_by_rank:
                ground.point.put(problem.x0)
        room = int(ground.room / TWICE)
        race = Race(problem, ground.point, ground.stream(), room, ground.tol)
        found = yield Agreed(race, strays)
        if np.isnan(found.misled):
            ground.converged = found.rare and Raced(**found.found).held
            return ground.converged
        strays.append(found.misled)
    return False


def gathered(ground: Ground, footing: Footing, before: str) -> Any:
    """Let a population go by ranks where neither slope nor bend shows at any distance.

    Return what the walk stands on, which goes on where the population is over before the budget.
    """
    budget = ground.room - 2 * max(PROOF, n_final(ground.budget))
    if budget < GENERATIONS * default_size(ground.problem.n_coords):
        return footing
    noise, width = f"{before}Noise that nobody controls", ground.size(AROUND)
    ground.sentence = (
        f"{noise}, {footing.deviation:.2g}; no slope shows at any distance: "
        f"a population, {width} wide at first."
    )
    yield Crowd(ground.problem, ground.point, ground.stream(), budget, AROUND)
    yield from settle_with_start(ground, min(ground.room // 2, MOST_COMPARED), proof=True)
    return replace(footing, radius=AROUND)


def screened(ground: Ground, footing: Footing, moving: Floats) -> Any:
    """Look which coordinates matter, no farther than the ladder did.

    Where few do, and the budget does not pay for a look at each of the others, those stay where
    they are; return how many move then, 0 where all do.
    """
    radius, scarce = min(WIDER * footing.radius, footing.farthest), scarcely(ground)
    n_pairs = max(ground.room // PER_PAIR, 2 * FIRST) if scarce else ground.room // LOOK
    search = Screen(
        ground.problem, ground.point, ground.rng(), radius, n_pairs, footing.deviation
    )  # fmt: skip
    found = yield search
    if not scarce or not found.sparse or found.n_found > WIDE:
        return 0
    moving[...] = search.moving
    return found.n_found


def scarcely(ground: Ground) -> bool:
    """Tell whether the budget does not pay for a look at each coordinate."""
    return ground.room < EACH * ground.problem.n_coords


def wide(ground: Ground, before: str, patience: Patience) -> Telling:
    """Go to joint directions at once, at a radius that is looked for with more care."""
    signal = yield Reach(ground.problem, ground.point, ground.rng(), ground.room)
    if signal.found == "nothing" and not ground.problem.told:
        ground.warn(WEAK)
    radius = ground.size(signal.radius)
    ground.sentence = f"{before}Noise that nobody controls; radius {radius}."
    yield from joint_directions(ground, signal.radius, patience)


def archive_of(ground: Ground, n_coords: int) -> Archive:
    """Return a place for points that outlive their searches; none where no model is fitted."""
    made = Archive.empty(n_coords, min(KEPT, ground.budget) if n_coords else 0)
    for name, array in (("points", made.points), ("values", made.values), ("count", made.count)):
        ground.hold(name, array)
    return made


def rounds(
    ground: Ground, walk: Walk, p: int, n: int, end: int, patience: Patience
) -> Telling:  # fmt: skip
    """Walk and check in turn until ``end``.

    The rounds are planned for p coordinates that move and n evaluations.
    """
    start = ground.spent
    n_rounds = min(int(np.clip(n / (2 * p), 4, 10)), max(2, n // 15))
    n_rounds = patience.parts(end - start, n_rounds)
    n_values, falls = int(np.clip(n // 100, 2, 8)), float(np.log(max(1.0, n / (FALL * p))))
    whole = max(1, end - start)
    for k in range(n_rounds):
        left = max(0, end - ground.spent)
        n_pairs = int((left - 2 * n_values * (n_rounds - k)) / (n_rounds - k)) // 2
        share = (ground.spent - start) / whole
        yield walk.begin(min(max(n_pairs, 1), left // 2), share, 2 / whole, falls)
        n_now = min(n_values, (end - ground.spent) // 2)
        if n_now < 1:
            return
        seen = yield Check(walk, n_now)
        if patience.see(seen.value, seen.error):
            return


def n_final(budget: int) -> int:
    """Return the values at each of the two points that are compared at the end."""
    return int(np.clip(budget // 100, 2, MOST_FINAL))
