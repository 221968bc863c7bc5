"""How stories without known noise begin: with x0, to which the end is compared."""

from __future__ import annotations

from typing import Any

from scgd.plans.base import Ground
from scgd.searches import Start

__all__ = ["FEWEST", "TINY", "opening"]

TINY = 100
"""Evaluations below which hardly any are spent on measuring."""

FEWEST = 6
"""Evaluations below which nothing can be measured: a pair beside x0 is all there is."""
PAIR = 3
"""X0 and a pair beside it."""


def opening(ground: Ground) -> Any:
    """Evaluate x0; with hardly any evaluations also beside it, and the best point stands.

    Return f(x0), NaN where it was not asked. Derivatives tell more than a pair, from three on.
    Until somebody has asked a point twice, nothing tells that f does not repeat itself.
    """
    sampled = ground.samples.controlled
    if sampled and ground.budget >= TINY:  # guards compare with x0 on common samples
        return float("nan")
    ground.repeats = not sampled
    alone = sampled or ground.budget >= FEWEST or (ground.first_order and ground.budget >= PAIR)
    n_points = 1 if alone else min(ground.budget, PAIR)
    found = yield Start(ground.problem, ground.point, ground.aside(), n_points)
    return found.value
