"""What a leg of steps saw of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scgd.searches.base import Finding

__all__ = ["REMEMBERED", "Leg", "above", "compared"]

REMEMBERED = 50
"""Phases at the beginning and at the end of a leg that are compared with each other."""
FEWEST = 4
STEADY = 10
"""Phases at the beginning of a leg that tell how far its probes lie above the point."""


@dataclass(frozen=True)
class Leg(Finding):
    """What a leg of steps saw of itself.

    Attributes
    ----------
    fell
        Whether its last phases lie below its first ones by a standard error at least.
    enough
        Whether there were phases enough to tell.
    """

    fell: bool
    enough: bool = True


def compared(firsts: Sequence[float], recent: Sequence[float], n_phases: int) -> Leg:
    """Compare the last phases with the first: a fifth of the leg each, at most 50."""
    n = min(n_phases // 5, REMEMBERED)
    if n < FEWEST:
        return Leg(False, enough=False)
    first, last = np.array(firsts[:n]), np.array(recent)[-n:]
    error = np.sqrt((first.var(ddof=1) + last.var(ddof=1)) / n)
    return Leg(bool(last.mean() < first.mean() - error))


def above(base: float, firsts: Sequence[float]) -> float:
    """Return how far the first probes lie above the point where f is ``base``.

    For a quadratic that is the same everywhere, and goes with the square of the radius: what is
    reported is then the value of the point reached.

    Examples
    --------
    >>> above(1.0, [3.0, 2.0])
    1.5
    """
    some = firsts[:STEADY]
    return sum(some) / len(some) - base
