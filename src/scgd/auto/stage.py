"""What a stage is: a piece of a run that asks for its own evaluations.

``probe`` lays out evaluations, ``learn`` takes their values (None when one was not finite), and
``finished`` ends it. Everything a stage remembers is listed in ``memory``, so that a run can be
saved between any two of its questions and go on bit for bit.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from scgd.estimators import BASE, Probes
from scgd.problem import Problem
from scgd.typing import Floats, Ints

NOWHERE: Floats = np.zeros(0)
Question = tuple[list[int], list[float]] | None
"""Coordinates and the values to set them to, one at a time; None for other questions."""

__all__ = ["Question", "Stage", "centred", "inside", "joint", "moved", "singles"]


class Stage:
    """The common ground of stages."""

    memory: ClassVar[tuple[str, ...]] = ()
    tolerant: ClassVar[bool] = True
    """Whether a value that is not finite tells this stage that it looked too far."""
    finished: bool = False
    n_points: int = 1

    def probe(self, theta: Floats, problem: Problem, rng: np.random.Generator) -> Probes:
        """Return the next evaluations."""
        raise NotImplementedError

    def question(self, theta: Floats, problem: Problem, rng: np.random.Generator) -> Question:
        """Return the next evaluations as single entries to set, if that is what they are.

        Until they are learnt, asking again with the same random numbers asks the same.
        """
        return None

    @property
    def draws(self) -> bool:
        """Whether the next question draws random numbers."""
        return True

    def learn(self, values: Floats | None) -> None:
        """Take their values; None when one was not finite."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        state = {}
        for name in ("finished", *self.memory):
            value = getattr(self, name)
            if isinstance(value, list):
                value = np.array(value, np.float64)
            elif isinstance(value, np.ndarray):
                value = value.astype(np.int64 if value.dtype == np.bool_ else value.dtype)
            state[name] = value
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another stage of the same kind."""
        for name in ("finished", *self.memory):
            value, mine = state[name], getattr(self, name)
            if isinstance(mine, list):
                value = value.tolist()
            elif isinstance(mine, np.ndarray):
                value = value.astype(mine.dtype)
            setattr(self, name, value)


def joint(theta: Floats, support: Ints, entries: Floats, problem: Problem) -> Probes:
    """Return points that set the whole support at once, one row of entries each, inside bounds."""
    if problem.lower.size:
        entries = np.clip(entries, problem.lower[support], problem.upper[support])
    n = len(entries)
    nowhere, zeros = np.full(n, BASE), np.zeros(n)
    return Probes(theta, support, np.zeros(len(support)), nowhere, entries, zeros)


def moved(theta: Floats, moves: Floats, problem: Problem) -> Probes:
    """Return the points theta + each row of moves."""
    return joint(theta, np.arange(theta.size), theta + moves, problem)


def centred(theta: Floats, reach: Floats, problem: Problem) -> tuple[Floats, Floats]:
    """Return the point nearest to theta with room to both sides, and how far one may go from it."""
    if not problem.lower.size:
        return theta, reach
    reach = np.minimum(reach, (problem.upper - problem.lower) / 2)
    return np.clip(theta, problem.lower + reach, problem.upper - reach), reach


def singles(theta: Floats, coords: Ints, entries: Floats) -> Probes:
    """Return points that set one coordinate each (theta itself where the coordinate is -1)."""
    return Probes(theta, coords, NOWHERE, coords, entries, np.zeros(len(coords)))


def inside(problem: Problem, k: int, value: float) -> float:
    """Return the nearest value within the bounds of coordinate ``k``."""
    if problem.lower.size:
        return min(max(value, float(problem.lower[k])), float(problem.upper[k]))
    return value
