"""How stories without known noise begin: with x0, to which the end is compared."""

from __future__ import annotations

from scgd.plans.base import Ground, Telling
from scgd.searches import Start

__all__ = ["TINY", "opening"]

TINY = 100
"""Evaluations below which hardly any are spent on measuring."""

FEWEST = 6
"""Evaluations below which nothing can be measured: a pair beside x0 is all there is."""
PAIR = 3
"""X0 and a pair beside it."""


def opening(ground: Ground) -> Telling:
    """Evaluate x0; with hardly any evaluations also beside it, and the best point stands.

    Until somebody has asked a point twice, nothing tells that f does not repeat itself.
    """
    sampled = ground.samples.controlled
    if sampled and ground.budget >= TINY:  # guards compare with x0 on common samples
        return
    ground.repeats = not sampled
    n_points = min(ground.budget, PAIR) if ground.budget < FEWEST and not sampled else 1
    yield Start(ground.problem, ground.point, ground.aside(), n_points)
