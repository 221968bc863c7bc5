"""Which coordinates matter at all, and whether f is a sum over them: exact questions."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scgd.strategies.box import Box
from scgd.strategies.precision import ROUNDED, Precision
from scgd.typing import Array, Floats

__all__ = ["active_coordinates", "is_separable"]

LEAST = 8
"""Coordinates below which all count as active."""
MOST = 0.75
"""Share of active coordinates above which leaving out the rest does not pay."""
FOUR, CLEAR = 16.0, 1e-4
"""How far four values may be off together, in units of the noise, which may be twice what a few
repeats told; and the noise, as a part of what f changes, up to which that tells a sum."""


def active_coordinates(
    x: Floats,
    f: float,
    s: float,
    rng: np.random.Generator,
    box: Box,
    most: int,
    precision: Precision,
) -> Generator[Any, Any, Array]:
    """Return a mask of the coordinates on which f depends, by halving groups.

    All of them where there are few, where three eighths of them and four single ones all matter, or
    where ``most`` questions did not tell.
    """
    p = x.size
    everything = np.ones(p, np.bool_)

    def moves(group: Array) -> Generator[Any, Any, bool]:
        for reach in (1.0, 4.0):  # a flat answer is confirmed farther out
            y = x.copy()
            y[group] += reach * s * rng.standard_normal(len(group))
            value = yield box.reflect(y)
            if not abs(value - f) <= precision.level(f):
                return True
        return False

    singles = rng.permutation(p)[:4]
    some = [rng.permutation(p)[: max(1, p // 8)] for _ in range(3)] + np.split(
        singles, len(singles)
    )
    for group in some if p >= LEAST else ():
        if not (yield from moves(group)):
            break
    else:
        return everything
    active, todo, left = np.zeros(p, np.bool_), [(rng.permutation(p), False)], most
    while todo:
        group, known = todo.pop()
        if left <= 0:
            active[group] = True
            continue
        if not known:
            left -= 1
            if not (yield from moves(group)):
                continue
        if len(group) == 1:
            active[group] = True
            continue
        first, second = np.array_split(group, 2)
        left -= 1
        matters = yield from moves(first)
        todo += [(first, True), (second, False)] if matters else [(second, True)]
    return active if active.any() and active.mean() <= MOST else everything


def is_separable(
    x: Floats,
    f: float,
    s: float,
    rng: np.random.Generator,
    box: Box,
    precision: Precision,
    n_times: int,
) -> Generator[Any, Any, bool]:
    """Tell whether f is a sum of functions of single coordinates, to its precision.

    It is asked ``n_times``. No, where noise is more than a part of what f changes.

    Moves u and v of complementary halves then add up: f(x+u+v) - f(x+u) - f(x+v) + f(x) = 0.
    """
    p = x.size
    for _ in range(n_times if p > 1 else 0):
        half = rng.permutation(p) < p // 2
        u = np.where(half, s * rng.standard_normal(p), 0.0)
        v = np.where(half, 0.0, s * rng.standard_normal(p))
        one, other = (yield box.reflect(x + u)), (yield box.reflect(x + v))
        both = yield box.reflect(x + u + v)  # mirrored one by one: still the same moves
        change = max(abs(one - f), abs(other - f))
        size = max(abs(one), abs(other), abs(both), abs(f))
        error = abs(both - one - other + f)
        known = 1e-9 * change + ROUNDED * size + FOUR * precision.noise
        if change == 0 or precision.noise > CLEAR * change or not error <= known:
            return False
    return True
