"""What follows where a function that seemed to repeat itself does not."""

from __future__ import annotations

from scgd.plans.base import Ground, Telling
from scgd.plans.noisy import noisy
from scgd.searches import Doubt, Search

__all__ = ["doubted"]


def doubted(ground: Ground, search: Search) -> Telling:
    """Run a search of a deterministic function; where values stop repeating, change the road.

    Nobody doubts what the user has told (``noise=0``).
    """
    if ground.problem.noise is not None:
        yield search
        return
    if (yield Doubt(search, ground.room)).differs:
        yield from noisy(ground, "Values that seemed to repeat did not. ")
