"""The story for noise that nobody controls: joint directions at radii that show.

First the radius at which dense directions show above the noise and how much wider joint moves may
be, a first leg there, then a radius per coordinate where the budget allows, and a second leg.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.plans.base import Ground, Telling
from scgd.plans.guard import GAIN, Patience, kept, settle_with_start
from scgd.plans.members import joint_member
from scgd.schedules import Constant, Linear, Schedule
from scgd.searches import Judge, Radii
from scgd.typing import Floats

__all__ = ["joint_directions"]

FIRST, SECOND = 2.0, 0.75
"""First step lengths of the legs, in units of the radius over the root of the leg's steps."""
START = 0.3
"""The part of what is left that the first leg takes."""
BACK = 0.25
"""How far the second search for a joint radius starts below the first one's."""
NARROW = 0.1
"""The part of the radius that is left at the end where f is no quadratic."""
MOST_TRIES = 4


def joint_directions(ground: Ground, radius: float, patience: Patience) -> Telling:
    """Take a first leg at a radius, look again, take a second one; as long as there is budget."""
    scale = ground.hold("scale", radius * ground.problem.unit)
    growth, base = yield from first_leg(ground, scale, patience)
    wide: Schedule = Constant(growth)
    if not ground.converged:
        wide, base = yield from own_radii(ground, scale, growth)
    while True:
        if not ground.converged:
            yield from leg(ground, 1.0, scale, SECOND, wide, base, patience)
            if (yield Judge(ground.point, kept(ground), n_checks(ground.budget))).outdone(2):
                ground.point.put(kept(ground))
        yield from settle_with_start(ground, n_checks(ground.budget))
        if ground.converged:
            return
        base = float("nan")


def first_leg(ground: Ground, scale: Floats, patience: Patience) -> Any:
    """Take a leg that ends better than it began, nearer by if need be.

    Return how much wider joint moves are, and f at the point.
    """
    for tries in range(MOST_TRIES + 1):
        grown = yield radii(ground, scale, 0, steps_of(ground, START))
        growth = grown.joint if grown.seen else 1.0
        yield from leg(ground, START, scale, FIRST, Constant(growth), grown.base, patience)
        verdict = yield Judge(ground.point, kept(ground), n_checks(ground.budget))
        if not verdict.outdone(2):
            break
        ground.point.put(kept(ground))
        if tries < MOST_TRIES:
            scale /= 10**0.5
    return growth, grown.base


def own_radii(ground: Ground, scale: Floats, growth: float) -> Any:
    """Find a radius per coordinate, put the units of the second leg in ``scale``.

    Return how much wider joint moves are, and f at the point. On quadratics wide moves have the
    least noise and no bias; elsewhere they become narrower on the way.
    """
    levels = levels_of(ground)
    common = scale * growth * (1.0 if levels else BACK)
    search = radii(ground, common, levels, steps_of(ground, 1.0))
    own = yield search
    wide = growth
    if levels and own.n_resolved:
        root = np.sqrt(own.n_resolved)
        wide = own.joint * root
        scale[...] = np.where(search.resolved, search.radii / root, growth / wide * scale)
        ground.hold("importance", np.where(search.resolved, search.radii**-2.0, 0.0))
    elif not levels and own.seen:
        wide = growth * BACK * own.joint
    return Linear(wide, NARROW) if levels and own.steep else Constant(wide), own.base


def levels_of(ground: Ground) -> int:
    """Return the radii that are tried for each coordinate: as many as an eighth of the budget pays.

    Where it pays for none, coordinates do not come near a minimum either: what counts is to go
    down, and bias matters less than noise.
    """
    n, budget = ground.problem.n_coords, ground.budget
    return 7 if 14 * n <= 0.12 * budget else 3 if 6 * n <= 0.12 * budget else 0


def radii(ground: Ground, common: Floats, levels: int, n_steps: int) -> Radii:
    """Return a search for radii around a common one, for so many steps."""
    budget, n_steps = ground.budget, n_steps if levels_of(ground) else 0
    return Radii(
        ground.problem, ground.point, ground.rng(), common.copy(), levels, n_checks(budget),
        n_pairs(budget), n_steps,
    )  # fmt: skip


def steps_of(ground: Ground, share: float) -> int:
    """Return the steps of a leg that takes a share of what is left, less two comparisons."""
    return max(0, int(share * (ground.room - 6 * n_checks(ground.budget)) / 2))


def leg(
    ground: Ground, share: float, scale: Floats, factor: float, radius: Schedule, base: float,
    patience: Patience,
) -> Telling:  # fmt: skip
    """Spend a share of what is left, less two comparisons, on joint directions.

    ``base`` is f at the point. Where the user's patience has an end, the leg is compared with
    itself along the way.
    """
    n_steps = steps_of(ground, share)
    recipe = joint_member(max(1, n_steps), factor, radius)
    steps = ground.steps(recipe, scale, 2 * max(1, n_steps))
    ground.keep(steps)
    n_parts, end = patience.parts(2 * n_steps), ground.spent + 2 * n_steps
    for part in range(n_parts):
        n_evals = (end - ground.spent) // (n_parts - part)
        yield steps.begin_leg(max(0, n_evals), base)
        if part == n_parts - 1:
            return
        verdict = yield Judge(ground.point, kept(ground), n_checks(ground.budget))
        if verdict.better(GAIN):
            ground.keep(steps)
        if patience.note(verdict.better(GAIN)):
            return
        base = float("nan")


def n_checks(budget: int) -> int:
    """Return the pairs of a comparison."""
    return max(min(10, budget // 40), int(0.002 * budget), 2)


def n_pairs(budget: int) -> int:
    """Return the pairs at each joint radius."""
    return int(np.clip(budget // 1000, 2, 8))
