"""How far a search of coordinates may look from x0: a length that doubles while that pays."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.problem import Problem
from scgd.searches.arms.box import REACH
from scgd.typing import Floats, Ints

__all__ = ["Leash"]


class Leash:
    """Keep entries within the bounds and within ``reach`` units of x0.

    When a search goes to a better point beyond half of the reach, it doubles.

    Parameters
    ----------
    problem
        Where x0, bounds and units come from.

    Examples
    --------
    >>> leash = Leash(Problem.check([0.0, 0.0], [(-1, None), (None, None)], 2.0))
    >>> leash.inside(0, -7.0), leash.inside(1, -70.0)
    (-1.0, -20.0)
    >>> leash.moved(1, -20.0)
    >>> leash.reach, leash.farthest
    (20.0, 10.0)
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.reach, self.farthest = REACH, 0.0

    def inside(self, k: int, value: float) -> float:
        """Return the nearest entry of coordinate ``k`` that may be asked; note how far it is."""
        start, most = float(self.problem.x0[k]), self.reach * float(self.problem.unit[k])
        value = self.problem.inside(k, min(max(value, start - most), start + most))
        self.farthest = max(self.farthest, abs(value - start) / float(self.problem.unit[k]))
        return value

    def clip(self, coords: Ints, entries: Floats) -> Floats:
        """Return the nearest entries of some coordinates that may be asked."""
        problem, unit = self.problem, self.problem.unit[coords]
        start = problem.x0[coords]
        entries = np.clip(entries, start - self.reach * unit, start + self.reach * unit)
        if problem.lower.size:
            entries = np.clip(entries, problem.lower[coords], problem.upper[coords])
        self.farthest = max(self.farthest, float(np.max(np.abs(entries - start) / unit, initial=0)))
        return entries

    def moved(self, coords: Any, entries: Any) -> None:
        """Take note that the search went to a better point."""
        away = np.abs(entries - self.problem.x0[coords]) / self.problem.unit[coords]
        if float(np.max(away)) > self.reach / 2:
            self.reach *= 2

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        return {"reach": self.reach, "farthest": self.farthest}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another one."""
        self.reach, self.farthest = float(state["reach"]), float(state["farthest"])
