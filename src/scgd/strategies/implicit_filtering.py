"""Implicit filtering: BFGS on differences that begin as wide as the length scale."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scgd.strategies.asks import point_of
from scgd.strategies.bfgs import BFGS
from scgd.strategies.box import Box
from scgd.typing import Floats

__all__ = ["ImplicitFiltering"]

NARROWER, NARROWEST = 0.25, 0.25**4
"""The factor of the radius when a line did not fall, and the radius that is the last."""


class ImplicitFiltering(BFGS):
    """BFGS on wide central differences, for steps, kinks and ripples (Kelley 2011).

    Differences over the length scale do not see what is smaller. When a line along them does not
    fall, they become narrower; a point of the differences that is lower than what the line found
    is taken instead.

    Parameters
    ----------
    x, f, s
        Where it starts, f there, and the length scale.
    box
        Where it may look.

    Attributes
    ----------
    radius
        Of the differences, in units of the length scale.
    """

    def __init__(self, x: Floats, f: float, s: float, box: Box | None = None) -> None:
        super().__init__(x, f, s, box=box)
        self.central, self.radius = True, 1.0
        self.lowest: tuple[float, Floats] = (np.inf, x)

    def _radius(self) -> float:
        return self.radius

    def _differentiate(self) -> Generator[Any, Any, Floats]:
        """Return the differences, and remember the lowest of their points."""
        asking = super()._differentiate()
        points = next(asking)
        values = yield points
        k = int(np.argmin(values))
        self.lowest = float(values[k]), point_of(points, k)
        try:
            asking.send(values)
        except StopIteration as end:
            gradient: Floats = end.value
        return gradient

    def _search_line(self, *line: Any) -> Generator[Any, Any, tuple[float, float, Floats]]:
        """Return the best of the line and of the points of the differences."""
        rate, value, x = yield from super()._search_line(*line)
        if self.lowest[0] < value:
            return 1.0, *self.lowest
        return rate, value, x

    def _widen(self) -> bool:
        """Look nearer where nothing is seen; tell whether that is worth it."""
        self.radius *= NARROWER
        return self.radius >= NARROWEST

    def _refuse(self) -> bool:
        """Look nearer after a line that did not fall; tell whether that was the end."""
        self._forget()
        self.first = True
        return not self._widen()
