"""Wrappers that check whether values of a function that seems deterministic come again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scgd.problem import Problem
from scgd.strategies.asks import (
    Along,
    Asking,
    Gradient,
    Outcome,
    Report,
    Strategy,
    Wait,
    lowest,
    point_of,
)
from scgd.strategies.budget import Budget

ROUNDING = 1e-12
"""Relative differences that sums in another order may make (another thread, another machine)."""
UNLIKELY = 10.0
"""Standard deviations that two values never differ by, the luckiest of thousands among them."""


def verified(inner: Asking, budget: Budget, first: int, noise: float = 0.0) -> Asking:
    """Run a strategy for a deterministic function; evaluate its best point again now and then.

    Few evaluations do not show noise that only some calls have. A strategy that keeps the best
    value seen then keeps a lucky one, which does not come again: the strategy is stopped. Return
    what it found; None where it was stopped.

    Parameters
    ----------
    inner
        The strategy at work.
    budget
        Of the run.
    first
        The evaluations after which that is done first, and again whenever there are twice as many:
        where few calls are noisy, the more there were, the likelier the best one is among them.
    noise
        The standard deviation that values are known to have.
    """
    best, at, j = float("inf"), None, 0  # the array that was yielded must not change: a reference
    due, send = budget.spent + first, inner.send
    values: Any = None
    try:
        while True:
            points = send(values)
            values = yield points
            if values is not None and not isinstance(points, Gradient):
                k, low = lowest(values)
                if low < best:
                    best, at, j = low, points, k
            if budget.spent >= due and at is not None:
                again = yield point_of(at, j)
                due = 2 * budget.spent if np.isfinite(again) else 0  # a failed value tells nothing
                if abs(again - best) > ROUNDING * abs(best) + UNLIKELY * noise:
                    inner.close()
                    return None
    except StopIteration as end:
        return end.value or Outcome()


@dataclass(frozen=True)
class Voted:
    """What a strategy found on values that were voted on.

    Attributes
    ----------
    agrees
        Whether most pairs of values agreed; where not, the strategy was stopped.
    found
        What it returned; None where it was stopped.
    misled
        Its best value, where that turned out to be an outlier; else NaN. Try again with it among
        the ``outliers``.
    """

    agrees: bool
    found: Any = None
    misled: float = float("nan")


class Votes:
    """Tells which values of a point to believe: two that agree are free of noise.

    Outliers may be equal to each other (a simulator that crashes and returns 0). A value that was
    outvoted at more points than it was believed at is an outlier: ``unanimous`` values of a point
    must be equal to it, and none other, before it is believed.

    Parameters
    ----------
    outliers
        Values that are known to be outliers.
    most, unanimous
        Values of a point after which their median must do, and so many equal ones that an outlier
        is believed.
    """

    def __init__(self, outliers: Sequence[float] = (), most: int = 12, unanimous: int = 6) -> None:
        # By value: at how many more points it was outvoted than believed.
        self.outliers: dict[float, int] = dict.fromkeys(outliers, 1)
        self.most, self.unanimous = most, unanimous
        self.n_points = self.n_agreed = 0
        self.misled, self.best = float("nan"), float("inf")

    @property
    def agrees(self) -> bool:
        """Whether three pairs in ten have agreed so far, once there are ten."""
        return self.n_points < 10 or self.n_agreed >= 0.3 * self.n_points

    def believed(self, votes: list[float]) -> float:
        """Return the value that votes agree on, the median of many; NaN where there is neither."""
        for value in votes:
            n_equal = sum(equal(other, value) for other in votes)
            usual = self.outliers.get(value, 0) <= 0
            if n_equal > 1 and (usual or n_equal == len(votes) >= self.unanimous):
                return value
        return float(np.median(votes)) if len(votes) >= self.most else float("nan")

    def learn(self, value: float, votes: list[float]) -> None:
        """Count the values that were outvoted at a point, and an outlier that was believed."""
        for other in {vote for vote in votes if vote < np.inf and not equal(vote, value)}:
            self.outliers[other] = self.outliers.get(other, 0) + 1
            if self.outliers[other] == 1 and other == self.best:
                self.misled = other
        if len(votes) > 1 and value in self.outliers:  # a rank is no belief
            self.outliers[value] -= 1
        self.best = min(self.best, value)


def equal(a: float, b: float) -> bool:
    """Tell whether two values differ by rounding at most."""
    return a == b or abs(a - b) <= ROUNDING * min(abs(a), abs(b)) < np.inf


def voted(
    inner: Strategy,
    problem: Problem,
    budget: Budget,
    rng: np.random.Generator,
    outliers: Sequence[float] = (),
) -> Asking:
    """Run a strategy for a deterministic function on values of which most are exact.

    A point is evaluated twice, and again until two values agree. The points of a population are
    evaluated once: it goes by ranks, of which a few may be wrong; what would be the best value so
    far must come twice. The strategy plans for the budget at the price it pays for a value.

    ``outliers`` are values that are known to be such. It returns a :class:`Voted`.
    """
    votes, best, begun = Votes(outliers), float("inf"), budget.spent
    own = Budget(0, budget.n_coords, budget.tol, budget.max_stall)
    asking = inner(problem, own, rng)
    sent: Any = None
    try:
        while votes.agrees and votes.misled != votes.misled:
            price = (budget.spent - begun) / own.spent if own.spent else 2.0
            own.limit = own.spent + int(budget.left / max(1.0, price))
            asked = asking.send(sent)
            if isinstance(asked, Report):  # the lowest value seen may be an outlier
                sent = yield replace(asked, deterministic=None, message=None)
                continue
            if isinstance(asked, Wait | Gradient):
                sent = yield asked
                continue
            settled = yield from vote(votes, asked, budget)
            low = int(settled.argmin())
            if settled[low] < best:
                best = float(settled[low])
                yield Report(x=point_of(asked, low), values=[best], noise=0.0)
            sent = np.where(np.isinf(settled), np.nan, settled)
            own.spent += len(settled)
            if asked.ndim == 1:
                sent = float(sent[0])
            elif not isinstance(asked, Along):
                sent = sent.reshape(asked.shape[:-1])
    except StopIteration as end:
        return Voted(votes.agrees, end.value)
    asking.close()
    return Voted(votes.agrees, None, votes.misled)


def vote(votes: Votes, asked: Any, budget: Budget) -> Asking:
    """Evaluate points until each has a value that is believed; return the values."""
    points = np.asarray(asked)
    points = points.reshape(-1, points.shape[-1])
    n = len(points)
    by_ranks = n > 1 and not isinstance(asked, Along)
    seen, settled = [list[float]() for _ in points], np.full(n, np.nan)
    todo = first = np.repeat(np.arange(n), 1 if by_ranks else 2)
    while len(todo):
        values = yield points[todo]
        for k, value in zip(todo.tolist(), values.tolist(), strict=True):
            seen[k].append(value if value == value else np.inf)
        for k in set(todo.tolist()):
            alone = by_ranks and len(seen[k]) == 1 and seen[k][0] >= votes.best
            settled[k] = seen[k][0] if alone else votes.believed(seen[k])
        if todo is first and not by_ranks:
            votes.n_points += n
            votes.n_agreed += int(np.count_nonzero(~np.isnan(settled)))
        todo = np.flatnonzero(np.isnan(settled))[: max(1, budget.left)]
    for value, own in zip(settled.tolist(), seen, strict=True):
        votes.learn(value, own)
    return settled


def share_that_agrees(values: Sequence[float]) -> float:
    """Return the largest part of some values that are equal.

    Examples
    --------
    >>> share_that_agrees([2.0, 7.0, 2.0, 2.0])
    0.75
    >>> share_that_agrees([1.0, 2.0])
    0.0
    """
    counts = np.unique(np.array(values), return_counts=True)[1]
    most = int(counts.max(initial=1))
    return most / len(values) if most > 1 else 0.0
