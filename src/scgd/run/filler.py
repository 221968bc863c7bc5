"""Work for a laboratory while its strategy waits for values: points around the best measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.checkpoint import decoded, encoded
from scgd.problem import Problem
from scgd.questions import EVERYWHERE, Point, Question, joint
from scgd.strategies.cross_entropy import cross_entropy, propose
from scgd.trials import Trials
from scgd.typing import Floats

__all__ = ["Filler"]

LANE = 2**30
"""Of its samples: beyond those of any strategy or engine."""
CHECK, FEW = 5, 8
"""Every fifth point is the centre, once there are values enough for one."""
REMEMBERED = 4
"""Values of the centre that tell how good it is: it moves on."""


class Filler:
    """Asks one point at a time; any number of them may be open.

    Parameters
    ----------
    problem
        Where to look.
    trials
        The table of all measurements; only read.
    rng
        Where points come from.
    """

    def __init__(self, problem: Problem, trials: Trials, rng: np.random.Generator) -> None:
        self.problem, self.trials, self.rng = problem, trials, rng
        self.point = Point(problem.x0)
        self.n_posed = self.n_evals = 0
        self.seen: list[float] = []

    def pose(self) -> Question:
        """Return a question of one point."""
        points, values = self.trials.known()
        check = len(values) >= FEW and self.n_posed % CHECK == 0
        if check:
            x = cross_entropy(self.problem, points, values)[0]
        else:
            x = propose(self.problem, points, values, self.rng, 1)
        if self.problem.space is not None:
            x = self.problem.space.grid.canonical(x[None])[0]
        question = joint(
            self.point, EVERYWHERE, x[None], base=x, far=True, role=int(check),
            sample=(self.n_posed, LANE),
        )  # fmt: skip
        self.n_posed += 1
        return question

    def take(self, question: Question, values: Floats) -> None:
        """Stand at the centre that was measured last."""
        self.n_evals += 1
        if question.role and np.isfinite(values[0]):
            self.seen = [*self.seen, float(values[0])][-REMEMBERED:]
            self.point.put(question.entries[0])

    @property
    def recommended(self) -> tuple[Floats, Floats]:
        """The centre, and what was seen at it."""
        return self.point.x, np.array(self.seen)

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        counts = {"n_posed": self.n_posed, "n_evals": self.n_evals}
        more = {"seen": encoded(self.seen), "x": self.point.x.copy(), "rng": encoded(self.rng)}
        return {**counts, **more}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another one."""
        self.n_posed, self.n_evals = int(state["n_posed"]), int(state["n_evals"])
        self.seen = state["seen"].tolist()
        self.point.put(state["x"])
        decoded(state["rng"], self.rng)
