"""What a recipe's schedules are worth at each step, a chunk of steps at a time.

A run's own clock counts steps from 1. Schedules may count passes instead, and some fall over the
whole budget: a *leg* is the stretch of steps over which they do. All of that is settled here, for
black boxes, linear models and torch alike.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scgd.samples import CHUNK
from scgd.schedules import InverseTime, Linear, Schedule, SqrtOf
from scgd.typing import Floats, Ints

__all__ = ["Timetable", "resolved"]


def innermost(schedule: Schedule) -> Schedule:
    """Return the schedule whose index is what another one's is."""
    return innermost(schedule.schedule) if isinstance(schedule, SqrtOf) else schedule


def resolved(schedule: Schedule, start: int, total: int | None, pass_steps: float) -> Schedule:
    """Fill in the leg of a schedule that falls over the run.

    Parameters
    ----------
    schedule
        Any schedule; those without an open end come back as they are.
    start, total
        The first and the last step of the leg. Without an end (None) a linear fall becomes an
        inverse square root in passes.
    pass_steps
        Steps per pass.

    Examples
    --------
    >>> resolved(Linear(2.0), 0, 4, 1.0)(np.array([1]))
    array([1.5])
    """
    if isinstance(schedule, SqrtOf):
        return SqrtOf(resolved(schedule.schedule, start, total, pass_steps))
    if not isinstance(schedule, Linear) or schedule.total is not None:
        return schedule
    if total is None:
        passes = InverseTime(schedule.scale * np.sqrt(10.0), 10.0, 0.5)
        # A chunk of steps may begin before the leg does.
        return lambda t: passes(np.maximum(np.asarray(t) - start, 0) / pass_steps)
    return replace(schedule, start=start, total=max(start + 1, total))


def evaluated(schedule: Schedule, steps: Ints, pass_steps: float, name: str) -> Floats:
    """Return the values of a schedule at some steps, checked."""
    by_pass = getattr(innermost(schedule), "per", "step") == "pass"
    indices = (steps // pass_steps).astype(np.int64) if by_pass else steps
    values = np.asarray(schedule(indices), np.float64)
    values = np.broadcast_to(values, steps.shape)
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        bad = values[~(np.isfinite(values) & (values >= 0))][0]
        raise ValueError(f"{name} must be finite and not negative, got {bad} from {schedule!r}")
    return np.ascontiguousarray(values)


class Timetable:
    """Rates, radii and progress of the steps of one recipe.

    Parameters
    ----------
    learning_rate, radius
        The schedules.
    pass_steps
        Steps per pass.
    start, total
        The leg: first and last step; ``total=None`` has no end.

    Attributes
    ----------
    rates, radii, progress
        Values for the chunk of steps that was covered last; progress is the part of the leg that
        is over.

    Examples
    --------
    >>> table = Timetable(Linear(1.0), Linear(0.5), pass_steps=2.0, total=4)
    >>> place = table.cover(1)
    >>> float(table.rates[place]), float(table.radii[place]), float(table.progress[place])
    (0.5, 0.25, 0.25)
    """

    def __init__(
        self,
        learning_rate: Schedule,
        radius: Schedule,
        *,
        pass_steps: float,
        start: int = 0,
        total: int | None = None,
    ) -> None:
        self.learning_rate, self.radius, self.pass_steps = learning_rate, radius, pass_steps
        self.first = -1  # the first step of the chunk, counted from 0
        self.rates: Floats = np.empty(0)
        self.radii: Floats = np.empty(0)
        self.progress: Floats = np.empty(0)
        self.begin(start, total)

    def begin(self, start: int, total: int | None) -> None:
        """Begin a leg at a step, to end at another one."""
        self.start, self.total = start, total
        self.first = -1

    def cover(self, step: int) -> int:
        """Have the values cover a step (counted from 0); return its place in the chunk."""
        place = step % CHUNK
        if step - place != self.first:
            self.first = step - place
            self._evaluate()
        return place

    def _evaluate(self) -> None:
        steps = np.arange(self.first + 1, self.first + 1 + CHUNK)
        self.rates = self._values(self.learning_rate, steps, "learning_rate")
        self.radii = self._values(self.radius, steps, "radius")
        self.progress = 1.0 - self._values(Linear(), steps - 1, "progress")

    def _values(self, schedule: Schedule, steps: Ints, name: str) -> Floats:
        leg = resolved(schedule, self.start, self.total, self.pass_steps)
        return evaluated(leg, steps, self.pass_steps, name)

    def state_dict(self) -> dict[str, Any]:
        """Return the leg; everything else follows from it."""
        return {"start": self.start, "total": self.total}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a leg."""
        start, total = state["start"], state["total"]
        if start < 0 or (total is not None and total < 0):
            raise ValueError(f"a leg from {start} to {total}")
        self.begin(int(start), None if total is None else int(total))
