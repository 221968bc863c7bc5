"""The story for noise that nobody controls.

A ladder finds how far to look. A walk along random signs goes down in rounds; after each one a
quadratic fitted to what was seen proposes a point, which is compared with the walk's. The end is
compared with x0. Large budgets go on with joint directions at radii of their own.
"""

from __future__ import annotations

import numpy as np

from scgd.plans.base import Ground, Telling
from scgd.plans.guard import settle_with_start
from scgd.plans.joint import joint_directions
from scgd.searches import Archive, Check, Ladder, Reach, Walk
from scgd.searches.walk import LARGEST

__all__ = ["noisy"]

LARGE = 4000
"""Evaluations above which joint directions follow."""
WIDE = 100
"""Coordinates above which they come at once, with such a budget."""
OPENING, SHARE = 3000, 0.3
"""Evaluations of the rounds before them: so many at least, and a share."""
WEAK = (
    "nothing near x0 shows above the noise; "
    "give scale= (the typical size of a coordinate) or bounds="
)
KEPT = 1000
"""Points that regressions look at."""
FALL = 40
"""Evaluations per coordinate from which step lengths fall faster than linearly."""


def noisy(ground: Ground, before: str = "") -> Telling:
    """Find how far to look, go down in rounds, compare with x0; as long as there is budget.

    ``before`` is a sentence for people about how it came to this.
    """
    problem, budget = ground.problem, ground.room
    if budget > LARGE and problem.n_coords > WIDE:
        yield from wide(ground, before)
        return
    archive = archive_of(ground)
    footing = yield Ladder(problem, ground.point, ground.rng(), budget, archive)
    if footing.deviation > 0 and not footing.seen and not problem.told:
        ground.warn(WEAK)
    noise, radius = f"{before}Noise that nobody controls", ground.size(footing.radius)
    ground.sentence = f"{noise}, {footing.deviation:.2g}; radius {radius}."
    walk = Walk(problem, ground.point, ground.rng(), footing, archive)
    ground.live["walk"] = walk
    if budget > LARGE:
        opening = int(max(OPENING, SHARE * budget))
        yield from rounds(ground, walk, opening, ground.budget - budget + opening)
    while budget <= LARGE:
        n_compared = n_final(ground.budget)
        yield from rounds(ground, walk, budget, ground.budget - 2 * n_compared)
        yield from settle_with_start(ground, n_compared, ranks=True)
        budget = ground.room
    yield from joint_directions(ground, footing.radius)


def wide(ground: Ground, before: str) -> Telling:
    """Go to joint directions at once, at a radius that is looked for with more care."""
    signal = yield Reach(ground.problem, ground.point, ground.rng(), ground.room)
    if signal.found == "nothing" and not ground.problem.told:
        ground.warn(WEAK)
    radius = ground.size(signal.radius)
    ground.sentence = f"{before}Noise that nobody controls; radius {radius}."
    yield from joint_directions(ground, signal.radius)


def archive_of(ground: Ground) -> Archive:
    """Return a place for points that outlive their searches; none where no model is fitted."""
    n = ground.problem.n_coords
    made = Archive.empty(n, min(KEPT, ground.budget) if n <= LARGEST else 0)
    for name, array in (("points", made.points), ("values", made.values), ("count", made.count)):
        ground.hold(name, array)
    return made


def rounds(ground: Ground, walk: Walk, n: int, end: int) -> Telling:
    """Walk and check in turn until ``end``; n evaluations are what the rounds are planned for."""
    p, start = ground.problem.n_coords, ground.spent
    n_rounds = min(int(np.clip(n / (2 * p), 4, 10)), max(2, n // 15))
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
        told = ground.sentence.split(" Looked")[0]
        ground.sentence = f"{told} Looked up to {ground.size(seen.farthest)} away from x0."


def n_final(budget: int) -> int:
    """Return the values at each of the two points that are compared at the end."""
    return int(np.clip(budget // 100, 2, 10))
