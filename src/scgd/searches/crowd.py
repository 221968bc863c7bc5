"""A population that goes by ranks, where noise hides every slope."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

import numpy as np

from scgd.problem import Problem
from scgd.questions import Point
from scgd.searches.arms.contest import FULL
from scgd.searches.arms.population import NARROWEST, Population
from scgd.searches.base import Standing
from scgd.searches.told import Told
from scgd.typing import Floats

__all__ = ["Crowd"]


class Crowd(Told):
    """Let one population (CMA-ES) go down by ranks, until it is over or the budget is spent.

    For functions that show neither slope nor bend at any distance, such as returns of episodes
    that depend on the weights of a policy in jumps: a mean of differences learns little there,
    while the better half of a generation leads on. The point is the mean of the population, never
    the luckiest one.

    Parameters
    ----------
    problem, point
        What is known, and where to begin.
    seed
        Seed of its generator.
    budget
        Evaluations to plan for, those of a generation at least.
    radius
        How wide the population is at first, in units of x.
    """

    name: ClassVar[str] = "population"

    def __init__(
        self,
        problem: Problem,
        point: Point,
        seed: np.random.SeedSequence,
        budget: int,
        radius: float,
    ) -> None:
        self.radius = radius
        self.seen: Floats = np.empty(0)
        super().__init__(problem, point, seed, budget)

    def tell_story(self, x: Floats) -> Generator[Any, Any, None]:
        """Yield generations, as long as a whole one can be paid."""
        self.crowd = crowd = Population(x, self.radius, self.rng, diagonal=x.size > FULL)
        while self.left >= crowd.size:
            normal, steps = crowd.sample()
            self.doing = self.name
            values = yield self.box.reflect(crowd.mean + crowd.sigma * steps)
            crowd.learn(normal, steps, values)
            if crowd.over(values, NARROWEST):
                return

    def _keep_best(self, k: int, value: float) -> None:
        """Nothing: the lowest of noisy values is the luckiest one."""

    def _tell_batch(self) -> None:
        """Go where the generation leads to; its median is what that point is worth."""
        self.seen = self.values[np.isfinite(self.values)]
        self.best = float(np.median(self.values))
        super()._tell_batch()
        mean = self.box.reflect(self.crowd.mean) * self.problem.unit
        self.point.put(self.problem.clipped(mean))

    def report(self, value: float) -> None:
        """Note what was seen, once a generation is complete."""
        if np.isfinite(value):
            super().report(value)

    @property
    def standing(self) -> Standing:
        """The mean of the population, and its last generation."""
        return Standing(self.point.x, self.seen)
