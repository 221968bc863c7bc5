"""A short search for the typical size of x when neither scale, bounds nor x0 tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scgd.estimators import random_signs
from scgd.problem import Problem
from scgd.questions import EVERYWHERE, Point, Question, joint
from scgd.searches.arms.box import REACH
from scgd.searches.base import Finding, Search
from scgd.typing import Floats

__all__ = ["Length", "ScaleSearch"]

RANGE = 1e8
ROUNDS = (1, 1, 1, 1, 4)
ROUGH = 1.5
EPS, ULPS = float(np.finfo(float).eps), 8.0
"""Rounding, and how much of it a straight line may seem to bend by."""


@dataclass(frozen=True)
class Length(Finding):
    """The length at which f stops being a straight line, in units of the problem.

    Attributes
    ----------
    length, bend
        The length, and the curvature of f along random signs there.
    rough
        The radius below which f is rough; 0 where it is smooth.
    repeats
        Whether f was asked twice at the same points and gave the same values.
    value
        F at the point.
    """

    length: float
    bend: float
    rough: float
    repeats: bool = False
    value: float = float("nan")


class ScaleSearch(Search):
    r"""Measure the length at which f stops being a straight line.

    Along random signs u, slope :math:`g = |f(x + hu) - f(x - hu)| / 2h` and curvature
    :math:`c = |f(x + hu) + f(x - hu) - 2 f(x)| / h^2` give the Newton length g / c, which does not
    change when f is scaled or shifted and follows when x is rescaled. After each round of
    directions h settles at a tenth of it; the last round measures. Where g / c shrinks with h, f is
    rough (it jumps), and h goes outwards until it is not; below ``floor`` it is.
    With ``repeat``, f(x) is taken twice with the same sample: if it differs, the noise is nobody's
    to control, differences of this size mean nothing, and the scale stays 1.

    Parameters
    ----------
    problem, point
        What is known, and where to look.
    rng
        Where directions come from.
    rounds
        Directions per round.
    repeat
        Whether to test for noise.
    """

    name: ClassVar[str] = "scale"
    found: ClassVar[type[Finding]] = Length
    memory: ClassVar[tuple[str, ...]] = (
        "h", "scale", "bend", "n_asked", "n_round", "slopes", "bends", "floor", "widest",
        "repeats", "far", "value", "rng",
    )  # fmt: skip

    def __init__(
        self,
        problem: Problem,
        point: Point,
        rng: np.random.Generator,
        rounds: tuple[int, ...] = ROUNDS,
        *,
        repeat: bool = True,
    ) -> None:
        super().__init__(point)
        self.problem, self.rng, self.rounds = problem, rng, rounds
        self.n_points = 4 if repeat else 3
        self.h = 1e-3
        self.scale = 1.0
        self.bend = 0.0
        self.floor = 0.0
        self.widest = 0.0
        self.n_asked = 0
        self.n_round = 0
        self.repeats, self.far, self.value = False, 0.0, float("nan")
        self.slopes: list[float] = []
        self.bends: list[float] = []

    @property
    def cost(self) -> int:
        """Evaluations of the next question."""
        return self.n_points

    @property
    def total_cost(self) -> int:
        """Evaluations of the whole search."""
        return self.n_points * sum(self.rounds)

    def ask(self) -> Question:
        """Return f(x), once or twice, and a pair of points along random signs."""
        x, problem = self.point.x, self.problem
        self.far = max(self.far, self.h)
        centre, reach = problem.centred(x, self.h * problem.unit)
        moves = reach * random_signs(x.size, self.rng)
        entries = np.empty((self.n_points, x.size))
        entries[:-2] = centre
        np.add(centre, moves, out=entries[-2])
        np.subtract(centre, moves, out=entries[-1])
        return joint(self.point, EVERYWHERE, problem.clipped(entries), far=True)

    def tell(self, question: Question, values: Floats) -> None:
        """Take the values of one direction; a lost one tells that h was too large."""
        self.n_asked += 1
        if np.isnan(values).any():
            self.h *= 1e-2
            self.slopes, self.bends = [], []
        else:
            self.repeats, self.value = self.n_points == 4, float(values[0])
            if values[0] != values[-3]:
                self.finished, self.repeats = True, False
                self.scale = 1.0
                return
            base, up, down = values[-3:].tolist()
            self.slopes.append(abs(up - down) / (2.0 * self.h))
            self.bends.append(abs(up + down - 2.0 * base) / self.h**2)
        if self.n_asked == self.rounds[self.n_round]:
            self._end_round()

    def _end_round(self) -> None:
        slope, bend = (float(np.mean(seen)) if seen else 0.0 for seen in (self.slopes, self.bends))
        if bend * self.h**2 <= ULPS * EPS * abs(self.value):  # the bend of a straight line
            bend = 0.0
        if slope > 0 and bend > 0:
            self._settle(slope / bend, bend)
        elif self.slopes:
            self.h *= 1e2 if slope > 0 else 10.0
        self.h = min(self.h, REACH)
        self.n_asked, self.slopes, self.bends = 0, [], []
        self.n_round += 1
        self.finished = self.n_round == len(self.rounds)

    def _settle(self, length: float, bend: float) -> None:
        """Take a measured length; move h to a tenth of it, or outwards where f is rough."""
        rough = length < ROUGH * self.h
        if rough and self.h < self.widest:  # as rough nearer by: jumps, not curvature
            self.floor = max(self.floor, self.widest)
            self.h = 30.0 * self.floor
        else:
            self.widest = self.h if rough else 0.0
            self.h *= float(np.clip(0.1 * length / self.h, 1e-3, 1e3))
            self.h = max(self.h, 3.0 * self.floor)
        if not rough or self.bend == 0.0:
            self.bend = bend
            self.scale = float(np.clip(length, 1 / RANGE, RANGE))

    @property
    def farthest(self) -> float:
        """How far from the point it has looked."""
        return self.far

    def finding(self) -> Length:
        """Return the length found."""
        return Length(
            self.scale, self.bend, self.h if self.floor > 0 else 0.0, self.repeats, self.value
        )
