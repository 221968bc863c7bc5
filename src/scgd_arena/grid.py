"""Where features meet: bounds, noise, failed evaluations and samples, in every combination.

The function is a bowl of six inputs that matter among p, its best point well inside the box or in a
corner of it. Cells are compared with those without bounds, and with pycma (`score.behind`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from math import nan

import numpy as np

from scgd.typing import Floats, Ints
from scgd_arena.problems import Task

__all__ = ["GRID", "crossed", "crossing"]

GRID = re.compile(r"grid-(\d+)-s([\d.]+(?:e-\d+)?)-f([\d.]+)(-sampled)?(-corner)?(-box)?")
NOISES = ("s0", "s1e-06", "s0.01", "s0.5", "s1e-06", "s0.01", "s0.5")
SAMPLED = ("", "", "", "", "-sampled", "-sampled", "-sampled")
BUDGETS = {6: (80, 600), 20: (300, 2000), 300: (1500, 6000)}
"""Few and many evaluations for so many inputs."""
N_SAMPLES = 1000
WAVES = 30.0
"""Radians per unit by which a sample that is held fixed makes the function rough."""


def crossing() -> list[tuple[str, int]]:
    """Return the problems and budgets of the grid: the product of its factors."""
    return [
        (f"grid-{p}-{noise}-f{fail}{sampled}{place}{box}", budget)
        for p, (noise, sampled), fail, place, box in itertools.product(
            BUDGETS, zip(NOISES, SAMPLED, strict=True), ("0", "0.1"), ("", "-corner"), ("", "-box")
        )
        for budget in BUDGETS[p]
    ]


def crossed(name: str, instance: int) -> Task:
    """Return an instance of the grid; noise is in units of what the start has to gain.

    A sample shifts the phase and turns the direction of a wave, so the mean over samples is the
    bowl, and one sample alone is rough.

    Examples
    --------
    >>> task = crossed("grid-20-s0.01-f0-sampled-box", 1)
    >>> fun = task.make(0)
    >>> fun(task.x0, np.array([3])) == fun(task.x0, np.array([3])), task.bounds[0]
    (True, (-1.0, 1.0))
    """
    found = GRID.fullmatch(name)
    assert found is not None
    p, noise, fail = int(found[1]), float(found[2]), float(found[3])
    sampled, corner, box = (part is not None for part in found.groups()[3:])
    rng = np.random.default_rng([instance, p, 80])
    which, sign = rng.choice(p, 6, replace=False), rng.choice([-1.0, 1.0], 6)
    best = sign * (1.0 if corner else rng.uniform(0.3, 0.7, 6))
    x0, weight = rng.uniform(-0.5, 0.5, p), rng.permutation(np.linspace(0.5, 2, 6))
    phases, turns = rng.uniform(0, 2 * np.pi, N_SAMPLES), rng.standard_normal((N_SAMPLES, 6))

    def gap(x: Floats) -> float:
        return float(weight @ (np.asarray(x)[which] - best) ** 2)

    size = noise * gap(x0)

    def make(seed: int) -> Callable[..., float]:
        own = np.random.default_rng([seed, 81])

        def fun(x: Floats, rows: Ints | None = None) -> float:
            if fail and own.random() < fail:
                return nan
            if rows is None:
                return gap(x) + (size * own.standard_normal() if noise else 0.0)
            wave = np.sin(phases[rows[0]] + WAVES * float(turns[rows[0]] @ x[which]))
            return gap(x) + size * 2**0.5 * float(wave)

        return fun

    return Task(
        name, x0, N_SAMPLES if sampled else None, make, gap, [(-1.0, 1.0)] * p if box else None,
        domain=(-1.0, 1.0), repeats=noise == 0,
    )  # fmt: skip
