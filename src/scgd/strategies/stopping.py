"""When to stop: what restarts brought tells whether anything is left to gain."""

from __future__ import annotations

from scgd.strategies.budget import TOL

AGREED = 2
"""Independent restarts that come back to the best value, after which it is believed, and so many
more as ended elsewhere."""
DESCENTS, POPULATIONS = 60, 7
"""Restarts of either kind that end elsewhere and higher, after which no more is worth its while."""
ROUNDING = 1e-11
"""Part of a value by which two descents to one minimum may end apart: digits that steps cannot see,
since f moves by the square of what x does."""


class StoppingRule:
    """Keeps count of restarts since the last gain that was worth it.

    A gain is worth it above ``tol`` times what was gained since x0. Restarts from elsewhere that
    come down to the best value say that it is the lowest; those that end higher say that there are
    other minima, perhaps lower ones, and it takes many of them to say that there are none. While
    nothing has improved on x0, coming back to its value says nothing.

    Parameters
    ----------
    tol
        The share of the gain so far that counts as nothing; 0: never end.
    first
        The value at x0.
    precision
        What f changes by for no reason: such a gain is never worth it.

    Examples
    --------
    >>> ending = StoppingRule(1e-10, first=100.0)
    >>> for value in (1e-12, 3.9, 2e-12):
    ...     ending.note("descent", before=0.0, value=value)
    >>> ending.over  # two came back, but one ended elsewhere
    False
    >>> ending.note("population", before=0.0, value=0.0)
    >>> ending.over
    True
    """

    def __init__(self, tol: float, first: float, precision: float = 0.0) -> None:
        self.tol, self.first, self.precision = tol, first, precision
        self.n_agreed = 0
        self.failed = {"descent": 0, "population": 0}

    def worth(self, best: float) -> float:
        """Return the gain below which nothing was gained; infinite values stand for none."""
        gained = self.first - best
        return max(self.tol * gained, self.precision) if 0 < gained < float("inf") else 0.0

    def least(self, best: float) -> float:
        """Return what a restart may leave, also where a run is never to end."""
        gained = self.first - best
        return max(self.worth(best), TOL * gained if 0 < gained < float("inf") else 0.0)

    def note(self, kind: str, before: float, value: float) -> None:
        """Take note of where a restart ended; ``before`` is the best value when it began."""
        worth = self.worth(before)
        if value < before - worth:
            self.gained()
        elif value <= before + self._same(before) and before < self.first:
            self.n_agreed += 1
        else:
            self.failed[kind] += 1

    def _same(self, best: float) -> float:
        """Return how much higher the same minimum may seem."""
        return max(10 * self.tol * (self.first - best), ROUNDING * abs(best), 3 * self.precision)

    def gained(self) -> None:
        """Begin to count afresh."""
        self.n_agreed = 0
        self.failed = dict.fromkeys(self.failed, 0)

    @property
    def over(self) -> bool:
        """Whether another restart is not worth its while."""
        if self.tol == 0:
            return False
        many = self.failed["descent"] >= DESCENTS and self.failed["population"] >= POPULATIONS
        return self.n_agreed >= AGREED + sum(self.failed.values()) or many
