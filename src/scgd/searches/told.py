"""Searches written as generators, whose memory is the values they were told.

A generator that yields points and is sent values reads from top to bottom and keeps its state in
local variables, which cannot be saved. But it is a function of its seed and of the values: those
are kept, 8 bytes each, and a search that is taken up tells them again.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any, ClassVar

import numpy as np

from scgd.problem import Problem
from scgd.questions import BASE, EVERYWHERE, NOWHERE, Point, Question, joint
from scgd.searches.arms.box import Box
from scgd.searches.arms.spread import Partials, Spread, point_of
from scgd.searches.base import Search, Standing
from scgd.typing import Floats

__all__ = ["Told"]


class Told(Search):
    """A search of a deterministic function whose arms are generators.

    A subclass implements :meth:`tell_story`. Points are in units of the problem's scale; they are
    brought inside the bounds, and values that were lost are infinite.

    Parameters
    ----------
    problem, point
        What is known, and where to start; the point is moved to the best one seen.
    seed
        Where randomness comes from.
    budget
        Evaluations to plan for.
    tol
        The share of the gain since the start that counts as nothing; 0: never end for want of gain.
    partials
        Whether partial derivatives may be asked.
    """

    sequential: ClassVar[bool] = False

    def __init__(
        self,
        problem: Problem,
        point: Point,
        seed: np.random.SeedSequence,
        budget: int,
        tol: float = 0.0,
        *,
        partials: bool = False,
    ) -> None:
        super().__init__(point)
        self.partials = partials
        self.problem, self.seed, self.start, self.tol = problem, seed, point.x.copy(), tol
        self.budgets = [(0, budget)]  # and after how many values each was given
        self._begin()

    def _begin(self) -> None:
        self.told: list[float] = []
        self.n_told = 0  # evaluations; one of jac tells many numbers
        self.best = float("inf")
        self.finished = False
        self.rng = np.random.Generator(np.random.PCG64(self.seed))
        unit, origin = self.problem.unit, self.problem.x0 / self.problem.unit
        self.box = Box(
            origin,
            self.problem.lower / unit[: self.problem.lower.size],
            self.problem.upper / unit[: self.problem.upper.size],
        )
        self.doing, self.far, self.lowest = "measuring", 0.0, float("inf")
        self.ran: dict[str, int] = {}
        self.common = self.base = self.start  # what points had in common, and that in units of x
        self.origin: Floats = self.start / unit
        self.telling = self.tell_story(self.origin)
        self._take_batch(next(self.telling))

    @property
    def budget(self) -> int:
        """Evaluations to plan for."""
        return [budget for after, budget in self.budgets if after <= self.n_told][-1]

    @property
    def left(self) -> int:
        """Evaluations of them that are left."""
        return self.budget - self.n_told

    def extend(self, budget: int | None) -> None:
        """Plan for more; the story finds it when it looks next."""
        if budget is not None:
            self.budgets.append((self.n_told + 1, budget))

    def tell_story(self, x: Floats) -> Generator[Any, Any, None]:
        """Yield points (or matrices of them) and be sent their values."""
        raise NotImplementedError

    def _take_batch(self, points: Any) -> None:
        """Take what the story asks next, inside the box and the bounds, in units of x."""
        self.single, self.n_asked, self.n_answered = points.ndim == 1, 0, 0
        self.batch: Any
        self.distance: float
        n = self.size = len(points) if points.ndim == 2 else 1
        if isinstance(points, Spread):
            place = self._place_one if self.single else self._place_spread
            self.batch, self.distance = place(points)
        elif isinstance(points, Partials):
            x = self.problem.clipped(self.box.clip(points.x) * self.problem.unit)
            self.batch, self.distance, n = Partials(x, points.coords), 0.0, len(points.coords)
        else:
            inside = self.box.clip(points if points.ndim == 2 else points[None])
            self.batch = self.start[None]  # itself: its quotients by the unit may be off by a bit
            if points is not self.origin:
                self.batch = self.problem.clipped(inside * self.problem.unit)
            self.distance = float(np.abs(inside - self.box.start).max())
        self.values: Floats = np.array([np.nan] * n)

    def _place_one(self, points: Spread) -> tuple[Spread, float]:
        """Return the one point inside, and how far it lies from the start."""
        (i,), (entry,), box = points.coords, points.entries, self.box
        entry = min(max(entry, float(box.lower[i])), float(box.upper[i]))
        inside = self.problem.inside(i, entry * float(self.problem.unit[i]))
        batch = Spread(self._based(points.x), points.coords, [inside])
        return batch, abs(entry - float(box.start[i]))

    def _place_spread(self, points: Spread) -> tuple[Spread, float]:
        """Return the points inside, and how far the farthest lies from the start."""
        k, box, problem = points.coords, self.box, self.problem
        entries = np.minimum(np.maximum(points.entries, box.lower[k]), box.upper[k])
        inside = entries * problem.unit[k]
        if problem.lower.size:
            inside = np.minimum(np.maximum(inside, problem.lower[k]), problem.upper[k])
        farthest = float(np.abs(entries - box.start[k]).max())
        return Spread(self._based(points.x), k, inside), farthest

    def _based(self, x: Floats) -> Floats:
        """Return what points have in common in units of x, made once: arms do not change it."""
        if x is not self.common:
            self.common, self.base = x, self.problem.clipped(x * self.problem.unit)
        return self.base

    @property
    def cost(self) -> int:
        """A question takes as many points of a batch as there is room for."""
        return 1

    def ask(self) -> Question | None:
        """Return the points of the batch that have not been asked."""
        first = self.n_asked
        if first == self.size:
            return None
        n = int(min(self.size - first, max(1.0, self.room)))
        self.n_asked += n
        far = bool(self.told)  # f(x0) must be sound
        some, batch = slice(first, first + n), self.batch
        if isinstance(batch, Partials):
            one, none = np.array([BASE]), np.array([np.nan])
            return Question(
                self.point, batch.coords, one, none, base=batch.x, far=far, kind="partials"
            )
        if isinstance(batch, Spread):
            coords, entries = np.asarray(batch.coords[some]), np.asarray(batch.entries[some])
            return Question(self.point, NOWHERE, coords, entries, base=batch.x, far=far, role=first)
        return joint(self.point, EVERYWHERE, batch[some], far=far, role=first)

    def tell(self, question: Question, values: Floats) -> None:
        """Keep the values; when the batch is complete, tell them."""
        if isinstance(self.batch, Partials):
            self.values[:] = np.nan_to_num(values[0], nan=0.0, posinf=0.0, neginf=0.0)
            self.n_answered = 1
            self._tell_batch()
            return
        self.enter(question.role, values)
        self.report(self.best)

    def enter(self, first: int, values: Floats) -> None:
        """Take values of the batch from one place on; tell all of them when none is missing."""
        values = np.where(np.isnan(values), np.inf, values)
        self.values[first : first + len(values)] = values
        k = int(values.argmin())
        self._arrive(len(values), first + k, float(values[k]))

    def enter_one(self, j: int, value: float) -> None:
        """Take the j-th value of the batch, as :meth:`enter` would."""
        self.values[j] = value = value if value == value else float("inf")
        self._arrive(1, j, value)

    def _arrive(self, n: int, k: int, lowest: float) -> None:
        """Count n values, the k-th of the batch being the lowest of them."""
        self.n_answered += n
        self._keep_best(k, lowest)
        if self.n_answered == self.size:
            self._tell_batch()

    @property
    def midway(self) -> bool:
        """Whether a part of a batch has been asked."""
        return 0 < self.n_asked < self.size

    def _keep_best(self, k: int, value: float) -> None:
        """Go to the k-th point of the batch if it is the best one that has arrived."""
        if value < self.best:
            self.best = value
            self.point.put(point_of(self.batch, k))

    def _keep_arrived(self) -> None:
        """Go to the best point of the batch, of those that have arrived."""
        if not isinstance(self.batch, Partials):
            values = np.where(np.isnan(self.values), np.inf, self.values)
            self._keep_best(int(values.argmin()), float(values.min()))

    def _tell_batch(self) -> None:
        self.told.extend(self.values.tolist())
        self.n_told += self.size
        self.ran[self.doing] = self.ran.get(self.doing, 0) + self.size
        self.doing = "measuring"
        values: Any = float(self.values[0]) if self.single else self.values
        if isinstance(self.batch, Partials):
            values = self.values * self.problem.unit[self.batch.coords]
        else:
            self._note_distance()
        try:
            self._take_batch(self.telling.send(values))
        except StopIteration:
            self.finished = True

    def _note_distance(self) -> None:
        """Take note of how far it looked; a best point far out widens the box."""
        self.far = max(self.far, self.distance)
        k = 0 if self.single else int(self.values.argmin())
        if self.values[k] < self.lowest:
            self.lowest = float(self.values[k])
            if self.distance > self.box.reach / 2:
                self.box.note(point_of(self.batch, k) / self.problem.unit)

    @property
    def members(self) -> dict[str, int]:
        """The evaluations of each arm."""
        return self.ran

    @property
    def standing(self) -> Standing:
        """The best point seen."""
        return Standing(self.point.x, np.array([self.best]), exact=True)

    @property
    def level(self) -> float:
        """The best value seen."""
        return self.best

    def state_dict(self) -> dict[str, Any]:
        """Return what was told, and what has arrived of the batch in hand."""
        return {
            **super().state_dict(),
            "seed": json.dumps([self.seed.entropy, list(self.seed.spawn_key)]),
            "start": self.start.copy(),
            "told": np.array(self.told, np.float64),
            "values": self.values.copy(),
            "n_asked": self.n_asked,
            "n_answered": self.n_answered,
            "budgets": np.array(self.budgets, np.int64),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Tell again what was told."""
        self.budgets = [tuple(pair) for pair in state["budgets"].tolist()]
        if not self.budgets or self.budgets[0][0] != 0:
            raise ValueError("a search without a budget")
        entropy, key = json.loads(state["seed"])
        self.seed = np.random.SeedSequence(entropy, spawn_key=tuple(key))
        if state["start"].shape != self.start.shape:
            raise ValueError("a start of another size")
        self.start = state["start"].copy()
        self._begin()
        told = state["told"]
        while len(self.told) < len(told) and not self.finished:
            n = len(self.values)
            self.values[:] = told[len(self.told) : len(self.told) + n]
            self._keep_arrived()
            self._tell_batch()
        super().load_state_dict(state)
        if self.values.shape != state["values"].shape:
            raise ValueError("a batch has another size")
        self.values[:] = state["values"]
        self._keep_arrived()
        self.n_asked, self.n_answered = int(state["n_asked"]), int(state["n_answered"])
