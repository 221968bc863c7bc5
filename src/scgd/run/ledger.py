"""The ledger of evaluations: how many were accepted, lost or repeated, and the best one seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scgd.checks import choice
from scgd.questions import Point, Question
from scgd.typing import Floats

__all__ = ["Best", "Ledger"]

CHOICES = ("raise", "skip")


class Best:
    """The lowest value seen and where; a better one costs as much as has moved since.

    Attributes
    ----------
    value, x
        The value (infinite before the first) and its point.
    """

    def __init__(self, n_coords: int) -> None:
        self.value = float("inf")
        self.x: Floats = np.zeros(n_coords)
        self.point: Point | None = None
        self.elsewhere: Any = None  # coordinates in which x is not the point as it was

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

    def offer(self, value: float, question: Question, j: int) -> None:
        """Take the j-th value of a question, which is the lowest so far."""
        if question.base is not None:  # its point has moved on
            self.value, self.point, self.x[...] = value, None, question.at(j)
        elif (place := question.place(j)) is not None:
            self.at(value, question.point, place, question.entries[j])
        else:
            self.at(value, question.point, slice(0), 0.0)

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        return {"value": self.value, "x": self.x.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another one."""
        self.value, self.point = state["value"], None
        self.x[...] = state["x"]


class Ledger:
    """What happened to the evaluations of a run.

    Parameters
    ----------
    n_coords
        The dimension.
    on_nonfinite
        ``"raise"`` a FloatingPointError for a value that is NaN or infinite, or ``"skip"`` it.
    repeats
        Whether f may repeat itself, so that its lowest value means something.

    Attributes
    ----------
    n_accepted, n_failed
        Values accepted, and how many of them were lost (not finite, or never made).
    best
        The lowest one; None where samples make values incomparable.
    """

    def __init__(self, n_coords: int, on_nonfinite: str, *, repeats: bool) -> None:
        choice(on_nonfinite, "on_nonfinite", CHOICES)
        self.on_nonfinite = on_nonfinite
        self.n_accepted = 0
        self.n_failed = 0
        self.best = Best(n_coords) if repeats else None

    def lost(self, value: float, number: int, point: Callable[[], Floats], *, far: bool) -> None:
        """Count a value that is not finite, or refuse it.

        ``far`` says that it was seen where nobody had looked before: then it tells only that this
        was too far. Minus infinity is an end that no search can go on from.
        """
        if self.on_nonfinite == "raise" and (not far or value == -np.inf):
            where = np.array2string(point(), threshold=8)
            raise FloatingPointError(
                f"fun returned {value} at evaluation {number}, x = {where}; mend fun, or pass "
                "on_nonfinite='skip' to do without such values"
            )
        self.n_failed += 1

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        best = None if self.best is None else self.best.state_dict()
        return {"n_accepted": self.n_accepted, "n_failed": self.n_failed, "best": best}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up the books of another run."""
        if min(state["n_accepted"], state["n_failed"]) < 0:
            raise ValueError("the ledger counts below zero")
        self.n_accepted, self.n_failed = int(state["n_accepted"]), int(state["n_failed"])
        if self.best is not None:
            self.best.load_state_dict(state["best"])
