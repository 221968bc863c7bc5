"""Comparisons along the way: what is returned is never knowingly worse than x0."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.plans.base import Ground
from scgd.searches import Judge, Rest
from scgd.typing import Floats

__all__ = ["kept", "settle_with_start"]

LEFT = 50
"""The part of the budget (one over this) for which it does not pay to begin again."""


def settle_with_start(ground: Ground, n_samples: int, *, ranks: bool = False) -> Any:
    """Return to x0 if the end looks worse; wait for more budget where hardly any is left.

    One standard error of evidence is enough: an end that is worse by three passes once in fifty
    times, and the guards have looked before; asking for less would often throw away a gain. With
    ``ranks`` outliers do not count: the end is worse if its median is and most pairs say so.
    """
    judge = Judge(ground.point, ground.problem.x0, n_samples)
    verdict = yield judge
    ground.guarded = False
    worse = verdict.worse_by_rank if ranks else verdict.worse(1)
    values = np.array(judge.there if worse else judge.here)
    if worse:
        ground.point.put(ground.problem.x0)
    if ground.converged:
        return
    if ground.total is None:
        ground.nominal *= 2
    elif ground.room < ground.budget // LEFT + 1:
        yield Rest(ground.point, values)


def kept(ground: Ground) -> Floats:
    """Return the point to go back to."""
    assert ground.kept is not None
    x: Floats = ground.kept["x"]
    return x
