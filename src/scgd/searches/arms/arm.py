"""One member of a race."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.searches.arms.ending import Ending
from scgd.searches.arms.spread import Partials, point_of
from scgd.typing import Floats

if TYPE_CHECKING:
    from scgd.searches.told import Told

__all__ = ["Arm", "Telling"]

Telling = Generator[Any, Any, Any]
"""Yields points and is sent their values."""


class Arm:
    """One member of a race: a generator, its name, and what it has reached.

    Parameters
    ----------
    owner
        Whose race it is: its books are kept.
    name
        What the books call it.
    telling
        Yields points and is sent their values.

    Attributes
    ----------
    best, x
        The lowest value it has seen, and where.
    n, over
        Its evaluations, and whether it has ended.
    values
        The last it was sent.
    """

    def __init__(self, owner: Told, name: str, telling: Telling) -> None:
        self.owner, self.name, self.telling = owner, name, telling
        self.best = float("inf")
        self.x: Floats = np.empty(0)
        self.n = 0
        self.over = False
        self.asked: Any = None
        self.values: Any = None

    def run(self, n: int, ending: Ending | None = None) -> Telling:
        """Let it use about n evaluations; a generation or a gradient is not cut."""
        end = self.n + n
        while self.n < end and not self.over and not (ending is not None and ending.over):
            try:
                if self.asked is None:
                    self.asked = next(self.telling)
                points, self.owner.doing = self.asked, self.name
                values = yield points
                self._note(points, values)
                self.asked = self.telling.send(values)
            except StopIteration:
                self.over = True

    def _note(self, points: Any, values: Any) -> None:
        if isinstance(points, Partials):
            self.n += 1
            return
        self.values = values
        alone = isinstance(values, float)
        self.n += 1 if alone else len(values)
        k = 0 if alone else int(values.argmin())
        lowest = values if alone else float(values[k])
        if lowest < self.best:
            self.best, self.x = lowest, point_of(points, k)
