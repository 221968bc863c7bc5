"""The recipes that ``auto`` chooses from, as functions of what it measured."""

from __future__ import annotations

import numpy as np

from scgd.estimators import SPSA, ForwardDifference
from scgd.policies import Full, RecentGains
from scgd.recipes import Recipe
from scgd.schedules import Constant, Linear, Schedule
from scgd.steps import Adam, Learned, Wiener

__all__ = ["block_member", "joint_member", "short_member"]

BLOCK = 16


def block_member(n_coords: int, budget: int, smallest: float, shrink: float) -> Recipe:
    """Return the member for controllable noise.

    Blocks of 16 distinct coordinates share one base evaluation per sample, with a radius as small
    as rounding allows; the policy sweeps once and then follows recent gradients; step lengths are
    learned. Rates and radii are in units of the length scale.
    """
    power = 1 + float(np.clip(np.log10(budget / (40 * n_coords)), 0, 1))
    return Recipe(
        "auto: blocks",
        policy=RecentGains(),
        estimator=ForwardDifference(),
        step=Learned(),
        learning_rate=Linear(0.25 * shrink, power=power),
        radius=Constant(max(1e-4, smallest)),
        block_size=min(BLOCK, n_coords),
        replace=False,
    )


def short_member(smallest: float, shrink: float) -> Recipe:
    """Return the member for controllable noise and few evaluations per coordinate.

    Where a sweep over the coordinates would take a good part of the budget, random signs on all of
    them with a common sample inform every coordinate at once.
    """
    return Recipe(
        "auto: joint directions with common samples",
        policy=Full(),
        estimator=SPSA(),
        step=Adam(beta2=0.99),
        learning_rate=Linear(0.08 * shrink),
        radius=Constant(max(1e-3, smallest)),
    )


def joint_member(n_steps: int, factor: float, radius: Schedule) -> Recipe:
    """Return the member for noise that nobody controls.

    Random signs on all coordinates at once, with radii wide enough to be seen above the noise, and
    steps along the mean gradient shrunk by what noise explains, with a length that all coordinates
    learn together. In units of the radii found; ``radius`` is how much wider joint moves are.
    """
    return Recipe(
        "auto: joint directions",
        policy=Full(),
        estimator=SPSA(),
        step=Wiener(shared_gain=learning_gain(n_steps)),
        learning_rate=Linear(factor / np.sqrt(max(1, n_steps)), power=2),
        radius=radius,
    )


def learning_gain(n_steps: int) -> float:
    """Return how fast a leg of so many steps learns its common step length.

    A short leg must learn fast; a long one that does would follow the noise.
    """
    n = max(1, n_steps)
    return float(np.clip(15 / n, min(0.01, 35 / n), 0.05))
