"""Work for a laboratory while its strategy waits for values: points around the best measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.checkpoint import state_of, take_up
from scgd.problem import Problem
from scgd.questions import EVERYWHERE, Point, Question, joint
from scgd.strategies.cross_entropy import FEW, cross_entropy
from scgd.trials import Trials
from scgd.typing import Floats

OWNER = 2**30
"""Of its samples: beyond those of any strategy or engine."""
CHECK = 5
"""Every fifth point is the centre, where it is a new one."""
GROWTH = 0.01
"""A centre lasts until there are so many more values: what it costs grows with their number."""
STATE = ("n_asked", "n_evals", "n_fitted", "n_checked", "centre", "spread", "seen", "rng")
REMEMBERED = 4
"""Values of the centre that tell how good it is: it moves on."""


class Filler:
    """Asks one point at a time; any number of them may be open.

    Points are drawn from the normal distribution that the best measurements tell of
    (:func:`~scgd.strategies.cross_entropy.cross_entropy`); every fifth is its centre. Over a search
    space, and where bounds are finite and the model is cheap, a Gaussian process proposes instead
    (:func:`~scgd.strategies.gaussian_process.propose_by_model`).

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
        self.centre, self.spread = problem.x0.copy(), problem.unit.copy()
        self.n_asked = self.n_evals = 0
        self.n_fitted, self.n_checked = -1, 0  # values when the centre was found, and last asked
        self.seen: list[float] = []

    def ask(self) -> Question:
        """Return a question of one point."""
        from scgd.strategies.gaussian_process import models, propose_by_model

        n = self.trials.n_known
        if n > (1 + GROWTH) * self.n_fitted:
            found = cross_entropy(self.problem, *self.trials.known())
            self.centre[...], self.spread[...] = found
            self.n_fitted = n
        check = n >= FEW and self.n_asked % CHECK == 0 and self.n_fitted > self.n_checked
        if check:
            x, self.n_checked = self.centre.copy(), self.n_fitted
        elif n and models(self.problem.lower, self.problem.upper, n):
            x = propose_by_model(self.problem, *self.trials.known(), self.rng)
        else:
            x = self.centre + self.spread * self.rng.standard_normal(self.centre.size)
            x = self.problem.clipped(x)
        if self.problem.space is not None:
            x = self.problem.space.grid.canonical(x[None])[0]
        question = joint(
            self.point, EVERYWHERE, x[None], may_fail=True, role=int(check),
            sample=(self.n_asked, OWNER),
        )  # fmt: skip
        self.n_asked += 1
        return question

    def tell(self, question: Question, values: Floats) -> None:
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
        return {**state_of(self, STATE), "x": self.point.x.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another one."""
        take_up(self, STATE, state)
        self.point.put(state["x"])
