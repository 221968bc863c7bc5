"""How far does f fall? The length that everything else is measured in."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scgd.searches.arms.box import Box
from scgd.typing import Floats

__all__ = ["falling_length"]

FEW = 400
"""Evaluations below which fewer directions are looked at."""
BRIEF = 160
"""Evaluations below which the widest decade along one direction must do."""
FACTOR, TRIES = 2.2, 5
KEPT = 0.35
WIDEST = 0.4
"""The part of the width of the box that the length may be: beyond, walls cut what is looked at."""
NEAR, FAR = 9.0, 11.0
"""Units beyond which only a fall leads on, and at which the search from other directions ends."""


class Fall:
    """Looks along directions from one point, and remembers the best."""

    def __init__(self, x: Floats, f: float, rng: np.random.Generator, box: Box) -> None:
        self.x, self.f, self.rng, self.box = x, f, rng, box
        self.best, self.value = x, f

    def direction(self) -> Floats:
        """Draw a unit vector."""
        d = self.rng.standard_normal(self.x.size)
        return np.asarray(d / np.linalg.norm(d))

    def falls(self, h: float, d: Floats) -> Generator[Any, Any, float]:
        """Return how far along d f falls, one way or the other, or 0; h unless a wall is nearer."""
        for sign in (1.0, -1.0):
            point = self.box.clip(self.x + sign * h * d)
            value = yield point
            if value < self.value:
                self.best, self.value = point, value
            if value < self.f - 1e-12 * abs(self.f):
                return min(h, float(np.linalg.norm(point - self.x)))
        return 0.0

    def widest(self, decades: Floats) -> Generator[Any, Any, float]:
        """Return the widest of some distances at which f falls along a random direction, or 0.

        From the first one beyond :data:`NEAR` outwards while f falls, else inwards.
        """
        d, found = self.direction(), 0.0
        for h in decades[decades >= NEAR].tolist():
            if not (fell := (yield from self.falls(h, d))):
                break
            found = fell
        for h in reversed(decades[decades < NEAR].tolist()):
            found = found or (yield from self.falls(h, d))
        return found

    def farthest(self, h: float) -> Generator[Any, Any, float]:
        """Return the largest distance near h at which f falls along a random direction, or 0."""
        d = self.direction()
        if found := (yield from self.falls(h, d)):
            for _ in range(TRIES):
                h *= FACTOR
                if not (fell := (yield from self.falls(h, d))) > found:
                    break
                found = fell
            return found
        for _ in range(TRIES):
            h /= FACTOR
            if found := (yield from self.falls(h, d)):
                return found
        return found


def falling_length(
    x: Floats, f: float, budget: int, rng: np.random.Generator, box: Box | None = None
) -> Generator[Any, Any, tuple[float, Floats, float]]:
    """Return a length scale, and the best point seen with its value.

    Decades are tried along one direction, farther out along others; around the largest one at
    which f falls, some directions tell how far it does. The length is about a third of their
    root mean square, and not much of the width of the box.
    """
    box = box or Box.around(x)
    fall, few = Fall(x, f, rng, box), budget < FEW
    decades: Floats = 10.0 ** np.arange(*((-3.0, 3.0) if few else (-6.0, 5.0)))
    found = yield from fall.widest(decades)
    if budget < BRIEF:
        return min(KEPT * (found or 0.1), WIDEST * box.width), fall.best, fall.value
    for _ in range(1 if few else 3):
        d, start = fall.direction(), found or float(decades[0])
        for h in decades[(decades > 1.5 * start) & (decades <= min(1.1e4 * start, FAR))].tolist():
            found = max(found, (yield from fall.falls(h, d)))
    start = found or 0.1
    lengths = []
    for _ in range(1 if few else 4):
        lengths.append((yield from fall.farthest(start)))
    seen = np.array([length for length in lengths if length > 0])
    length = float(np.sqrt(np.mean(seen**2))) if seen.size else start
    return min(KEPT * length, WIDEST * box.width), fall.best, fall.value
