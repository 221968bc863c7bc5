"""When a run under noise has gained nothing for too long."""

from __future__ import annotations

import numpy as np

from scgd.strategies.budget import Budget

__all__ = ["Stall"]


class Stall:
    """Evaluations since the last significant gain, against ``budget.max_stall``.

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
