"""Filling in: work for a laboratory whose method must see answers before it asks again."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from scgd.problem import Problem
from scgd.questions import EVERYWHERE, Point, Question, joint
from scgd.searches.base import Search, Standing
from scgd.trials import Trials
from scgd.typing import Floats

__all__ = ["Filling"]

CHECK = 5
"""Every so many points it measures the centre itself."""
REMEMBERED = 4
"""Measurements of the centre that tell how good it is."""
FEW = 8
"""Values below which nothing is known of the spread."""
PER_COORD, RIDGE = 3, 1e-3
"""Values per coordinate from which a parabola is fitted, and how much its slopes are shrunk."""
NARROWEST = 0.5
"""The least spread, in units of the scale over the root of the number of values."""


class Filling(Search):
    r"""Look around the best of everything that was measured, whoever asked for it.

    Of the n values in the table the best quarter counts, ranked, with weights
    :math:`w_i \propto \log(m + 1/2) - \log i`. Their weighted mean :math:`c` and, coordinate by
    coordinate, their weighted standard deviation :math:`s_k`, at least :math:`u_k / (2 \sqrt n)`
    where :math:`u_k` is the coordinate's scale, tell where to look: a cross-entropy step. With
    :math:`n \ge 3 p` values the better half of them (and 3 p at least) is fitted by

    .. math:: a + \sum_k g_k z_k + h_k z_k^2 / 2, \qquad z = (x - c) / u,

    with a little ridge, and :math:`c` goes to its minimum, at most :math:`2 s_k` along each
    coordinate. Points are drawn from the normal law around c with standard deviations s; every
    fifth is c itself, whose values tell how good it is.

    Parameters
    ----------
    problem
        Where to look.
    trials
        The table; only read.
    rng
        Where the points come from.
    """

    name: ClassVar[str] = "filling in"
    memory: ClassVar[tuple[str, ...]] = ("rng", "seen")
    sequential: ClassVar[bool] = False

    def __init__(self, problem: Problem, trials: Trials, rng: np.random.Generator) -> None:
        super().__init__(Point(problem.x0))
        self.problem, self.trials, self.rng = problem, trials, rng
        self.seen: list[float] = []
        self.lane = 2**30  # beyond those of any plan

    def ask(self) -> Question:
        """Return one point; any number of them may be open."""
        points, values = self.trials.known()
        centre, spread = self._cloud(points, values)
        check = len(values) >= FEW and self.n_posed % CHECK == 0
        x = centre if check else centre + spread * self.rng.standard_normal(centre.size)
        return joint(self.point, EVERYWHERE, self.problem.clipped(x[None]), far=True, role=check)

    def _cloud(self, points: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the points to draw."""
        n, unit = len(values), self.problem.unit
        if n < FEW:
            return (points[np.argmin(values)] if n else self.problem.x0), unit
        best = points[np.argsort(values, kind="stable")[: max(4, n // 4)]]
        weights = np.log(len(best) + 0.5) - np.log(np.arange(1, len(best) + 1))
        weights /= weights.sum()
        mean: Floats = weights @ best
        spread = np.maximum(np.sqrt(weights @ (best - mean) ** 2), NARROWEST / np.sqrt(n) * unit)
        if n >= PER_COORD * mean.size:
            mean = mean + unit * valley(points, values, mean, unit, 2 * spread / unit)
        return self.problem.clipped(mean), spread

    def tell(self, question: Question, values: Floats) -> None:
        """Stand at the centre that was measured last."""
        if question.role and np.isfinite(values[0]):
            self.seen = [*self.seen, float(values[0])][-REMEMBERED:]
            self.point.put(question.entries[0])

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        return {**super().state_dict(), "x": self.point.x.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another one."""
        super().load_state_dict(state)
        self.point.put(state["x"])

    @property
    def standing(self) -> Standing:
        """The centre, and what was seen at it."""
        return Standing(self.point.x, np.array(self.seen))


def valley(points: Floats, values: Floats, centre: Floats, unit: Floats, reach: Floats) -> Floats:
    """Return the step to the minimum of a parabola in each coordinate, in units; no farther."""
    p, n = centre.size, max(PER_COORD * centre.size, len(values) // 2)
    better = np.argsort(values, kind="stable")[:n]
    z, seen = (points[better] - centre) / unit, values[better]
    design = np.column_stack([np.ones(len(z)), z, z**2 / 2])
    normal = design.T @ design
    normal[range(1, 2 * p + 1), range(1, 2 * p + 1)] *= 1 + RIDGE
    size = float(np.abs(seen).max()) or 1.0  # products must not overflow
    slopes, bends = np.split(np.linalg.solve(normal, design.T @ ((seen - seen[0]) / size))[1:], 2)
    downhill = np.where(bends > 0, -slopes / np.maximum(bends, 1e-300), -np.sign(slopes) * reach)
    step: Floats = np.clip(np.nan_to_num(downhill), -reach, reach)
    return step
