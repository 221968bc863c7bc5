"""What a method's schedules are worth at each step, a chunk of steps at a time.

A run's own clock counts steps from 1. Schedules may count passes instead, and some fall over the
whole budget: a *stage* is the stretch of steps over which they do. All of that is settled here, for
black boxes, linear models and torch alike.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scgd.samples import CHUNK
from scgd.schedules import InverseTime, Linear, Schedule, SqrtOf, as_schedule, values_at
from scgd.typing import Floats

LOOKAHEAD = 256
"""How many phases' shares are computed at a time."""


def innermost(schedule: Schedule) -> Schedule:
    """Return the schedule whose index is what another one's is."""
    return innermost(schedule.schedule) if isinstance(schedule, SqrtOf) else schedule


def resolved(schedule: Schedule, start: int, total: int | None, passes_per_step: float) -> Schedule:
    """Fill in the stage of a schedule that falls over the run.

    Parameters
    ----------
    schedule
        Any schedule; those without an open end come back as they are.
    start, total
        The first and the last step of the stage. Without an end (None) a linear fall becomes an
        inverse square root in passes.
    passes_per_step
        The part of a pass that a step is.

    Examples
    --------
    >>> resolved(Linear(2.0), 0, 4, 1.0)(np.array([1]))
    array([1.5])
    """
    if isinstance(schedule, SqrtOf):
        return SqrtOf(resolved(schedule.schedule, start, total, passes_per_step))
    if not isinstance(schedule, Linear) or schedule.total is not None:
        return schedule
    if total is None:
        passes = InverseTime(schedule.scale * np.sqrt(10.0), 10.0, 0.5)
        # A chunk of steps may begin before the stage does.
        return lambda t: passes(np.maximum(np.asarray(t) - start, 0) * passes_per_step)
    return replace(schedule, start=start, total=max(start + 1, total))


class Timetable:
    """Rates, radii and progress of the steps of one method.

    Parameters
    ----------
    learning_rate, radius
        The schedules.
    n_coords, n_draws
        The dimension, and the draws of a step: a pass is as many draws as there are coordinates.
    start, total
        The stage: first and last step; ``total=None`` has no end.

    Attributes
    ----------
    rates, radii, progress
        Values for the chunk of steps that was covered last; progress is the part of the stage that
        is over.

    Examples
    --------
    >>> table = Timetable(Linear(1.0), Linear(0.5), n_coords=2, total=4)
    >>> place = table.cover(1)
    >>> float(table.rates[place]), float(table.radii[place]), float(table.progress[place])
    (0.5, 0.25, 0.25)
    """

    def __init__(
        self,
        learning_rate: Schedule,
        radius: Schedule,
        *,
        n_coords: int,
        n_draws: int = 1,
        start: int = 0,
        total: int | None = None,
    ) -> None:
        self.learning_rate, self.radius = learning_rate, radius
        self.n_coords, self.n_draws = n_coords, n_draws
        self.first = -1  # the first step of the chunk, counted from 0
        self.rates: Floats = np.empty(0)
        self.radii: Floats = np.empty(0)
        self.progress: Floats = np.empty(0)
        self.begin(start, total)

    def begin(self, start: int, total: int | None) -> None:
        """Begin a stage at a step, to end at another one."""
        self.start, self.total = start, total
        self.first = -1

    def cover(self, step: int) -> int:
        """Have the values cover a step (counted from 0); return its place in the chunk."""
        place = step % CHUNK
        if step - place != self.first:
            self.first = step - place
            self.rates, self.radii = self.span(self.first, CHUNK)
            self.progress = 1.0 - self._values(Linear(), self.first, CHUNK, "progress")
        return place

    def span(self, first: int, n: int) -> tuple[Floats, Floats]:
        """Return the rates and radii of the ``n`` steps after ``first``."""
        return (
            self._values(self.learning_rate, first + 1, n, "learning_rate"),
            self._values(self.radius, first + 1, n, "radius"),
        )

    def _values(self, schedule: Schedule, first: int, n: int, name: str) -> Floats:
        """Return a schedule at n consecutive steps; each pass is evaluated once where it counts."""
        stage = resolved(schedule, self.start, self.total, self.n_draws / self.n_coords)
        steps = np.arange(first, first + n)
        if getattr(innermost(stage), "per", "step") == "pass":
            passes = steps * self.n_draws // self.n_coords
            values = values_at(stage, np.arange(passes[0], passes[-1] + 1), name)[
                passes - passes[0]
            ]
        else:
            values = values_at(stage, steps, name)
        if np.any(values < 0):
            bad = values[values < 0][0]
            raise ValueError(f"{name} must not be negative, got {bad} from {schedule!r}")
        return np.ascontiguousarray(values)

    def state_dict(self) -> dict[str, Any]:
        """Return the stage; everything else follows from it."""
        return {"start": self.start, "total": self.total}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a stage."""
        start, total = state["start"], state["total"]
        if start < 0 or (total is not None and total < 0):
            raise ValueError(f"a stage from {start} to {total}")
        self.begin(int(start), None if total is None else int(total))


class Mixings:
    """The uniform share of the weights made at the end of phase n = 1, 2, ..., looked up ahead.

    Parameters
    ----------
    mixing
        A number, a schedule of n, or None for nothing.

    Examples
    --------
    >>> Mixings(InverseTime(0.5)).at(2)
    0.25
    """

    def __init__(self, mixing: float | Schedule | None) -> None:
        nothing = mixing is None or mixing == 0
        self._schedule = None if nothing else as_schedule(mixing, "mixing")  # type: ignore[arg-type]
        self._values: list[float] = []
        self._first = 0

    def at(self, n: int) -> float:
        """Return the share after phase n."""
        i = n - self._first
        if not 0 <= i < len(self._values):
            self._first, i = n, 0
            self._values = self.span(n - 1, LOOKAHEAD).tolist()
        return self._values[i]

    def span(self, first: int, n: int) -> Floats:
        """Return the shares after the ``n`` phases that follow phase ``first``."""
        if self._schedule is None:
            return np.zeros(n)
        return np.clip(
            values_at(self._schedule, np.arange(first + 1, first + 1 + n), "mixing"), 0, 1
        )
