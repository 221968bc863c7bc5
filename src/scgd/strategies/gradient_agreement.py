"""Compare what gradients promise with what f does over the length scale: trend or ripples."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scgd.strategies.bfgs import WALL
from scgd.strategies.box import Box
from scgd.typing import Floats

SMOOTH = 0.9
"""Agreement from which slopes tell the trend: half of it or half as much more costs a tenth."""
CLEAR, LEVEL = 0.985, 1.3
"""Agreement and steepness of a bowl without ripples, which few directions do not mistake."""
STEEP = 2.5
"""How much steeper than the trend slopes are those of ripples: a parabola over whose length f falls
by a third is half as steep again."""


@dataclass(frozen=True)
class Trend:
    """How slopes agree with differences over the length scale.

    Parameters
    ----------
    agreement
        The cosine of what slopes promised and what was seen: 1 where f is smooth over the length,
        about 0 where slopes are those of ripples, or where there are none.
    steepness
        How much steeper slopes are than the trend.
    walled
        Whether f failed or rose like a wall within the length.

    Examples
    --------
    >>> Trend.of(np.array([1.0, 2.0]), np.array([2.0, 4.0])).smooth
    True
    >>> flat = Trend.of(np.zeros(2), np.array([2.0, 4.0]))
    >>> flat.smooth, flat.flat
    (False, True)
    """

    agreement: float
    steepness: float
    walled: bool = False

    @classmethod
    def of(cls, promised: Floats, seen: Floats) -> Trend:
        """Return the trend from the changes that slopes promised and those seen."""
        most = float(np.abs(promised).max(initial=0.0)), float(np.abs(seen).max(initial=0.0))
        if most[0] == 0 or most[1] == 0:
            return cls(0.0, np.inf if most[0] > 0 else 0.0)
        promised, seen = promised / most[0], seen / most[1]  # squares do not overflow
        sizes = float(np.linalg.norm(promised)), float(np.linalg.norm(seen))
        agreement = float(promised @ seen) / (sizes[0] * sizes[1])
        return cls(agreement, most[0] / most[1] * sizes[0] / sizes[1])

    @property
    def smooth(self) -> bool:
        """Whether slopes tell the trend."""
        return self.agreement >= SMOOTH and self.steepness <= STEEP

    @property
    def clear(self) -> bool:
        """Whether f has no ripples at all."""
        return self.agreement >= CLEAR and self.steepness <= LEVEL

    @property
    def flat(self) -> bool:
        """Whether there are no slopes: f is made of steps."""
        return self.steepness == 0


def follow_slopes(
    x: Floats, gradient: Floats, s: float, rng: np.random.Generator, n: int, box: Box
) -> Generator[Any, Any, Trend]:
    """Return how a gradient at x agrees with f over the length s, along n random directions."""
    promised, seen = np.empty((2, n))
    for i in range(n):
        step = rng.standard_normal(x.size)
        step *= s / float(np.linalg.norm(step))
        up, down = box.clip(x + step), box.clip(x - step)
        promised[i] = gradient @ (up - down)
        seen[i] = (yield up) - (yield down)
    sound = np.isfinite(seen) & np.isfinite(promised)
    rise = WALL * float(np.abs(promised[sound]).max(initial=0.0))
    walled = not sound.all() or (rise > 0 and bool(np.any(np.abs(seen) > rise)))
    return replace(Trend.of(promised[sound], seen[sound]), walled=walled)
