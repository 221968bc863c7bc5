"""What f is at x0, and beside it where the budget pays for little else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scgd.estimators import random_signs
from scgd.problem import Problem
from scgd.questions import Point, Question, here, moved
from scgd.searches.base import Finding, Search
from scgd.typing import Floats

__all__ = ["Start", "Started"]

REACH = 0.1
"""How far from x0 the other points lie, in units of the scale."""


@dataclass(frozen=True)
class Started(Finding):
    """F at x0.

    Parameters
    ----------
    value
        The value; NaN where it was lost.
    """

    value: float


class Start(Search):
    """Evaluate f at x0 and, of a pair of points beside it, none, one or both.

    Parameters
    ----------
    problem, point
        What is known, and where the run begins.
    rng
        Where the direction comes from.
    n_points
        Points to look at: 1 to 3.
    """

    name: ClassVar[str] = "start"
    found: ClassVar[type[Finding]] = Started
    memory: ClassVar[tuple[str, ...]] = ("value", "rng")

    def __init__(
        self, problem: Problem, point: Point, rng: np.random.Generator, n_points: int = 1
    ) -> None:
        super().__init__(point)
        self.problem, self.rng, self.n_points = problem, rng, n_points
        self.value = float("nan")

    @property
    def cost(self) -> int:
        """Evaluations of the next question."""
        return self.n_points - 1 if self.n_posed else 1

    def ask(self) -> Question:
        """Return x0, which must be sound; then the side with room to the bounds, and the other."""
        if not self.n_posed:
            return here(self.point, 1)
        problem, x = self.problem, self.point.x
        aside = REACH * problem.unit * random_signs(problem.n_coords, self.rng)
        if problem.lower.size:
            outside = (x + aside < problem.lower) | (x + aside > problem.upper)
            aside = np.where(outside, -aside, aside)
        moves = np.stack([aside, -aside])[: self.cost]
        return moved(self.point, moves, problem.lower, problem.upper, far=True)

    def tell(self, question: Question, values: Floats) -> None:
        """Keep the value at x0."""
        if self.n_posed == 1:
            self.value = float(values[0])
        self.finished = self.n_evals == self.n_points

    def finding(self) -> Started:
        """Return f at x0."""
        return Started(self.value)
