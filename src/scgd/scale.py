"""A short search for the typical size of x when neither scale, bounds nor x0 tell it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scgd.auto.stage import Stage, moved
from scgd.estimators import Probes
from scgd.problem import Problem
from scgd.typing import Floats

__all__ = ["ScaleSearch"]

RANGE = 1e8
ROUNDS = (1, 1, 1, 1, 4)


class ScaleSearch(Stage):
    r"""Measure the length at which f stops being a straight line.

    Along random signs u, slope :math:`g = |f(x + hu) - f(x - hu)| / 2h` and curvature
    :math:`c = |f(x + hu) + f(x - hu) - 2 f(x)| / h^2` give the Newton length g / c, which does not
    change when f is scaled or shifted and follows when x is rescaled. After each round of directions
    h settles at a tenth of it; the last round measures. With ``repeat``, f(x) is taken twice with
    the same sample: if it differs, the noise is nobody's to control, differences of this size mean
    nothing, and the scale stays 1.

    Parameters
    ----------
    unit
        What a length of 1 means for each coordinate.
    rounds
        Directions per round.
    repeat
        Whether to test for noise.
    """

    memory: ClassVar[tuple[str, ...]] = (
        "h",
        "scale",
        "bend",
        "n_asked",
        "n_round",
        "slopes",
        "bends",
    )

    def __init__(
        self, unit: Floats, rounds: tuple[int, ...] = ROUNDS, *, repeat: bool = True
    ) -> None:
        self.unit = unit
        self.rounds = rounds
        self.repeat = repeat
        self.n_points = 4 if repeat else 3
        self.h = 1e-3
        self.scale = 1.0
        self.bend = 0.0
        self.n_asked = 0
        self.n_round = 0
        self.slopes: list[float] = []
        self.bends: list[float] = []

    @property
    def cost(self) -> int:
        """Evaluations of the whole search."""
        return self.n_points * sum(self.rounds)

    def probe(self, theta: Floats, problem: Problem, rng: np.random.Generator) -> Probes:
        """Return f(x), once or twice, and a pair of points along random signs."""
        moves = self.h * self.unit * (rng.integers(0, 2, theta.size) * 2.0 - 1.0)
        still = np.zeros((self.n_points - 2, theta.size))
        return moved(theta, np.vstack([still, moves, -moves]), problem)

    def learn(self, values: Floats | None) -> None:
        """Take the values of one direction; None when one was not finite."""
        self.n_asked += 1
        if values is None:
            self.h *= 1e-2
            self.slopes, self.bends = [], []
        else:
            if values[0] != values[-3]:
                self.finished = True
                self.scale = 1.0
                return
            base, up, down = values[-3:].tolist()
            self.slopes.append(abs(up - down) / (2.0 * self.h))
            self.bends.append(abs(up + down - 2.0 * base) / self.h**2)
        if self.n_asked == self.rounds[self.n_round]:
            self._end_round()

    def _end_round(self) -> None:
        slope, bend = (float(np.mean(seen)) if seen else 0.0 for seen in (self.slopes, self.bends))
        if slope > 0 and bend > 0:
            self.bend = bend
            self.scale = float(np.clip(slope / bend, 1 / RANGE, RANGE))
            self.h *= float(np.clip(0.1 * slope / bend / self.h, 1e-3, 1e3))
        elif self.slopes:
            self.h *= 1e2 if slope > 0 else 10.0
        self.n_asked, self.slopes, self.bends = 0, [], []
        self.n_round += 1
        self.finished = self.n_round == len(self.rounds)
