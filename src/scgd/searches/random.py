"""Random search: a baseline, and the skeleton of a search of one's own."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scgd.problem import Problem
from scgd.questions import Point, Question, moved
from scgd.searches.base import Search, Standing
from scgd.typing import Floats

__all__ = ["RandomSearch"]


class RandomSearch(Search):
    """Look at Gaussian points around x0 (uniform ones where there are bounds) and keep the best.

    Parameters
    ----------
    problem
        Where to look.
    point
        Where to stand; moved to the best point seen.
    rng
        Where the points come from.
    """

    name: ClassVar[str] = "random search"
    memory: ClassVar[tuple[str, ...]] = ("value", "rng")
    sequential: ClassVar[bool] = False

    def __init__(self, problem: Problem, point: Point, rng: np.random.Generator) -> None:
        super().__init__(point)
        self.problem, self.rng, self.value = problem, rng, float("inf")

    def ask(self) -> Question:
        """Return x0 first, then a random point; any number of questions may be open."""
        p = self.problem
        first = self.n_posed == 0
        away = np.zeros(p.n_coords) if first else p.unit * self.rng.standard_normal(p.n_coords)
        if p.lower.size and not first and np.all(np.isfinite(p.upper - p.lower)):
            away = self.rng.uniform(p.lower, p.upper) - p.x0
        away += p.x0 - self.point.x
        return moved(self.point, away[None], p.lower, p.upper, far=not first)

    def tell(self, question: Question, values: Floats) -> None:
        """Go to the point if it is better."""
        if values[0] < self.value:
            self.value = float(values[0])
            self.point.put(question.entries[0])
        self.report(self.value)

    @property
    def standing(self) -> Standing:
        """The best point seen."""
        return Standing(self.point.x, np.array([self.value]))

    @property
    def level(self) -> float:
        """The best value seen."""
        return self.value
