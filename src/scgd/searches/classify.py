"""Who controls the noise? Eight or nine evaluations tell, two where a repeat differs at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from scgd.estimators import random_signs
from scgd.problem import Problem
from scgd.questions import Point, Question, moved
from scgd.searches.base import Finding, Search
from scgd.typing import Floats

__all__ = ["Classify", "Noise"]

REACHES = (0.1, 0.01, 0.001)


@dataclass(frozen=True)
class Noise(Finding):
    """Whose the noise is: nobody's because there is none, the sample's, or nobody's to control.

    Parameters
    ----------
    kind
        Which of the three.
    """

    kind: Literal["deterministic", "controllable", "uncontrollable"]


class Classify(Search):
    r"""Tell apart deterministic, controllable and uncontrollable noise.

    At three points away from x0 (where a loss may be the same for all samples) f is evaluated twice
    with one sample and once with another (without samples not at the last of them: the evaluation
    pays for that of x0 before). A repeat that differs: the noise is nobody's to control. Else it is
    controllable where there are samples (which may agree by chance) and deterministic where there
    are none.

    Parameters
    ----------
    problem, point
        What is known, and where to look.
    rng
        Where directions come from.
    n_reaches
        Points to look at.
    sampled
        Whether the function takes samples.
    """

    name: ClassVar[str] = "classify"
    found: ClassVar[type[Finding]] = Noise
    memory: ClassVar[tuple[str, ...]] = ("signs", "first", "kind", "rng")

    def __init__(
        self,
        problem: Problem,
        point: Point,
        rng: np.random.Generator,
        n_reaches: int = 3,
        *,
        sampled: bool = False,
    ) -> None:
        super().__init__(point)
        self.problem, self.rng, self.n_reaches, self.sampled = problem, rng, n_reaches, sampled
        self.signs: Floats = np.zeros(problem.n_coords)
        self.first = float("nan")
        self.kind = "controllable" if sampled else "deterministic"

    @property
    def cost(self) -> int:
        """Evaluations of the next question."""
        return 2 - self.n_posed % 2

    def ask(self) -> Question:
        """Return a random point twice, then the same point with another sample."""
        if self.n_posed % 2 == 0:
            self.signs = random_signs(self.problem.n_coords, self.rng)
        moves = REACHES[self.n_posed // 2] * self.problem.unit * self.signs
        return moved(
            self.point, np.tile(moves, (self.cost, 1)), self.problem.lower, self.problem.upper,
            far=True,
        )  # fmt: skip

    def tell(self, question: Question, values: Floats) -> None:
        """Compare the values."""
        again = self.n_posed % 2 == 0
        self.finished = self.n_posed == 2 * self.n_reaches - (not self.sampled)
        if np.isnan(values).any():
            return
        if not again:
            self.first = float(values[0])
        reference = self.first if again else float(values[1])
        comparable = not (again and self.sampled) and reference == reference
        if comparable and values[0] != reference:
            self.kind, self.finished = "uncontrollable", True

    def finding(self) -> Noise:
        """Return whose the noise is."""
        return Noise(self.kind)  # type: ignore[arg-type]
