"""How small a difference of f still means something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scgd.estimators import random_signs
from scgd.problem import Problem
from scgd.questions import Point, Question, moved
from scgd.searches.base import Finding, Search
from scgd.typing import Floats

__all__ = ["Rounding", "RoundingError"]

N_POINTS = 8
SPACING = 1e-9


@dataclass(frozen=True)
class RoundingError(Finding):
    """The standard deviation of rounding errors of f.

    Parameters
    ----------
    error
        The error of a value.
    """

    error: float


class Rounding(Search):
    r"""Estimate the rounding error of f from third differences of values a hair apart.

    Over such a distance a smooth f is a straight line; what third differences see is rounding,
    whose variance they multiply by 20. Values that are all single-precision numbers set a floor.

    Parameters
    ----------
    problem, point
        What is known, and where to look.
    rng
        Where directions come from.
    length
        The length in which x is measured.
    """

    name: ClassVar[str] = "rounding"
    found: ClassVar[type[Finding]] = RoundingError
    memory: ClassVar[tuple[str, ...]] = ("error", "rng")

    def __init__(
        self, problem: Problem, point: Point, rng: np.random.Generator, length: Floats
    ) -> None:
        super().__init__(point)
        self.problem, self.rng, self.length, self.error = problem, rng, length, 0.0

    @property
    def cost(self) -> int:
        """Evaluations of the one question."""
        return N_POINTS

    def ask(self) -> Question:
        """Return equally spaced points on a short line near the point."""
        direction = self.length * random_signs(self.length.size, self.rng)
        places = 0.1 + SPACING * np.arange(N_POINTS, dtype=np.float64)
        moves = places[:, None] * direction
        return moved(self.point, moves, self.problem.lower, self.problem.upper, far=True)

    def tell(self, question: Question, values: Floats) -> None:
        """Take the third differences."""
        self.finished = True
        if np.isnan(values).any():
            return
        spread = float(np.sqrt(np.mean(np.diff(values, 3) ** 2) / 20))
        size = float(np.max(np.abs(values)))
        self.error = max(spread, 1e-16 * size)
        with np.errstate(over="ignore"):
            if np.array_equal(values.astype(np.float32), values):
                self.error = max(self.error, 3e-8 * size)

    def finding(self) -> RoundingError:
        """Return the error found."""
        return RoundingError(self.error)
