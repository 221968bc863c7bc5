"""What f is where we are."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scgd.questions import Point, Question, here
from scgd.searches.base import Search, Standing
from scgd.typing import Floats

__all__ = ["Watch"]


class Watch(Search):
    """Evaluate f at the point so many times, each with a sample of its own.

    Parameters
    ----------
    point
        Where the run stands.
    n_values
        How often to evaluate.
    """

    name: ClassVar[str] = "watch"
    memory: ClassVar[tuple[str, ...]] = ("values",)
    sequential: ClassVar[bool] = False

    def __init__(self, point: Point, n_values: int) -> None:
        super().__init__(point)
        self.n_values = n_values
        self.values: list[float] = []
        self.finished = n_values < 1

    def ask(self) -> Question | None:
        """Return the point itself; all of the questions may be open."""
        return None if self.n_posed == self.n_values else here(self.point, 1)

    def tell(self, question: Question, values: Floats) -> None:
        """Keep the value."""
        self.values.append(float(values[0]))
        self.finished = len(self.values) == self.n_values
        if self.finished:
            self.report(self.mean)

    @property
    def mean(self) -> float:
        """The mean of the values that were not lost."""
        seen = [value for value in self.values if value == value]
        return sum(seen) / len(seen) if seen else float("nan")

    @property
    def level(self) -> float:
        """The mean, once all values are there."""
        return self.mean if self.finished else float("nan")

    @property
    def standing(self) -> Standing:
        """The point and what was seen of it."""
        return Standing(self.point.x, np.array(self.values))
