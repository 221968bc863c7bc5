"""What a method gets: a counted function of a task, and nothing of the judge's.

The oracle raises :class:`Spent` when the budget is used up, so nobody gets more than the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from math import inf
from typing import Any

import numpy as np

from scgd.typing import Floats, Ints
from scgd_arena.problems import Task

__all__ = ["FLOOR", "TOLERANCES", "Method", "Oracle", "Spent", "TimedOracle", "first_reached"]

LOOKS = 20
"""Points per decade of evaluations that are kept for data profiles."""
FLOOR = 1e-8
"""Gaps below it count as nothing left to gain."""
TOLERANCES = (0.1, 0.01, 0.001)
"""Shares of the start's gap; a data profile asks when a run came down to them."""


class Spent(Exception):
    """The budget is used up."""


class Oracle:
    """A task's function for one run: counted, with fresh samples where the task has samples."""

    def __init__(self, task: Task, budget: int, seed: int) -> None:
        self.task, self.budget = task, budget
        self.count = 0
        self.best = (inf, task.x0)
        self.fun = task.make(seed)
        self.rng = np.random.default_rng([seed, 5])

    def rows(self, n: int = 1) -> Ints | None:
        """Draw samples to hold fixed; None where the task has none."""
        return None if self.task.sample is None else self.rng.integers(0, self.task.sample, n)

    def at(self, x: Floats, rows: Ints | None) -> float:
        """Evaluate with given samples (one evaluation each)."""
        n = 1 if rows is None else len(rows)
        if self.count + n > self.budget:
            raise Spent
        self.count += n
        if rows is None:
            value = self.fun(x)
        elif n == 1:
            return self.fun(x, rows)
        else:
            return float(np.mean([self.fun(x, rows[i : i + 1]) for i in range(n)]))
        if value < self.best[0]:
            self.improved(x, value)
        return value

    def improved(self, x: Floats, value: float) -> None:
        """Remember the best point seen."""
        self.best = (value, np.array(x, np.float64))

    def __call__(self, x: Any) -> float:
        """Evaluate with a fresh sample."""
        return self.at(np.asarray(x, np.float64), self.rows())

    def answer(self, x: Floats) -> Floats:
        """Return what a method recommends: the best seen where f repeats, else the given point."""
        return self.best[1] if self.task.repeats else np.asarray(x, np.float64)


Method = Callable[[Oracle, int], Floats]


class TimedOracle(Oracle):
    """An oracle that ends a run when its CPU time is over, and keeps what data profiles need.

    Where f repeats, that is the count at each improvement; else points, for the judge to look at.
    A run that repeats itself also ends once its best gap is ``enough``: the answer of a peer is
    the best point seen, and nothing that counts is left to gain.
    """

    def __init__(
        self, task: Task, budget: int, seed: int, max_seconds: float, enough: float = -inf
    ) -> None:
        self.deadline = time.process_time() + max_seconds
        self.stopped = self.solved = False
        self.enough = enough
        self.looks: list[tuple[int, Floats]] = []
        self.gains: list[tuple[int, float]] = []
        self.next_look = 1 if task.looks and not task.repeats else budget + 1
        super().__init__(task, budget, seed)

    def at(self, x: Floats, rows: Ints | None) -> float:
        """Evaluate, unless budget or time is spent or nothing is left to gain."""
        if self.solved:
            raise Spent
        if self.count % 16 == 0 and time.process_time() > self.deadline:
            self.stopped = True
            raise Spent
        value = super().at(x, rows)
        if self.count >= self.next_look:
            self.looks.append((self.count, np.array(x, np.float64)))
            self.next_look = int(np.ceil(self.count * 10 ** (1 / LOOKS)))
        return value

    def improved(self, x: Floats, value: float) -> None:
        """Remember the best point seen and when."""
        super().improved(x, value)
        if self.task.repeats:
            self.gains.append((self.count, value - self.task.lowest))
            self.solved = value - self.task.lowest <= self.enough

    def reached(self, gap: float, start: float) -> list[float]:
        """Return after how many evaluations the run came down to each tolerance."""
        seen = [(count, float(self.task.gap(point))) for count, point in self.looks]
        return first_reached([*self.gains, *seen, (self.count, gap)], start)


def first_reached(seen: Iterable[tuple[int, float]], start: float) -> list[float]:
    """Return the evaluations after which the gap first was below each tolerance."""
    seen = list(seen)
    return [
        min((float(count) for count, gap in seen if gap <= tolerance * start), default=inf)
        for tolerance in TOLERANCES
    ]
