"""Does f repeat itself? Four evaluations tell, or three."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scgd.estimators import random_signs
from scgd.problem import Problem
from scgd.questions import Point, Question, moved
from scgd.searches.base import Finding, Search
from scgd.typing import Floats

__all__ = ["Repeat", "Repeats"]

REACH = 0.1
"""How far from x0 the second place lies, in units of the scale: noise may vanish at x0 itself."""


@dataclass(frozen=True)
class Repeats(Finding):
    """Whether f gave the same value twice, at x0 and beside it; and its values.

    Parameters
    ----------
    same
        Whether the values came again.
    value, beside
        The value at x0, and beside it.
    """

    same: bool
    value: float
    beside: float = float("nan")


class Repeat(Search):
    """Evaluate f twice at x0 and twice beside it; of fewer evaluations one is at x0.

    One value of a place tells nothing, and f is taken to repeat itself.

    Parameters
    ----------
    problem, point
        What is known, and where to look.
    rng
        Where the direction comes from.
    n_values
        Evaluations: 1 to 4.
    """

    name: ClassVar[str] = "repeat"
    found: ClassVar[type[Finding]] = Repeats
    memory: ClassVar[tuple[str, ...]] = ("same", "value", "beside", "rng")

    def __init__(
        self, problem: Problem, point: Point, rng: np.random.Generator, n_values: int = 4
    ) -> None:
        super().__init__(point)
        self.problem, self.rng, self.same, self.value = problem, rng, False, float("nan")
        self.beside = float("nan")
        self.n_values, self.n_here = n_values, max(1, n_values - 2)

    @property
    def cost(self) -> int:
        """Evaluations of its one question."""
        return self.n_values

    def ask(self) -> Question:
        """Return x0, then the place beside it."""
        signs = random_signs(self.problem.n_coords, self.rng)
        moves = np.zeros((self.n_values, self.problem.n_coords))
        moves[self.n_here :] = REACH * self.problem.unit * signs
        return moved(self.point, moves, self.problem.lower, self.problem.upper, far=True)

    def tell(self, question: Question, values: Floats) -> None:
        """Compare; a value that is lost every time repeats itself too."""
        here, beside = values[: self.n_here], values[self.n_here :]
        self.same = all(
            np.array_equal(seen[1:], seen[:-1], equal_nan=True) for seen in (here, beside)
        )
        self.value, self.finished = float(values[0]), True
        self.beside = float(beside[0]) if len(beside) else self.beside

    def finding(self) -> Repeats:
        """Return whether f repeats itself."""
        return Repeats(self.same, self.value, self.beside)
