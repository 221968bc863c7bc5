"""What follows where a function that seemed to repeat itself does not."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from scgd.plans.base import Ground
from scgd.plans.noisy import noisy
from scgd.searches import Doubt, Search

__all__ = ["doubted"]


def doubted(ground: Ground, search: Search) -> Generator[Search, Any, Any]:
    """Run a search of a deterministic function; where values stop repeating, change the road.

    Return what the search found, or None where the road was changed. Nobody doubts what the user
    has told (``noise=0``).
    """
    if ground.problem.noise is not None:
        return (yield search)
    doubt = yield Doubt(search, ground.room)
    if not doubt.differs:
        return search.found(**doubt.found)
    ground.repeats = False
    yield from noisy(ground, "Values that seemed to repeat did not. ")
    return None
