"""Lines or BFGS down to the noise, where f is far above it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from scgd.problem import Problem
from scgd.questions import Point
from scgd.searches.arms.arm import Arm
from scgd.searches.arms.falling import KEPT
from scgd.searches.arms.grain import Grain
from scgd.searches.arms.lines import per_line, sweep_lines
from scgd.searches.arms.quasinewton import QuasiNewton
from scgd.searches.arms.structure import is_additive
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
SUM = 1e-2
"""The noise, in changes of f, up to which it shows whether f is a sum over coordinates."""


@dataclass(frozen=True)
class Slid(Finding):
    """Whether lines were searched, or BFGS went down as its slopes promised.

    Parameters
    ----------
    smoothly
        Whether one of them did.
    """

    smoothly: bool


class Slide(Told):
    """Let BFGS go down until noise drowns its slopes, or they turn out to mislead.

    Where f is a sum over coordinates, however badly scaled, lines are searched instead: parabolas
    are wide, so noise moves their minima little. Differences of BFGS are as wide as the noise asks
    (:class:`~scgd.searches.arms.grain.Grain`). On ripples slopes promise more than steps gain, or
    lead nowhere: then it is over after three steps.

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
        """Search lines where f is a sum over coordinates, or descend as long as that pays."""
        footing = self.footing
        self.lines: Arm | None = None
        s = KEPT * footing.radius * float(np.sqrt(x.size))
        grain = Grain(footing.deviation, KEPT * footing.signal * footing.deviation)
        self.newton = QuasiNewton(x, footing.base, s, box=self.box, grain=grain)
        if (yield from is_additive(x, footing.base, s, self.rng, self.box, grain, SUM)):
            yield from self._search_lines(x, s, grain)
        else:
            yield from self._descend()

    def _search_lines(self, x: Floats, s: float, grain: Grain) -> Generator[Any, Any, None]:
        """Put a parabola on each coordinate line, and search those where it did not tell f."""
        n, f = per_line(self.left, x.size), self.footing.base
        sweeps = sweep_lines(x, f, s, self.rng, n, np.zeros(x.size), self.box, grain, most=2)
        lines = self.lines = Arm(self, "lines", sweeps)
        lines.x, lines.best = x, f
        while self.left > 0 and not lines.over:
            yield from lines.run(1)

    def _descend(self) -> Generator[Any, Any, None]:
        descent, values = self.newton.run(), None
        while self.left > self.start.size and not self.misled:
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

    def _keep_best(self, k: int, value: float) -> None:
        """Nothing: the lowest of noisy values is the luckiest one."""

    def _tell_batch(self) -> None:
        """Go where lines or BFGS stand."""
        super()._tell_batch()
        x, self.best = self.newton.x, self.newton.f
        if self.lines is not None:
            x, self.best = self.lines.x, self.lines.best
        x = self.start if self.misled else x * self.problem.unit
        self.point.put(self.problem.clipped(x))

    @property
    def standing(self) -> Standing:
        """Where it stands, and the value that led there."""
        return Standing(self.point.x, np.array([self.best]))

    def finding(self) -> Slid:
        """Return whether it went as promised."""
        return Slid(not self.misled)
