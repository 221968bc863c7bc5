"""The ledger of evaluations: how many were accepted or failed, and the best one seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

from scgd.checkpoint import state_of, take_up
from scgd.outcomes import is_caught
from scgd.questions import Point, Question
from scgd.typing import Floats

STATE = ("n_accepted", "n_failed", "worst", "first", "best")
"""What a checkpoint keeps of a ledger."""


@dataclass(eq=False)
class Best:
    """The lowest value seen and where; a better one costs as much as has moved since.

    Parameters
    ----------
    x, value
        Its point, and the value (infinite before the first).
    """

    x: Floats
    value: float = float("inf")
    point: Point | None = None
    elsewhere: Any = None  # coordinates in which x is not the point as it was

    def at(self, value: float, point: Point, coords: Any, entries: Any) -> None:
        """Take a value seen at a point with some coordinates set."""
        self.value = value
        if point is not self.point:
            self.point = point
            point.trail.everywhere()
        point.trail.catch_up(self.x, point.x)
        if self.elsewhere is not None:
            self.x[self.elsewhere] = point.x[self.elsewhere]
        self.x[coords] = entries
        self.elsewhere = coords

    def put(self, value: float, x: Floats) -> None:
        """Take a value that was seen somewhere else."""
        self.value, self.point, self.x[...] = value, None, x

    def offer(self, value: float, question: Question, j: int) -> None:
        """Take the j-th value of a question, which is the lowest so far."""
        if question.base is not None:  # its point has moved on
            self.put(value, question.at(j))
        elif (place := question.place(j)) is not None:
            self.at(value, question.point, place, question.entries[j])
        else:
            self.at(value, question.point, slice(0), 0.0)

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        return state_of(self, ("value", "x"))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another one."""
        take_up(self, ("value", "x"), state)
        self.point = None


@dataclass(eq=False)
class Ledger:
    """What happened to the evaluations of a run.

    Parameters
    ----------
    on_nonfinite
        ``"raise"`` a FloatingPointError for a value that is NaN or infinite, ``"skip"`` it, or have
        it count as the ``"worst"`` finite one so far.
    best
        The lowest value; None where samples make values incomparable.
    sign
        -1 where values are the negatives of the user's.

    Attributes
    ----------
    n_accepted, n_failed
        Values accepted, and how many of them failed (not finite, or never made).
    first
        F at x0, where that was evaluated before anything else; NaN where it was not, or failed.
    noted, marks
        The values that a loop has seen since it began, and (how many, when) now and then; None
        where they are not wanted. Compiled loops note nothing.
    worst
        The highest finite one (minus infinity before the first), where it stands in for others.
    """

    on_nonfinite: str
    best: Best | None
    sign: float = 1.0
    n_accepted: int = 0
    n_failed: int = 0
    first: float = float("nan")
    noted: list[float] | None = None
    marks: list[tuple[int, float]] = field(default_factory=list)
    worst: float = -float("inf")

    def mark(self) -> None:
        """Note when the values noted so far had been seen."""
        if self.noted is not None:
            self.marks.append((len(self.noted), monotonic()))

    @property
    def stand_in(self) -> float:
        """What a strategy is sent in the place of a failed value."""
        return self.worst if self.worst > -np.inf else float("nan")

    def accepted(self, value: Any) -> None:
        """Count a value that is entered."""
        self.n_accepted += 1
        if self.on_nonfinite == "worst" and isinstance(value, float) and value > self.worst:
            self.worst = value

    def refuse(
        self,
        value: float,
        number: int,
        point: Callable[[], Floats],
        who: str = "fun",
        *,
        may_fail: bool,
    ) -> None:
        """Refuse a value that is not finite where the user wants that; ``who`` returned it.

        ``may_fail`` says that it was seen where nobody had looked before: then it tells only that
        this was too far; the first value of a run must be sound all the same. Minus infinity is an
        end that no search can go on from. An exception that the user wants counted is never
        refused.
        """
        refused = not may_fail or number == 0 or value == -np.inf
        if self.on_nonfinite == "raise" and refused and not is_caught(value):
            where = np.array2string(point(), threshold=8)
            raise FloatingPointError(
                f"{who} returned {self.sign * value} at evaluation {number}, x = {where}; mend "
                f"{who.split()[-1]}, or pass failures='skip' to do without such values"
            )

    def failed(
        self, value: float, number: int, point: Callable[[], Floats], *, may_fail: bool
    ) -> None:
        """Count a value of fun that is not finite, or refuse it."""
        self.refuse(value, number, point, may_fail=may_fail)
        self.n_failed += 1

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        return state_of(self, STATE)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up the ledger of another run."""
        if (self.best is None) != (state["best"] is None):
            raise ValueError("the ledger keeps a best point or not")
        take_up(self, STATE, state)
        if min(self.n_accepted, self.n_failed) < 0:
            raise ValueError("the ledger counts below zero")
