"""How many evaluations a strategy may plan for, and when it has gained nothing for too long."""

from __future__ import annotations

import numpy as np

__all__ = ["TOL", "Budget", "Stall"]

PER_COORDINATE, LEAST = 200, 1000
"""Evaluations that a run without a limit plans for at first; a user of an unlimited run stops it by
time or target, so the plan only sets how fast schedules fall, and doubles when it is used up."""
TOL = 1e-10
"""The share of the gain so far that counts as nothing: far above rounding, far below any use."""


class Budget:
    """Evaluations: how many in all, how many are spent, how many are left.

    Whoever drives a strategy counts in ``spent`` before it sends values. A strategy only reads.

    Parameters
    ----------
    limit
        Evaluations in all; None where nothing limits them (then a plan doubles as it is used up).
    n_coords
        The dimension, for that plan.
    tol
        The share of the gain so far that counts as nothing; 0: never stop early.
    max_stall
        Under noise: evaluations without a significant gain that end a run; None for none.
    parent
        The budget that this one is a part of.

    Attributes
    ----------
    reserve
        Evaluations that are kept back: they are not left.

    Examples
    --------
    >>> budget = Budget(100, 5)
    >>> budget.spent += 30
    >>> part = budget.part(20)
    >>> budget.spent += 5
    >>> budget.left, part.left, part.spent, part.total
    (65, 15, 5, 20)
    """

    def __init__(
        self,
        limit: int | None,
        n_coords: int,
        tol: float = TOL,
        max_stall: int | None = None,
        parent: Budget | None = None,
    ) -> None:
        self.limit, self.n_coords, self.tol, self.max_stall = limit, n_coords, tol, max_stall
        self.parent = parent
        self._spent = self.reserve = 0
        self.began = 0 if parent is None else parent.spent

    @property
    def spent(self) -> int:
        """Evaluations made."""
        return self._spent if self.parent is None else self.parent.spent - self.began

    @spent.setter
    def spent(self, n: int) -> None:
        assert self.parent is None, "a part follows its whole"
        self._spent = n

    @property
    def total(self) -> int:
        """Evaluations to plan for."""
        if self.limit is not None:
            return self.limit
        planned = max(LEAST, PER_COORDINATE * self.n_coords)
        while 50 * self.spent >= 49 * planned:
            planned *= 2
        return planned

    @property
    def left(self) -> int:
        """Evaluations of them that are left."""
        mine = self.total - self.spent - self.reserve
        return mine if self.parent is None else min(mine, self.parent.left)

    def part(self, n: int) -> Budget:
        """Return the next n evaluations as a budget of their own."""
        return Budget(n, self.n_coords, self.tol, self.max_stall, parent=self)


class Stall:
    """Evaluations under noise since the last significant gain, against ``budget.max_stall``.

    Parameters
    ----------
    budget
        What counts evaluations.
    value
        The value at the beginning.
    """

    def __init__(self, budget: Budget, value: float = np.inf) -> None:
        self.budget, self.value, self.since = budget, value, budget.spent
        self.over = False

    def parts(self, n_evals: int, least: int, most: int = 40) -> int:
        """Return into how many parts to cut so many evaluations, so that a stall is noticed."""
        limit = self.budget.max_stall
        return least if limit is None else int(np.clip(n_evals // limit, least, max(most, least)))

    def see(self, value: float, error: float) -> bool:
        """Take the value of the best point; tell whether the run has stalled too long."""
        gained = value < self.value - 2 * error  # two standard errors are significant
        self.value = value if gained else self.value
        return self.note(gained)

    def note(self, gained: bool) -> bool:
        """Take whether something was gained; tell whether the run has stalled too long."""
        if gained:
            self.since = self.budget.spent
        limit = self.budget.max_stall
        self.over = limit is not None and self.budget.spent - self.since >= limit
        return self.over
