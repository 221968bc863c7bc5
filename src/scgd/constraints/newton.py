"""Newton's steps under constraints, where f and they repeat themselves: the end of a round.

A round of a method sees one number per evaluation, the augmented Lagrangian. Where there is no noise
the same evaluations tell f and every constraint apart, so slopes and curvatures of all of them
(:mod:`scgd.constraints.surface`) give steps that end exactly.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scgd.constraints.merit import TOLERANCE, Merit
from scgd.constraints.surface import Surface, n_points, pattern
from scgd.problem import Problem
from scgd.questions import EVERYWHERE, Point, Question, joint
from scgd.searches import Search, Standing
from scgd.typing import Floats

__all__ = ["Newton", "affordable"]

FIRST, SMALLEST = 0.5, 1e-10
"""Reach of the first step and of the last, in units of the scale."""
WIDTH, NARROW, WIDE = 0.05, 1e-4, 0.1
"""Steps of the differences, in units of the reach, and their limits in units of the scale."""
GOOD, BAD = 0.7, 0.05
"""Parts of the gain that the models promise: above, they are believed farther; below, not at all."""
MODELS = 12
"""Models that a share of the budget must pay for."""
MODEL, TRIAL = 0, 1


def affordable(p: int, share: int) -> bool:
    """Tell whether a share of the budget is worth beginning with."""
    return share >= MODELS * n_points(p)


class Newton(Search):
    r"""Minimise models of f under models of the constraints, within a reach; believe what comes true.

    A step is judged by :math:`f + \rho \sum_i v_i`, where :math:`v_i` are violations and
    :math:`\rho` is above every multiplier. The reach grows where models hold and shrinks to a quarter of
    the step where they do not. It ends when nothing is gained any more.

    Parameters
    ----------
    problem, point
        What is known; the point goes to where it ends.
    merit
        The books of feasible points; it starts at the best of them.
    share
        Evaluations that it may use.
    """

    name: ClassVar[str] = "newton"
    memory: ClassVar[tuple[str, ...]] = (
        "x", "vector", "centre", "steps", "measured", "d", "reach", "known",
    )  # fmt: skip

    def __init__(self, problem: Problem, point: Point, merit: Merit, share: int) -> None:
        super().__init__(point)
        self.problem, self.merit, self.share = problem, merit, share
        p = problem.n_coords
        self.x, self.centre, self.steps, self.d = (np.zeros(p) for _ in range(4))
        self.vector: Floats = np.full(merit.size, np.inf)  # what was measured at x
        self.measured: Floats = np.zeros((n_points(p), merit.size))
        self.reach, self.known = FIRST, False

    @property
    def cost(self) -> int:
        """Evaluations of the next question."""
        return 1 if self.known else n_points(self.problem.n_coords)

    def ask(self) -> Question:
        """Return the points of a model, or a step."""
        if self.n_posed == 0:
            self.x[:] = self.merit.best[0]
        if not self.known:
            return joint(self.point, EVERYWHERE, self._pattern(), far=True, role=MODEL)
        return joint(self.point, EVERYWHERE, (self.centre + self.d)[None], far=True, role=TRIAL)

    def _pattern(self) -> Floats:
        """Return the points of a model around x, or as near to it as the bounds allow."""
        p = self.problem
        self.steps[:] = p.unit * np.clip(WIDTH * self.reach, NARROW, WIDE)
        self.centre[:] = self.x
        if p.lower.size:
            self.steps[:] = np.minimum(self.steps, (p.upper - p.lower) / 4)
            self.centre[:] = np.clip(self.x, p.lower + self.steps, p.upper - self.steps)
        return self.centre + self.steps * pattern(p.n_coords)

    def tell(self, question: Question, values: Floats) -> None:
        """Make the models and choose a step, or judge it."""
        vectors = self.merit.vectors
        if question.role == MODEL:
            self._model(vectors)
        else:
            self._judge(vectors[0])
        self.report(self.merit.best[1])
        if self.reach < SMALLEST or self.n_evals + self.cost > self.share:
            self.finished = True
        if self.finished:
            self.point.put(self.merit.best[0])

    def _model(self, vectors: Floats) -> None:
        if not np.isfinite(vectors).all():
            self.finished = True
            return
        self.measured[:] = vectors
        if np.array_equal(self.centre, self.x) or not np.isfinite(self.vector).all():
            self.x[:], self.vector[:] = self.centre, vectors[0]
        self.known = True
        self._choose()

    @property
    def _surface(self) -> Surface:
        residuals = self.measured[:, :-1]
        return Surface.fitted(residuals, self.problem.n_coords, self.merit.equal)

    def _choose(self) -> None:
        """Choose the next step by the models."""
        p, most = self.problem, self.reach * self.problem.unit
        low, high = self.x - most - self.centre, self.x + most - self.centre
        if p.lower.size:
            low = np.maximum(low, p.lower - self.centre)
            high = np.minimum(high, p.upper - self.centre)
        self.d[:] = self.steps * self._surface.step(low / self.steps, high / self.steps)

    def _judge(self, vector: Floats) -> None:
        """Go there, if it is better; look nearer or farther next time."""
        surface, d = self._surface, self.d / self.steps
        price = surface.price(d)
        now, promised = self._total(self.vector, price), self._total(surface.at(d), price)
        seen = self._total(vector, price) if np.isfinite(vector).all() else np.inf
        length = float(np.max(np.abs(self.centre + self.d - self.x) / self.problem.unit))
        gain, hoped = now - seen, now - promised
        if gain > BAD * hoped and gain > 0:
            self.x[:], self.vector[:], self.known = self.centre + self.d, vector, False
            if length < 0.9 * self.reach:
                self.reach = max(4 * length, NARROW)
            elif gain > GOOD * hoped:
                self.reach *= 2
            return
        self.reach = 0.25 * min(length, self.reach)
        if length > 0 and self.reach > SMALLEST:
            self._choose()

    def _total(self, vector: Floats, price: float) -> float:
        residuals = vector[1 : 1 + len(self.merit.equal)]
        missed = np.where(self.merit.equal, np.abs(residuals), np.maximum(residuals, 0.0))
        return float(vector[0] + price * np.maximum(missed - TOLERANCE / 2, 0.0).sum())

    @property
    def standing(self) -> Standing:
        """The best feasible point."""
        return Standing(self.merit.best[0], np.array([self.merit.best[1]]), exact=True)
