"""Newton's steps under constraints, where f and they repeat themselves: the end of a round.

A round of a method sees one number per evaluation, the augmented Lagrangian. Where there is no
noise the same evaluations tell f and every constraint apart, so slopes and curvatures of all of
them (:mod:`scgd.constraints.surface`) give steps that end exactly.
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

__all__ = ["Newton", "affordable", "newton_share"]

FIRST, SMALLEST = 0.5, 1e-10
"""Reach of the first step and of the last, in units of the scale."""
WIDTH, NARROW, WIDE = 0.2, 1e-7, 0.1
"""Steps of the differences, in units of the reach, and their limits in units of the scale."""
GOOD, BAD = 0.7, 0.05
"""Parts of the gain that was promised: above, models are believed farther; below, not at all."""
MODELS = 12
"""Models that a share of the budget must pay for."""
MODEL, TRIAL = 0, 1


def affordable(p: int, share: int) -> bool:
    """Tell whether a share of the budget is worth beginning with."""
    return share >= MODELS * n_points(p)


def newton_share(p: int, budget: int) -> int:
    """Return the evaluations of one go: a tenth of the budget, and enough to get anywhere."""
    return max(budget // 10, MODELS * n_points(p))


class Newton(Search):
    r"""Minimise models of f under models of the constraints, within a reach that follows success.

    A step is judged by :math:`f + \rho \sum_i v_i`, where :math:`v_i` are violations and
    :math:`\rho` is twice the largest multiplier. The reach follows the steps that come true and
    shrinks to a quarter of those that do not. It is a cube in directions along which the Lagrangian
    bends alike (the coordinates, where there are bounds), and so are the steps of the differences.
    It ends when nothing is gained any more.

    Parameters
    ----------
    problem, point
        What is known; the point goes to where it ends.
    merit
        The books of feasible points; it starts at the best of them.
    share
        Evaluations that it may use.
    turns
        Whether directions follow the Lagrangian; else the cube stays that of the scale. Either is
        right where the other is stuck.
    """

    name: ClassVar[str] = "newton"
    memory: ClassVar[tuple[str, ...]] = (
        "x", "vector", "centre", "basis", "measured", "d", "reach", "width", "known",
    )  # fmt: skip

    def __init__(
        self, problem: Problem, point: Point, merit: Merit, share: int, *, turns: bool = True
    ) -> None:
        super().__init__(point)
        self.problem, self.merit, self.share, self.turns = problem, merit, share, turns
        p = problem.n_coords
        self.x, self.centre, self.d = (np.zeros(p) for _ in range(3))  # d: a step from the centre
        self.basis: Floats = np.diag(problem.unit)
        self.vector: Floats = np.full(merit.size, np.inf)  # what was measured at x
        self.measured: Floats = np.zeros((n_points(p), merit.size))
        self.reach, self.width, self.known = FIRST, WIDE, False

    @property
    def cost(self) -> int:
        """Evaluations of the next question."""
        return 1 if self.known else n_points(self.problem.n_coords)

    def ask(self) -> Question:
        """Return the points of a model, or a step."""
        if self.n_posed == 0:
            self.x[:] = self.merit.best[0]
        if self.known:
            return joint(self.point, EVERYWHERE, (self.centre + self.d)[None], far=True, role=TRIAL)
        return joint(self.point, EVERYWHERE, self._pattern(), far=True, role=MODEL)

    def _pattern(self) -> Floats:
        """Return the points of a model around x, or as near to it as the bounds allow."""
        p = self.problem
        self.width = float(np.clip(WIDTH * self.reach, NARROW, WIDE))
        self.centre[:] = self.x
        if p.lower.size:
            most = (p.upper - p.lower) / 4 / self.width
            self.basis[:] = np.diag(np.minimum(np.diag(self.basis), most))
            steps = self.width * np.diag(self.basis)
            self.centre[:] = np.clip(self.x, p.lower + steps, p.upper - steps)
        return self.centre + self.width * pattern(p.n_coords) @ self.basis.T

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
        return Surface.fitted(self.measured[:, :-1], self.problem.n_coords, self.merit.equal)

    def _units(self, d: Floats) -> Floats:
        """Return a step in units of the differences."""
        return np.asarray(np.linalg.solve(self.basis, d) / self.width, np.float64)

    def _choose(self) -> None:
        """Choose the next step by the models."""
        p, most = self.problem, np.full(self.x.size, self.reach / self.width)
        away = self._units(self.x - self.centre)
        low, high = away - most, away + most
        if p.lower.size:
            steps = self.width * np.diag(self.basis)
            low = np.maximum(low, (p.lower - self.centre) / steps)
            high = np.minimum(high, (p.upper - self.centre) / steps)
        d = self.width * self.basis @ self._surface.step(low, high)
        self.d[:] = p.clipped(self.centre + d) - self.centre

    def _judge(self, vector: Floats) -> None:
        """Go there, if it is better; look nearer or farther next time."""
        surface, d = self._surface, self._units(self.d)
        pushes = surface.multipliers(d)
        price = 2.0 * float(np.abs(pushes).max(initial=0.0))
        now, promised = self._total(self.vector, price), self._total(surface.at(d), price)
        seen = self._total(vector, price) if np.isfinite(vector).all() else np.inf
        move = self.centre + self.d - self.x
        length = float(np.abs(self._units(move)).max()) * self.width
        gain, hoped = now - seen, now - promised
        if gain > max(0.0, BAD * hoped):
            inside, held = length < 0.9 * self.reach, gain > GOOD * hoped
            if self.turns:
                turned = not self.problem.lower.size
                self._turn(surface.metric(d, pushes, turned=turned))
            length = float(np.abs(self._units(move)).max()) * self.width
            self.reach = max(NARROW, length * (4 if inside else 2 if held else 1))
            self.x[:], self.vector[:], self.known = self.centre + self.d, vector, False
            return
        self.reach = 0.25 * min(length, self.reach)
        if self.reach > SMALLEST:
            self._choose()

    def _turn(self, metric: Floats) -> None:
        """Take directions along which the Lagrangian bends alike; the longest has the scale."""
        basis = self.basis @ metric
        lengths = np.linalg.norm(basis / self.problem.unit[:, None], axis=0)
        self.basis[:] = basis / lengths.max()

    def _total(self, vector: Floats, price: float) -> float:
        residuals = vector[1 : 1 + len(self.merit.equal)]
        missed = np.where(self.merit.equal, np.abs(residuals), np.maximum(residuals, 0.0))
        return float(vector[0] + price * np.maximum(missed - TOLERANCE / 2, 0.0).sum())

    @property
    def standing(self) -> Standing:
        """The best feasible point."""
        return Standing(self.merit.best[0], np.array([self.merit.best[1]]), exact=True)
