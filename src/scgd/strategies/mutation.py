"""Dynamically dimensioned search on a grid, and differential evolution where it stalls.

After Tolson and Shoemaker (2007), and Storn and Price (1997).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from scgd.problem import Problem
from scgd.spaces import Grid
from scgd.strategies.asks import Asking, Outcome, Report, Wait
from scgd.strategies.budget import Budget
from scgd.strategies.measured import Measured
from scgd.typing import Array, Floats, Ints

STALLED = 10
"""Evaluations per coordinate without a gain after which a population is evolved: the move of each
single coordinate has then been tried ten times."""
POPULATION, LARGEST = 5, 200
"""Members of a population: per coordinate, the least that Storn and Price advise, and at most."""
GENERATIONS = 100
"""Generations that a population needs to converge; with fewer it ends behind mutations."""


def dynamically_dimensioned_search(
    problem: Problem, budget: Budget, rng: np.random.Generator
) -> Asking:
    r"""Mutate the best point, fewer coordinates at a time as time goes.

    At the t-th of T evaluations each of D coordinates moves with probability

    .. math:: \max(1 / D, 1 - \log t / \log T).

    A point as good as the best takes its place, so the search drifts over plateaus. Where nothing
    is gained for a while, a population is evolved instead if f is deterministic and there are
    evaluations enough: single moves end where coordinates depend on each other. Of a noisy
    function a point that looks better is evaluated until it has as many values as the best one or a
    higher mean; with samples, both see the same ones.
    """
    measured = Measured(problem)
    yield from measured.open(budget, rng)
    yield from measured.test_noise()
    return (yield from search_on(measured, budget, rng))


def search_on(measured: Measured, budget: Budget, rng: np.random.Generator) -> Asking:
    """Go on from what is known, as long as there is budget."""
    yield Report(solver="mutations")
    if measured.noisy is None:
        yield from measured.test_noise()
    size = min(POPULATION * measured.grid.n_coords, LARGEST)
    holder, stalled = measured.best, 0
    while True:
        while budget.left < 1:
            yield Wait()
        holder = measured.forget(holder)
        if measured.best < 0 or holder < 0:
            x = measured.anything(rng)
        else:
            d, t = measured.grid.n_coords, max(budget.spent, 1)
            chance = max(1 / d, 1 - math.log(t) / math.log(max(budget.total, t + 1, 3)))
            spread = 0.2 * np.exp(-2.0 * rng.random(8))
            parents = np.repeat(measured.points[[holder]], 8, axis=0)
            found = measured.new(mutated(measured.grid, parents, chance, spread, rng))
            x = found[0] if len(found) else measured.anything(rng)
        if x is None:
            return Outcome(converged=True)  # every point of a small grid is known
        before = measured.means[holder] if holder >= 0 else math.inf
        yield from measured.evaluate(x[None])
        row = measured.index[x.tobytes()]
        if not measured.noisy:
            holder = measured.best
            stalled = 0 if holder >= 0 and measured.means[holder] < before else stalled + 1
            due = holder >= 0 and stalled >= STALLED * measured.grid.n_coords
            if due and budget.left > GENERATIONS * size:
                yield from differential_evolution(measured, budget, rng, size)
                holder, stalled = measured.best, 0
        elif measured.seen[row] and row != holder:
            holder = yield from challenge(measured, holder, row, budget)
            yield from measured.recommend(holder)


def challenge(measured: Measured, holder: int, row: int, budget: Budget) -> Asking:
    """Evaluate a point until it has as many values as the best one or looks worse; return who won.

    The winner is evaluated once more, so that a lucky value does not stand for ever.
    """
    if holder < 0:
        return row
    paired = measured.problem.sampled
    here, there = list(measured.seen[row]), list(measured.seen[holder])
    n_wanted = len(there)
    if paired:
        here, there = [], []
    elif np.mean(here) > np.mean(there):
        return holder
    elif measured.means[row] > measured.means[holder]:
        return holder
    while len(here) < n_wanted and budget.left > paired:
        both = measured.points[[row, holder] if paired else [row]]
        values = yield from measured.evaluate(both, common=True)
        if not np.isfinite(values).all():
            return holder
        here.append(values[0])
        there = [*there, values[1]] if paired else there
        if np.mean(here) > np.mean(there):
            return holder
    if budget.left:
        yield from measured.evaluate(measured.points[[row]])
    return row


def differential_evolution(
    measured: Measured, budget: Budget, rng: np.random.Generator, size: int
) -> Asking:
    r"""Evolve a population in the unit cube (Storn and Price, 1997) until it has converged.

    Each member competes with :math:`a + F (u - v)`, where a, u and v are others and F is uniform in
    [0.5, 1], in each coordinate with probability 0.9, as they advise where coordinates depend on
    each other; choices and whole numbers are rounded to their levels. A generation is evaluated at
    once.
    """
    grid = measured.grid
    n, d = size, grid.n_coords
    order = np.argsort(rng.random((n, d)), axis=0)
    people = (order + rng.random((n, d))) / n  # as they are before rounding
    values = np.full(n, np.inf)
    points = grid.canonical(people)
    trials, places = people, points
    while True:
        measured.forget(measured.best)
        fresh = measured.new(places)
        fresh = fresh[np.sort(np.unique(fresh, axis=0, return_index=True)[1])]
        if len(fresh) > budget.left:
            fresh = fresh[: budget.left]
        if len(fresh):
            yield from measured.evaluate(fresh)
        for j, at in enumerate(places):
            row = measured.index.get(at.tobytes(), -1)
            value = measured.means[row] if row >= 0 else np.inf
            if value <= values[j]:
                people[j], values[j] = trials[j], value
        if budget.left < 1:
            return None
        finite = values[np.isfinite(values)]
        if len(finite) == n and finite.std() <= 1e-6 * abs(finite.mean()):
            return None
        a, u, v = people[rng.integers(n, size=(3, n))]
        cross = rng.random((n, d)) < 0.9
        cross[np.arange(n), rng.integers(d, size=n)] = True
        moved = a + rng.uniform(0.5, 1.0) * (u - v)
        outside = (moved < 0) | (moved > 1)
        moved = np.where(outside, rng.random((n, d)), moved)
        trials = np.where(cross, moved, people)
        places = grid.canonical(trials)


def mutated(
    grid: Grid,
    points: Floats,
    chance: Any,
    spread: Any,
    rng: np.random.Generator,
    hold: int | None = None,
) -> Floats:
    """Return a mutation of each point: by one level at least, and never of what has no effect.

    Parameters
    ----------
    grid, points
        Where, and what.
    chance
        With what probability each coordinate moves; one moves at least.
    spread
        How far, in the cube; reflected at its faces. Levels move by one at least, a choice becomes
        another one.
    rng
        Where the moves come from.
    hold
        A coordinate that stays.
    """
    active = grid.active(points)
    if hold is not None:
        active[:, hold] = False
    chance, spread = (np.broadcast_to(v, len(points))[:, None] for v in (chance, spread))
    which = (rng.random(active.shape) < chance) & active
    first = np.argmax(rng.random(active.shape) * active, axis=1)
    none = ~which.any(axis=1)
    which[none, first[none]] = active[none, first[none]]
    away = spread * rng.standard_normal(points.shape)
    moved = np.where(which, reflected(points + away), points)
    if grid.discrete.any():
        levels = stepped(grid, points, moved, away, rng)
        moved = np.where(which & grid.discrete, grid.centres(levels), moved)
    if grid.conditions:  # a coordinate that begins to have an effect leaves its start half the time
        woken = grid.active(moved) & ~grid.active(points)
        woken &= rng.random(points.shape) < 0.5
        moved = np.where(woken, rng.random(points.shape), moved)
    return grid.canonical(moved)


def reflected(points: Floats) -> Floats:
    """Return points folded back into the cube.

    Examples
    --------
    >>> reflected(np.array([-0.25, 0.5, 1.25, 2.5]))
    array([0.25, 0.5 , 0.75, 0.5 ])
    """
    return np.asarray(1.0 - np.abs(1.0 - np.mod(points, 2.0)), np.float64)


def stepped(
    grid: Grid, points: Floats, moved: Floats, away: Floats, rng: np.random.Generator
) -> Ints:
    """Return levels that differ from those of the points wherever there is another one."""
    old, new, last = grid.levels(points), grid.levels(moved), grid.n_levels - 1
    side: Array = np.where(away < 0, -1, 1)
    side = np.where((old + side < 0) | (old + side > last), -side, side)
    new = np.where(new == old, np.clip(old + side, 0, np.maximum(last, 0)), new)
    if grid.categorical.any():
        others = np.floor(rng.random(points.shape) * last)
        other = (old + 1 + others.astype(np.int64)) % np.maximum(grid.n_levels, 1)
        new = np.where(grid.categorical, other, new)
    return np.asarray(new, np.int64)
