"""Who controls the noise? Nine evaluations tell."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scgd.auto.stage import Stage, moved
from scgd.estimators import Probes
from scgd.problem import Problem
from scgd.typing import Floats

__all__ = ["Classify"]

REACHES = (0.1, 0.01, 0.001)


class Classify(Stage):
    r"""Tell apart deterministic, controllable and uncontrollable noise.

    At three points away from x0 (where a loss may be the same for all samples) f is evaluated twice
    with one sample and once with another. A repeat that differs: the noise is nobody's to control.
    Else it is controllable where there are samples (which may agree by chance) and deterministic
    where there are none.

    Parameters
    ----------
    unit
        What a length of 1 means for each coordinate.
    n_reaches
        Points to look at.
    sampled
        Whether the function takes samples.
    """

    memory: ClassVar[tuple[str, ...]] = ("n_asked", "signs", "first", "kind")

    def __init__(self, unit: Floats, n_reaches: int = 3, *, sampled: bool = False) -> None:
        self.unit, self.n_reaches, self.sampled = unit, n_reaches, sampled
        self.n_asked = 0
        self.signs: Floats = np.zeros(unit.size)
        self.first = float("nan")
        self.kind = "controllable" if sampled else "deterministic"

    @property
    def n_points(self) -> int:  # type: ignore[override]
        """Evaluations of the next question."""
        return 2 - self.n_asked % 2

    def probe(self, theta: Floats, problem: Problem, rng: np.random.Generator) -> Probes:
        """Return a random point twice, then the same point with another sample."""
        if self.n_asked % 2 == 0:
            self.signs = np.asarray(rng.integers(0, 2, theta.size) * 2.0 - 1.0, np.float64)
        moves = REACHES[self.n_asked // 2] * self.unit * self.signs
        return moved(theta, np.tile(moves, (self.n_points, 1)), problem)

    def learn(self, values: Floats | None) -> None:
        """Compare the values."""
        if values is not None and self.n_asked % 2 == 0:
            self.first = float(values[0])
            if values[0] != values[1]:
                self.kind = "uncontrollable"
        elif values is not None and not self.sampled and values[0] != self.first == self.first:
            self.kind = "uncontrollable"
        self.n_asked += 1
        self.finished = self.n_asked == 2 * self.n_reaches
