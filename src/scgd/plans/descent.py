"""Stories for functions without noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.plans.base import Ground, Story, Telling
from scgd.plans.doubt import doubted
from scgd.plans.opening import TINY, opening
from scgd.searches import Descent, Length, Race, RandomSearch, Rounding, ScaleSearch, Slopes
from scgd.searches.arms.box import REACH

__all__ = [
    "descend",
    "descent",
    "follow",
    "measure",
    "race",
    "raced",
    "random_search",
    "scale_rounds",
]


def descent(only: str = "") -> Story:
    """Return the story of a search that takes f for deterministic without asking."""

    def story(ground: Ground) -> Telling:
        yield from opening(ground)
        length = yield from lengths(ground)
        error = yield from measure(ground, length)
        yield from descend(ground, length, error, only)

    return story


def lengths(ground: Ground):  # type: ignore[no-untyped-def]
    """Return over what length f bends."""
    rounds = scale_rounds(ground.budget, few=True)
    return (yield ScaleSearch(ground.problem, ground.point, ground.rng(), rounds, repeat=False))


def measure(ground: Ground, length: Length):  # type: ignore[no-untyped-def]
    """Return the size of rounding errors; nothing where the budget is tiny."""
    if ground.budget < TINY:
        return 0.0
    unit = min(length.length, REACH) * ground.problem.unit  # no farther than others look
    found = yield Rounding(ground.problem, ground.point, ground.rng(), unit)
    return found.error


def descend(ground: Ground, length: Length, error: float, only: str = "") -> Telling:
    """Sweep with parabolas, then race them against BFGS."""
    unit = length.length * ground.problem.unit
    names = {"": "parabolas along coordinates, BFGS on those that matter",
             "parabolas": "parabolas along coordinates", "bfgs": "a sweep, then BFGS"}  # fmt: skip
    ground.sentence = f"Deterministic: {names[only]}."
    ground.repeats = True
    search = Descent(
        ground.problem, ground.point, ground.rng(), unit, error, ground.room, only, tol=ground.tol
    )
    if (yield from doubted(ground, search)) is not None:  # else the other road tells how it ended
        ground.converged = True


def follow(ground: Ground, value: float) -> Any:
    """Follow the user's derivatives from f(x0); return whether the road was changed."""
    ground.sentence = "Deterministic: BFGS on the derivatives given."
    search = Slopes(ground.problem, ground.point, ground.stream(), ground.room, value)
    return (yield from doubted(ground, search)) is None


def race(ground: Ground) -> Telling:
    """Race BFGS, a population and line searches; where that is not held, descend."""
    yield from opening(ground)
    if (yield from raced(ground)):
        return
    length = yield from lengths(ground)
    error = yield from measure(ground, length)
    yield from descend(ground, length, error)


def raced(ground: Ground):  # type: ignore[no-untyped-def]
    """Race, and return whether it was held."""
    ground.sentence = "Deterministic: a race of BFGS, a population and line searches."
    ground.repeats = True
    search = Race(
        ground.problem, ground.point, ground.stream(), ground.room, ground.tol,
        partials=ground.first_order,
    )  # fmt: skip
    found = yield from doubted(ground, search)
    if found is None:  # the other road tells how it ended
        return True
    ground.converged = found.held
    return found.held


def random_search(ground: Ground) -> Telling:
    """Look at random points: a baseline."""
    ground.repeats = True
    yield RandomSearch(ground.problem, ground.point, ground.rng())


def scale_rounds(budget: int, *, few: bool) -> tuple[int, ...]:
    """Return the directions of the length search: up to 180 evaluations, 5 % of the budget."""
    if budget < TINY:
        return 1, 1
    n = int(np.clip(0.05 * budget / 3, 3, 60))
    part = max(1, n // 12)
    return part, part, part, part, part if few else max(part, n - 4 * part)
