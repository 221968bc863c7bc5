"""Random moves on a grid: by one level at least, and never of what has no effect."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.spaces import Grid
from scgd.typing import Array, Floats, Ints

__all__ = ["mutated", "stratified"]

WAKE = 0.5
"""Chance that a coordinate which begins to have an effect leaves its start."""


def mutated(
    grid: Grid,
    points: Floats,
    chance: Any,
    spread: Any,
    rng: np.random.Generator,
    hold: int | None = None,
) -> Floats:
    """Return a mutation of each point.

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
    which = chosen(active, chance, rng)
    away = spread * rng.standard_normal(points.shape)
    moved = np.where(which, reflected(points + away), points)
    if grid.discrete.any():
        levels = stepped(grid, points, moved, away, rng)
        moved = np.where(which & grid.discrete, grid.centres(levels), moved)
    if grid.conditions:
        woken = grid.active(moved) & ~grid.active(points)
        woken &= rng.random(points.shape) < WAKE
        moved = np.where(woken, rng.random(points.shape), moved)
    return grid.canonical(moved)


def chosen(active: Array, chance: Floats, rng: np.random.Generator) -> Array:
    """Return which coordinates move: each with a chance, one at least where one can."""
    which = (rng.random(active.shape) < chance) & active
    first = np.argmax(rng.random(active.shape) * active, axis=1)
    none = ~which.any(axis=1)
    which[none, first[none]] = active[none, first[none]]
    return which


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
    side = np.where(away < 0, -1, 1)
    side = np.where((old + side < 0) | (old + side > last), -side, side)
    new = np.where(new == old, np.clip(old + side, 0, np.maximum(last, 0)), new)
    if grid.categorical.any():
        others = np.floor(rng.random(points.shape) * last)
        other = (old + 1 + others.astype(np.int64)) % np.maximum(grid.n_levels, 1)
        new = np.where(grid.categorical, other, new)
    return np.asarray(new, np.int64)


def stratified(grid: Grid, n: int, rng: np.random.Generator) -> Floats:
    """Return a Latin hypercube: along each coordinate one point in each of n equal parts."""
    order = np.argsort(rng.random((n, grid.n_coords)), axis=0)
    return grid.canonical((order + rng.random(order.shape)) / max(n, 1))
