"""Comparisons along the way: what is returned is never knowingly worse than x0."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.plans.base import Ground
from scgd.searches import Judge, Rest
from scgd.typing import Floats

__all__ = ["Patience", "kept", "settle_with_start"]

LEFT = 50
"""The part of the budget (one over this) for which it does not pay to begin again."""


MOST_PARTS = 40
"""Comparisons that the user's patience may ask for, at most."""
GAIN = 2.0
"""Standard errors that make a gain significant."""


class Patience:
    """The evaluations since the last significant gain, against the user's patience.

    Parameters
    ----------
    ground
        What the story stands on.
    value
        The value at the beginning.
    """

    def __init__(self, ground: Ground, value: float = float("inf")) -> None:
        self.ground, self.value, self.since = ground, value, ground.spent

    def parts(self, n_evals: int, least: int = 1) -> int:
        """Return into how many parts to cut so many evaluations; ``least`` without a limit."""
        limit = self.ground.patience
        return least if limit is None else int(np.clip(n_evals // limit, least, MOST_PARTS))

    def see(self, value: float, error: float) -> bool:
        """Take the value of the best point; tell whether the user's patience is over."""
        gained = value < self.value - GAIN * error
        self.value = value if gained else self.value
        return self.note(gained)

    def note(self, gained: bool) -> bool:
        """Take whether something was gained; tell whether the user's patience is over."""
        ground = self.ground
        if gained:
            self.since = ground.spent
        over = ground.patience is not None and ground.spent - self.since >= ground.patience
        ground.converged = ground.converged or over
        return over


def settle_with_start(
    ground: Ground, n_samples: int, *, ranks: bool = False, proof: bool = False
) -> Any:
    """Return to x0 if the end looks worse; wait for more budget where hardly any is left.

    One standard error of evidence is enough: an end that is worse by three passes once in fifty
    times, and the guards have looked before; asking for less would often throw away a gain. With
    ``ranks`` outliers do not count: the end is worse if its median is and most pairs say so. With
    ``proof`` the end must be better by two standard errors: nothing else tells that it is.
    """
    judge = Judge(ground.point, ground.problem.x0, n_samples)
    verdict = yield judge
    ground.guarded = False
    worse = verdict.worse_by_rank if ranks else verdict.outdone(1)
    worse = not verdict.better(2) if proof else worse
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
