"""Data parallel training: all processes draw the same coordinates, so only those are reduced."""

from __future__ import annotations

from typing import Any

from scgd.typing import Array

__all__ = ["Team"]


class Team:
    """The processes that train together, or this one alone.

    Parameters
    ----------
    group
        A process group, or ``None`` for a single process.
    check_every
        How many steps lie between two comparisons of the processes' states (0: never).
    """

    def __init__(self, group: Any, check_every: int) -> None:
        self.group, self.check_every = group, check_every
        self.n_steps = 0

    @classmethod
    def of(cls, group: Any, check_every: int) -> Team:
        """Return the team of a process group."""
        return cls(group, check_every)

    def agree(self, seed: int) -> int:
        """Return the seed of the first process."""
        return seed

    def mean(self, values: Array) -> None:
        """Replace values by their mean over the processes, in place."""

    def mean_of(self, values: Array) -> Array:
        """Return the mean of values over the processes."""
        self.mean(values)
        return values

    def check(self, optimizer: Any) -> None:
        """Compare the states of the processes now and then."""
