"""Questions that are open: their numbers and what has arrived of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.questions import Point, Question
from scgd.typing import Floats

__all__ = ["Open", "open_state", "reopened"]


class Open:
    """A question that is open: its numbers and the values that have arrived.

    Attributes
    ----------
    first
        The number of its first evaluation; the others follow.
    values
        What has arrived; None where nothing has.
    n_left
        How many are still to come.
    solver
        Who asked.
    """

    def __init__(self, question: Question, first: int, solver: str) -> None:
        self.question, self.first, self.solver = question, first, solver
        self.values: list[Any] = [None] * len(question)
        self.n_left = len(question)

    @property
    def missing(self) -> list[int]:
        """The places of values that are still to come."""
        return [j for j, value in enumerate(self.values) if value is None]


def open_state(opened: Open) -> dict[str, Any]:
    """Return an open question and what has arrived of it, for a checkpoint."""
    arrived = [j for j, value in enumerate(opened.values) if value is not None]
    values: Floats = np.array([opened.values[j] for j in arrived], np.float64)
    return {
        "question": opened.question.state_dict(),
        "solver": opened.solver,
        "arrived": np.array(arrived, np.int64),
        "values": values,
    }


def reopened(point: Point, first: int, saved: dict[str, Any]) -> Open:
    """Return an open question that was saved."""
    opened = Open(Question.from_state(point, saved["question"]), first, saved["solver"])
    if first < 0 or len(saved["arrived"]) >= len(opened.question):
        raise ValueError("an open question has no value to come")
    for j, value in zip(saved["arrived"].tolist(), saved["values"].tolist(), strict=True):
        if not 0 <= j < len(opened.values):
            raise ValueError("a value is not one of its question's")
        opened.values[j] = value
        opened.n_left -= 1
    return opened
