"""BFGS down to the noise, where f is far above it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from scgd.problem import Problem
from scgd.questions import Point
from scgd.searches.arms.falling import KEPT
from scgd.searches.arms.grain import Grain
from scgd.searches.arms.quasinewton import QuasiNewton
from scgd.searches.base import Finding, Standing
from scgd.searches.ladder import Footing
from scgd.searches.told import Told
from scgd.typing import Floats

__all__ = ["Slid", "Slide"]

SURE, HALF = 3, 0.35
"""Steps that are judged, and the part of what slopes promised that they must gain: it is a half at
the minimum of a parabola."""
NOWHERE = 0.5
"""How far they must lead, in units of the length scale."""


@dataclass(frozen=True)
class Slid(Finding):
    """Whether BFGS went down as its slopes promised.

    Parameters
    ----------
    smoothly
        Whether it did.
    """

    smoothly: bool


class Slide(Told):
    """Let BFGS go down until noise drowns its slopes, or they turn out to mislead.

    Differences are as wide as the noise asks (:class:`~scgd.searches.arms.grain.Grain`). On ripples
    slopes promise more than steps gain, or lead nowhere: then it is over after three steps.

    Parameters
    ----------
    problem, point
        What is known, and where to begin.
    seed
        Seed of its generator.
    budget
        Evaluations to plan for.
    footing
        What a ladder found here.
    """

    name: ClassVar[str] = "slide"
    found: ClassVar[type[Finding]] = Slid

    def __init__(
        self,
        problem: Problem,
        point: Point,
        seed: np.random.SeedSequence,
        budget: int,
        footing: Footing,
    ) -> None:
        self.footing = footing
        super().__init__(problem, point, seed, budget)

    def tell_story(self, x: Floats) -> Generator[Any, Any, None]:
        """Descend as long as that goes as promised."""
        footing = self.footing
        s = KEPT * footing.radius * float(np.sqrt(x.size))
        grain = Grain(footing.deviation, KEPT * footing.signal * footing.deviation)
        self.newton = QuasiNewton(x, footing.base, s, box=self.box, grain=grain)
        descent, values = self.newton.run(), None
        while self.left > x.size and not self.misled:
            try:
                asked = descent.send(values)
            except StopIteration:
                return
            self.doing = self.name
            values = yield asked

    @property
    def misled(self) -> bool:
        """Whether slopes promise too much, or lead nowhere."""
        newton = self.newton
        if len(newton.agreement) < SURE:
            return False
        moved = float(np.linalg.norm(newton.x - self.start / self.problem.unit))
        gained = float(np.median(newton.agreement))
        return gained < HALF or moved < NOWHERE * newton.s

    def _keep_best(self) -> None:
        """Nothing: the lowest of noisy values is the luckiest one."""

    def _tell_batch(self) -> None:
        """Go where BFGS stands."""
        super()._tell_batch()
        self.best = self.newton.f
        x = self.start if self.misled else self.newton.x * self.problem.unit
        self.point.put(self.problem.clipped(x))

    @property
    def standing(self) -> Standing:
        """Where BFGS stands, and the value that led there."""
        return Standing(self.point.x, np.array([self.best]))

    def finding(self) -> Slid:
        """Return whether it went as promised."""
        return Slid(not self.misled)
