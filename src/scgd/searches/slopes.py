"""Few evaluations and the user's derivatives: BFGS at once, without measuring first."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

import numpy as np

from scgd.problem import Problem
from scgd.questions import Point
from scgd.searches.arms.quasinewton import QuasiNewton
from scgd.searches.base import Relevance
from scgd.searches.told import Told
from scgd.typing import Floats

__all__ = ["Slopes"]

REACH = 0.1
"""The first step of each coordinate, in units of its scale: the line search finds what is right."""

SURE, WORTH = 5, 0.1
"""Steps that tell whether slopes can be trusted, and the part of what they promise that tells it:
on a parabola a step to its minimum gains half."""


class Slopes(Told):
    """Follow derivatives down by BFGS; every step is to a lower value, whatever they say.

    It is over where nothing is left to gain, or where steps gain little of what slopes promise. A
    length scale and who leads a race take some 25 evaluations to measure, as many as a dozen
    steps.

    Parameters
    ----------
    problem, point
        What is known, and where to begin.
    seed
        Seed of its generator.
    budget
        Evaluations to plan for.
    value
        F at the point.
    """

    name: ClassVar[str] = "slopes"

    def __init__(
        self,
        problem: Problem,
        point: Point,
        seed: np.random.SeedSequence,
        budget: int,
        value: float,
    ) -> None:
        self.value = value
        super().__init__(problem, point, seed, budget, partials=True)

    def tell_story(self, x: Floats) -> Generator[Any, Any, None]:
        """Descend until nothing is left to gain."""
        self.best, self.doing = self.value, self.name
        s = REACH * float(np.sqrt(x.size))
        self.newton = QuasiNewton(x, self.value, s, box=self.box, partials=True)
        descent, values = self.newton.run(), None
        while not self.misled:
            try:
                asked = descent.send(values)
            except StopIteration:
                return
            self.doing = self.name
            values = yield asked

    @property
    def misled(self) -> bool:
        """Whether the last steps gained hardly anything of what slopes promised."""
        last = self.newton.agreement[-SURE:]
        return len(last) == SURE and float(np.median(last)) < WORTH

    @property
    def relevance(self) -> Relevance | None:
        """How slopes are shared among coordinates."""
        return self.newton.relevance()

    @property
    def weights(self) -> Floats | None:
        """The shares."""
        return None if self.relevance is None else self.relevance[0]
