"""Is the new point better than the old one? Ask both, with the same samples."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scgd.auto.stage import Stage, joint
from scgd.estimators import Probes
from scgd.problem import Problem
from scgd.typing import Floats

__all__ = ["Judge"]


class Judge(Stage):
    r"""Compare theta with a reference point on so many common samples.

    ``mean`` and ``error`` are those of the differences f(theta) - f(reference), paired where the
    sample can be held fixed.
    """

    memory: ClassVar[tuple[str, ...]] = ("here", "there", "broken")
    n_points = 2

    def __init__(self, reference: Floats, n_samples: int) -> None:
        self.reference = reference
        self.n_samples = n_samples
        self.here: list[float] = []
        self.there: list[float] = []
        self.broken = 0

    def probe(self, theta: Floats, problem: Problem, rng: np.random.Generator) -> Probes:
        """Return theta and the reference."""
        everywhere = np.arange(theta.size)
        return joint(theta, everywhere, np.stack([theta, self.reference]), problem)

    def learn(self, values: Floats | None) -> None:
        """Take a pair of values."""
        if values is None:
            self.broken += 1
        else:
            self.here.append(float(values[0]))
            self.there.append(float(values[1]))
        self.finished = len(self.here) + self.broken >= self.n_samples

    @property
    def mean(self) -> float:
        """The mean difference; infinite when most pairs had values that are not finite."""
        if self.broken >= max(1, len(self.here)):
            return float("inf")
        return float(np.mean(np.subtract(self.here, self.there)))

    @property
    def error(self) -> float:
        """The standard error of the mean difference."""
        differences = np.subtract(self.here, self.there)
        if len(differences) < 2:
            return 0.0
        return float(np.std(differences, ddof=1) / np.sqrt(len(differences)))
