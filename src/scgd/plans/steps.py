"""The story of a recipe: find the scale where nothing tells it, then take steps."""

from __future__ import annotations

import numpy as np

from scgd.estimators import FirstOrder
from scgd.plans.base import Ground, Story, Telling
from scgd.plans.opening import opening
from scgd.recipes import Recipe
from scgd.searches import Repeat, Rest, ScaleSearch, Stepping, Watch

__all__ = ["steps"]

MONITOR = 16
"""Evaluations of fun, at most, that tell the value reached by a run that only sees derivatives."""
AFFORDABLE = 20
"""How many times what it costs the budget must be for a search for the scale."""


def steps(recipe: Recipe) -> Story:
    """Return the story of a recipe."""

    def story(ground: Ground) -> Telling:
        scale = ground.problem.scale
        search = ScaleSearch(ground.problem, ground.point, ground.rng())
        affordable = ground.total is None or AFFORDABLE * search.total_cost <= ground.total
        relative = recipe.relative_rate or recipe.relative_radius
        exact = isinstance(recipe.estimator, FirstOrder)
        if scale is None and relative and affordable and not exact:
            if ground.problem.lower.size:  # near bounds the search for the scale moves inwards
                yield from opening(ground)
            found = yield search
            scale = np.full(ground.problem.n_coords, found.length)
            ground.repeats = found.repeats and not ground.samples.controlled
            ground.first = found.value
        elif relative and not exact and ground.asks and not ground.samples.controlled:
            seen = yield Repeat(ground.problem, ground.point, ground.aside(), n_asked(ground))
            ground.repeats, ground.first, ground.beside = seen.same, seen.value, seen.beside
        budget = None if ground.total is None else ground.room
        walk = ground.steps(recipe, scale, budget)
        if exact:
            yield from watched(ground, walk)
        elif ground.patience is not None and not ground.repeats:
            yield from patiently(ground, walk)
        else:
            walk.base = ground.first if ground.repeats else walk.base
            yield walk

    return story


def patiently(ground: Ground, walk: Stepping) -> Telling:
    """Take steps, so many evaluations at a time, until the last of them did not fall."""
    assert ground.patience is not None
    n_evals, total = ground.patience, ground.total
    while not ground.converged:
        leg = yield walk.begin_leg(n_evals)
        n_evals = ground.patience if leg.enough else 2 * n_evals
        ground.converged = leg.enough and not leg.fell
        if ground.total != total:
            total = ground.total
            walk.plan_for(None if total is None else walk.n_evals + ground.room)


def n_asked(ground: Ground) -> int:
    """Return how many evaluations tell whether f repeats itself, and the best point counts."""
    affordable = ground.total is None or ground.total >= AFFORDABLE * 4
    return 4 if affordable else min(3, ground.budget)


def watched(ground: Ground, walk: Stepping) -> Telling:
    """Take steps that see derivatives only, and look at f with what was kept back."""
    while ground.total is not None:
        n_values = min(MONITOR, ground.room // 10)
        yield walk.begin_leg(ground.room - n_values)
        watch = Watch(ground.point, n_values)
        yield watch
        if ground.room < 1:
            yield Rest(ground.point, watch.standing.values)
        walk.plan_for(walk.n_evals + ground.room)
    yield walk
