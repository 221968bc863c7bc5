"""How small a difference of f still means something."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scgd.auto.stage import Stage, moved
from scgd.estimators import Probes
from scgd.problem import Problem
from scgd.typing import Floats

__all__ = ["Rounding"]

N_POINTS = 8
SPACING = 1e-9


class Rounding(Stage):
    r"""Estimate the rounding error of f from third differences of values a hair apart.

    Over such a distance a smooth f is a straight line; what third differences see is rounding,
    whose variance they multiply by 20. Values that are all single-precision numbers set a floor.
    """

    memory: ClassVar[tuple[str, ...]] = ("error",)
    n_points = N_POINTS

    def __init__(self, length: Floats) -> None:
        self.length = length
        self.error = 0.0

    def probe(self, theta: Floats, problem: Problem, rng: np.random.Generator) -> Probes:
        """Return equally spaced points on a short line near theta."""
        direction = self.length * (rng.integers(0, 2, theta.size) * 2.0 - 1.0)
        places = 0.1 + SPACING * np.arange(N_POINTS, dtype=np.float64)
        return moved(theta, places[:, None] * direction, problem)

    def learn(self, values: Floats | None) -> None:
        """Take the third differences."""
        self.finished = True
        if values is None:
            return
        spread = float(np.sqrt(np.mean(np.diff(values, 3) ** 2) / 20))
        size = float(np.max(np.abs(values)))
        self.error = max(spread, 1e-16 * size)
        with np.errstate(over="ignore"):
            if np.array_equal(values.astype(np.float32), values):
                self.error = max(self.error, 3e-8 * size)
