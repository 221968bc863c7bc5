"""A flag by which a clock or a signal stops loops between two evaluations."""

from __future__ import annotations

import numpy as np

from scgd.typing import Array

__all__ = ["Late", "Stop"]


class Stop:
    """A flag that is raised from outside and looked at between steps.

    ``raised`` is a list for loops in Python, which test it in a few nanoseconds, and ``array`` is
    for compiled ones. ``over`` says that there is no time left for another evaluation: a loop then
    gives up the step in hand.
    """

    def __init__(self) -> None:
        self.raised: list[int] = []
        self.over: list[int] = []
        self.array: Array = np.zeros(1, np.uint8)

    def set(self) -> None:
        """Have every loop stop before its next step."""
        self.array[0] = 1
        self.raised.append(1)

    def end(self) -> None:
        """Have every loop stop before its next evaluation."""
        self.over.append(1)
        self.set()

    def clear(self) -> None:
        """Let loops run."""
        self.raised.clear()
        self.array[0] = 0


class Late(Exception):
    """There was no time for the rest of a step, which therefore has not happened."""
