"""What searches over a grid share: the start, the opening, the books of points, and noise.

Equal points of a deterministic function are never evaluated twice, but for one repeat that tells
whether f is noisy. A small grid can be exhausted; the search is then finished.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from scgd.problem import Problem
from scgd.questions import EVERYWHERE, Point, Question, here, joint
from scgd.searches.base import Search, Standing
from scgd.searches.mixed.archive import Archive
from scgd.searches.mixed.mutation import stratified
from scgd.spaces import Grid
from scgd.typing import Floats

__all__ = ["Seeker"]

REACH = 4.0
"""Where there are no bounds: how many units around x0 the cube covers."""
LEAST, SHARE = 8, 0.1
"""Points of the opening: this part of the budget, between LEAST and three per coordinate."""
SURE = 3
"""Observations of a noisy function from which a mean is compared with a target."""


class Seeker(Search):
    """The common ground; a subclass implements :meth:`propose`.

    Parameters
    ----------
    problem, point
        What is known, and where to start; without bounds the search keeps near x0.
    rng
        Where points come from.
    budget
        Evaluations to plan for.
    sampled
        Whether the function takes samples, and is noisy therefore.
    """

    memory: ClassVar[tuple[str, ...]] = ("archive", "rng", "budget", "kind", "checked")
    sequential: ClassVar[bool] = False

    def __init__(
        self,
        problem: Problem,
        point: Point,
        rng: np.random.Generator,
        budget: int,
        *,
        sampled: bool = False,
    ) -> None:
        super().__init__(point)
        self.problem, self.rng, self.budget, self.sampled = problem, rng, int(budget), sampled
        self.lower, self.width = box(problem)
        start = (problem.x0 - self.lower) / np.where(self.width > 0, self.width, 1.0)
        self.grid = problem.space.grid if problem.space else Grid.continuous(start)
        self.archive = Archive(problem.n_coords)
        self.kind = "noisy" if sampled else "unknown"
        self.checked = False
        self.begin()

    def begin(self) -> None:
        """Set up what a subclass remembers."""

    def propose(self) -> Floats | None:
        """Return the next point of the grid; None where answers must come first."""
        raise NotImplementedError

    @property
    def suspicious(self) -> bool:
        """Whether it is time to tell whether f is noisy."""
        return False

    @property
    def paired(self) -> bool:
        """Whether the k-th evaluation of every point has the same sample."""
        return False

    @property
    def noisy(self) -> bool:
        """Whether values at one point differ."""
        return self.kind == "noisy"

    def extend(self, budget: int | None) -> None:
        """Plan for more."""
        if budget is not None:
            self.budget = int(budget)

    # ---- questions -------------------------------------------------------------------------------

    def ask(self) -> Question | None:
        """Return the start, the opening, and then what is proposed."""
        with np.errstate(all="ignore"):
            if self.n_posed == 0:
                row = self.archive.add(self.grid.start)
                return self._issued(here(self.point, 1, role=row))
            if self.n_posed == 1 and len(opening := self._opening()):
                return self._question(opening)
            if self.kind == "unknown" and not self.checked and (self.suspicious or self.exhausted):
                self.checked = True
                return self._question(self.archive.points[[max(self.archive.best, 0)]])
            found = self.propose()
            return None if found is None else self._question(found[None])

    def _opening(self) -> Floats:
        """Return a Latin hypercube, each point once, none that is known."""
        n = int(np.clip(SHARE * self.budget, LEAST, max(LEAST, 3 * self.grid.n_coords))) - 1
        points = stratified(self.grid, n, self.rng)
        fresh = points[np.sort(np.unique(points, axis=0, return_index=True)[1])]
        return fresh[~self.archive.has(fresh)][: int(max(1, min(n, self.room)))]

    def _question(self, points: Floats) -> Question:
        rows = [self.archive.add(point) for point in points]
        entries = np.stack([self.x(row) for row in rows])
        return self._issued(joint(self.point, EVERYWHERE, entries, far=True, role=rows[0]))

    def _issued(self, question: Question) -> Question:
        """Take note that the points of a question are under way."""
        if self.paired:
            question.sample = (self.archive.asked(question.role), self.lane)
        for j in range(len(question)):
            self.archive.waiting[question.role + j] += 1
        return question

    def x(self, row: int) -> Floats:
        """Return a point of the grid as the problem has it."""
        if row == 0:
            return self.problem.x0
        return np.asarray(self.lower + self.archive.points[row] * self.width, np.float64)

    def fresh(self, points: Floats) -> Floats:
        """Return the points that may be evaluated: of a noisy function any, else new ones."""
        return points if self.noisy else points[~self.archive.has(points)]

    def anything(self) -> Floats | None:
        """Return a random point that may be evaluated; None where there is none."""
        known = self.grid.all_points
        points = known if len(known) else self.grid.canonical(self.rng.random((64, self.n_coords)))
        found = self.fresh(points)
        if len(found):
            return np.asarray(found[self.rng.integers(len(found))], np.float64)
        return None if len(known) else points[0]

    @property
    def n_coords(self) -> int:
        """The dimension."""
        return self.grid.n_coords

    @property
    def exhausted(self) -> bool:
        """Whether every point of a small grid has been asked."""
        return len(self.archive) == len(self.grid.all_points)

    # ---- values ----------------------------------------------------------------------------------

    def tell(self, question: Question, values: Floats) -> None:
        """Keep the values, go to the best point."""
        for j, value in enumerate(values.tolist()):
            self._take(question.role + j, value)
        if (best := self.archive.best) >= 0:
            self.point.put(self.x(best))
        known = self.checked or self.kind == "deterministic"
        over = known and not self.noisy and self.exhausted
        self.finished = over and not any(self.archive.waiting)
        self.report(self.archive.means[best] if best >= 0 else float("nan"))

    def _take(self, row: int, value: float) -> None:
        before = self.archive.means[row]
        self.archive.tell(row, value)
        if self.kind == "unknown" and self.archive.counts[row] == 2 and value == value:
            self.kind = "deterministic" if value == before else "noisy"
        self.note(row, value)

    def know(self, x: Floats, value: float) -> None:
        """Take a measurement that this search did not ask for."""
        self.archive.add(self.grid.start)  # which is the first point
        units = (x - self.lower) / np.where(self.width > 0, self.width, 1.0)
        row = self.archive.add(np.asarray(self.grid.canonical(units[None])[0], np.float64))
        self.archive.waiting[row] += 1
        self._take(row, value)

    def note(self, row: int, value: float) -> None:
        """Take note of a value at a point; it is in the archive."""

    def favourite(self) -> int:
        """Return the point to recommend; -1 where nothing is known."""
        return self.archive.best

    @property
    def standing(self) -> Standing:
        """The point that is recommended, and what was seen there."""
        with np.errstate(all="ignore"):
            row = self.favourite()
        if row < 0:
            return Standing(self.problem.x0, np.empty(0))
        return Standing(self.x(row), np.array(self.archive.seen[row]), exact=not self.noisy)

    @property
    def level(self) -> float:
        """The best value; of a noisy function a mean of at least a few."""
        archive = self.archive
        if not self.noisy:
            return archive.means[archive.best] if archive.best >= 0 else float("nan")
        pairs = zip(archive.means, archive.counts, strict=True)
        return min((mean for mean, n in pairs if n >= SURE), default=float("nan"))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another search of the same kind."""
        super().load_state_dict(state)
        if self.kind not in ("unknown", "deterministic", "noisy"):
            raise ValueError(f"the kind of noise is {self.kind!r}")


def box(problem: Problem) -> tuple[Floats, Floats]:
    """Return where the cube lies: between the bounds, else around x0."""
    lower, upper = problem.x0 - REACH * problem.unit, problem.x0 + REACH * problem.unit
    if problem.lower.size:
        lower = np.where(np.isfinite(problem.lower), problem.lower, lower)
        upper = np.where(np.isfinite(problem.upper), problem.upper, upper)
    return lower, upper - lower
