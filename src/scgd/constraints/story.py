"""The story of a constrained run: rounds of any method on the augmented Lagrangian."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from scgd.constraints.merit import Merit
from scgd.constraints.newton import Newton, affordable, newton_share
from scgd.plans.base import Ground, Plan, Story, Telling
from scgd.problem import Problem
from scgd.questions import Point, Question, here, moved
from scgd.searches import Finding, Search, Standing
from scgd.typing import Floats

__all__ = ["Look", "Probe", "Round", "constrained"]

N_PROBES = 8
PROBE = 0.1
"""Length of the first steps, in units of the scale."""
MOST_ROUNDS, PER_ROUND = 15, 40
"""Rounds, and evaluations per coordinate that one should have."""
LANES = 10_000
"""Lanes of samples that a round may use."""


def constrained(inner: Story, merit: Merit) -> Story:
    """Return the story of a method under constraints."""

    def story(ground: Ground) -> Telling:
        for name, array in merit.arrays.items():
            ground.hold(name, array)
        p = ground.problem.n_coords
        yield Probe(ground.problem, ground.point, ground.rng(), merit)
        n_rounds = int(np.clip(ground.budget // (PER_ROUND * p), 3, MOST_ROUNDS))
        n_rounds = n_rounds if len(merit.equal) else 1  # a projection has nothing to learn
        smooth = bool(len(merit.equal)) and merit.constraints.polyhedron is None
        k = n_newton = 0
        while True:
            n_look = n_repeats(ground.budget)
            share = ground.room // max(1, n_rounds - k) - n_look
            yield Round(inner, ground, merit, k, max(p + 5, share))
            looked = yield Look(ground.point, merit, n_look)
            share = min(
                ground.room // 2, ground.budget // 2 - n_newton, newton_share(p, ground.budget)
            )
            if looked.repeats and smooth and affordable(p, share):
                spent = ground.spent
                yield Newton(ground.problem, ground.point, merit, share, turns=k % 2 == 1)
                n_newton += ground.spent - spent
            k += 1

    return story


def n_repeats(budget: int) -> int:
    """Return how often a round's answer is measured."""
    return int(np.clip(budget // 500, 2, 16))


class Probe(Search):
    """Look at the start and around it: how much do f and the constraints change."""

    name: ClassVar[str] = "constraints"
    memory: ClassVar[tuple[str, ...]] = ("rng",)

    def __init__(
        self, problem: Problem, point: Point, rng: np.random.Generator, merit: Merit
    ) -> None:
        super().__init__(point)
        self.problem, self.rng, self.merit = problem, rng, merit

    @property
    def cost(self) -> int:
        """All at once."""
        return N_PROBES + 1

    def ask(self) -> Question:
        """Return x0 and random steps from there."""
        p = self.problem
        away = PROBE * p.unit * self.rng.choice([-1.0, 1.0], (N_PROBES + 1, p.n_coords))
        away[0] = 0.0
        return moved(self.point, away, p.lower, p.upper, far=True)

    def tell(self, question: Question, values: Floats) -> None:
        """Choose the weights."""
        self.merit.begin(question.entries[1:] - question.entries[0])
        self.finished = True


@dataclass(frozen=True)
class Looked(Finding):
    """Whether all measurements at one point were the same."""

    repeats: bool


class Look(Search):
    """Measure where a round ended, each time with a sample of its own; learn the multipliers."""

    name: ClassVar[str] = "multipliers"
    memory: ClassVar[tuple[str, ...]] = ("rows",)
    found: ClassVar[type[Finding]] = Looked
    sequential: ClassVar[bool] = False

    def __init__(self, point: Point, merit: Merit, n: int) -> None:
        super().__init__(point)
        self.merit, self.n = merit, n
        self.rows: Floats = np.empty((0, merit.size))

    def ask(self) -> Question | None:
        """Return the point, so many times in all."""
        return here(self.point, 1, far=True) if self.n_posed < self.n else None

    def tell(self, question: Question, values: Floats) -> None:
        """Learn when all are there."""
        self.rows = np.concatenate([self.rows, self.merit.vectors])
        if len(self.rows) == self.n:
            self.merit.vectors = self.rows
            self.merit.learn(self.point.x)
            self.finished = True

    def finding(self) -> Looked:
        """Tell whether there is noise."""
        return Looked(not self.merit.noisy[0])


class Round(Search):
    """Run a method on the augmented Lagrangian for a share of the budget.

    Parameters
    ----------
    story, ground
        The method, and what the run stands on; the ground's point goes to the answer.
    merit
        The augmented Lagrangian.
    number, share
        Which round it is, and its evaluations.
    """

    name: ClassVar[str] = "rounds"
    sequential: ClassVar[bool] = False

    def __init__(self, story: Story, ground: Ground, merit: Merit, number: int, share: int) -> None:
        super().__init__(ground.point)
        self.story, self.ground, self.merit = story, ground, merit
        self.number, self.share, self.seed = number, share, ground.stream()
        self._begin(ground.point.x.copy())

    def _begin(self, start: Floats) -> None:
        self.start = start
        problem = replace(self.ground.problem, x0=start)
        inner = Ground(problem, self.ground.samples, self.seed, self.share)
        self.inner = Plan(self.story, inner)

    @property
    def cost(self) -> int:
        """Evaluations of the next question."""
        return self.inner.cost

    @property
    def _left(self) -> int:
        return self.share - self.inner.n_evals - self._n_out

    @property
    def _n_out(self) -> int:
        return self.n_asked - self.inner.n_evals

    n_asked: int = 0

    def ask(self) -> Question | None:
        """Let the method ask; nothing beyond the share."""
        if self.inner.cost > self._left:
            return None
        self.inner.room = min(self.room, self._left)
        question = self.inner.pose()
        if question is not None:
            assert question.sample is not None
            number, lane = question.sample
            question.sample = (number, lane + LANES * (self.number + 1))
            self.n_asked += len(question)
        return question

    def tell(self, question: Question, values: Floats) -> None:
        """Let it learn; go to its answer when the share is used."""
        self.inner.take(question, values)
        self.inner.journal.clear()
        self.report(self.merit.best[1])
        over = self.inner.finished or self.inner.cost > self._left
        if over and not self.inner.n_open:
            self.point.put(self.inner.standing.x)
            self.finished = True

    def reopen(self, state: dict[str, Any]) -> Question:
        """Return a question that was open when the round was saved."""
        return self.inner.reopen(state)

    @property
    def standing(self) -> Standing:
        """Where the method is."""
        return self.inner.standing

    @property
    def level(self) -> float:
        """The best value of a feasible point."""
        _, value, _, violation = self.merit.best
        return value if violation == 0.0 else float("nan")

    @property
    def weights(self) -> Floats | None:
        """What the method knows of the coordinates."""
        return self.inner.weights

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        more = {"start": self.start.copy(), "n_asked": self.n_asked}
        return {**super().state_dict(), **more, "inner": self.inner.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another round."""
        super().load_state_dict(state)
        self._begin(state["start"].copy())
        self.n_asked = int(state["n_asked"])
        self.inner.load_state_dict(state["inner"])
