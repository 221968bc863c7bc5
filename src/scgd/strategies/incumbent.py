"""The best candidates of a run under noise, and their re-evaluation.

The lowest of many noisy values is the luckiest one; yet a point that lies far below all others is
not luck. So the few best of all evaluations are kept, and those that may beat the incumbent are
evaluated again: only fresh values decide, and only they are reported.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from scgd.problem import Problem
from scgd.strategies.asks import (
    Along,
    Asking,
    Outcome,
    Report,
    Steps,
    Strategy,
    Wait,
    n_asked,
    point_of,
)  # fmt: skip
from scgd.strategies.budget import Budget
from scgd.strategies.comparison import compared, standard_error
from scgd.typing import Floats

__all__ = ["Candidates", "Reevaluated", "reevaluate", "with_incumbent"]

FORGET = 0.85
"""What each group of repeats leaves of the squares before it: noise may fall with f, and six or
seven groups tell it well enough."""
SHARE, LEAST, MOST = 0.03, 6, 40
"""The part of the budget for the last re-evaluation, and how few and many evaluations it may have:
fewer than three fresh values have no standard error to speak of, 20 of each tell candidates apart
that lie a standard deviation from each other. Twice as many cost the gap a tenth."""
LUCK = 2.5
"""Standard deviations below the incumbent from which a value at the end competes with it."""
CLEAR, BETTER = 4.0, 1.65
"""Standard errors below x0 from which x is better without fresh values of both (what was chosen for
its values is lucky), and with them: noise alone does that once in twenty times."""
CERTAIN = 1e6
"""Standard deviations that need no second look: then f is deterministic for all that matters."""


@dataclass
class Candidate:
    """A point, its values and their mean, and whether it was re-evaluated."""

    x: Floats
    values: list[float] = field(default_factory=list)
    mean: float = 0.0
    revisited: bool = False

    def add(self, value: float) -> None:
        """Take another value."""
        self.values.append(value)
        self.mean += (value - self.mean) / len(self.values)


class Candidates:
    """The points with the lowest values, and the noise level that repeats tell.

    Parameters
    ----------
    x0
        A point whose values are all kept.
    noise
        The standard deviation of the noise, where it is known.
    size
        How many points are kept.

    Examples
    --------
    >>> seen = Candidates(np.array([0.5]), noise=1.0)
    >>> seen.see(np.array([[0.0], [1.0], [2.0]]), np.array([5.0, -4.0, np.nan]))
    >>> [float(one.x[0]) for one in seen.below(5.0, 2.5)]
    [1.0]
    """

    def __init__(self, x0: Floats, noise: float | None = None, size: int = 8) -> None:
        self.known, self.size = noise, size
        self.start, self.best = Candidate(x0), list[Candidate]()
        self._squares = self._free = 0.0
        self._worst = np.inf
        self._firsts = {float(x0[0])}  # a quick look for repeats

    @property
    def noise(self) -> float:
        """The standard deviation of the noise; 0 where nothing is known of it."""
        if self.known is not None:
            return self.known
        return float(np.sqrt(self._squares / self._free)) if self._free > 0 else 0.0

    def see(self, points: Any, values: Any) -> None:
        """Take points (as a strategy yields them) and their values; NaN is a failed evaluation.

        A point is copied only where its value is among the lowest.
        """
        if isinstance(points, Along):
            for j, value in enumerate([values] if points.single else values.tolist()):
                if value < self._worst:
                    self._enter(point_of(points, j), value)
            return
        if points.ndim > 1:
            self._note_repeats(points, values)
        rows = points.reshape(-1, points.shape[-1])
        seen = [values] if points.ndim == 1 else values.reshape(-1).tolist()
        for x, first, value in zip(rows, rows[:, 0].tolist(), seen, strict=True):
            if value < self._worst or (first in self._firsts and value < np.inf):
                self._enter(x, value)

    def _note_repeats(self, points: Floats, values: Floats) -> None:
        if len(points) < 2 or points.flat[0] != points[1].flat[0]:
            return
        if points.ndim == 2:
            points, values = points[:, None], values[:, None]
        for k, column in enumerate(values.T):
            same = (points[:, k] == points[0, k]).all(axis=1) & np.isfinite(column)
            some = column[same]
            if len(some) > 1:
                self._squares *= FORGET
                self._free *= FORGET
                self._squares += float(np.sum((some - some.mean()) ** 2))
                self._free += len(some) - 1

    def _enter(self, x: Floats, value: float) -> None:
        for one in (self.start, *self.best):
            if one.x[0] == x[0] and np.array_equal(one.x, x):
                one.add(value)
                break
        else:
            if value >= self._worst:
                return
            self.best.append(Candidate(x.copy(), [value], value))
        self.best.sort(key=lambda one: one.mean)
        del self.best[self.size :]
        if len(self.best) == self.size:
            self._worst = self.best[-1].mean
        self._firsts = {float(one.x[0]) for one in (self.start, *self.best)}

    def below(self, value: float, n_deviations: float) -> list[Candidate]:
        """Return points not yet re-evaluated whose means lie so far below a value, best first."""
        far = n_deviations * self.noise
        some = [one for one in self.best if not one.revisited]
        return [one for one in some if one.mean < value - far / np.sqrt(len(one.values))]


@dataclass(frozen=True)
class Reevaluated:
    """The winner of a re-evaluation, its fresh values, and whether it is not the incumbent."""

    x: Floats
    values: Floats
    changed: bool

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return float(self.values.mean()) if len(self.values) else float("nan")


def reevaluate(
    rivals: Sequence[Floats],
    n_evals: int,
    incumbent: Floats,
    values: Floats,
    noise: float = 0.0,
) -> Generator[Any, Any, Reevaluated]:
    r"""Evaluate rivals and the incumbent by sequential halving; return the winner.

    Every round doubles the number of values; rivals that do not lie below the incumbent drop out,
    and so does the worse half of the others. One of m rivals replaces the incumbent only if its
    fresh values lie below by :math:`\sqrt{2 \log 10 m}` standard errors, what the luckiest of m
    reaches once in ten times.

    Parameters
    ----------
    rivals
        Points that may be better; their earlier values do not count.
    n_evals
        Evaluations, at most.
    incumbent, values
        The point to beat, and independent values of it.
    noise
        The standard deviation of a value.
    """
    points = [incumbent, *(x for x in rivals if not np.array_equal(x, incumbent))]
    seen = [values[np.isfinite(values)], *(np.empty(0) for _ in points[1:])]
    asked, alive = [len(part) for part in seen], list(range(1, len(points)))
    least, wanted, left = float(np.sqrt(2 * np.log(10 * max(1, len(alive))))), 1, n_evals

    def mean(k: int) -> float:
        return float(seen[k].mean()) if len(seen[k]) else np.inf

    def better(k: int, n_errors: float) -> bool:
        return mean(k) < mean(0) - n_errors * standard_error(seen[k], seen[0], noise)

    while alive and left > 0:
        todo = [k for k in (0, *alive) for _ in range(wanted - asked[k])][:left]
        if todo:
            answers = (yield np.stack([points[k] for k in todo])[:, None])[:, 0]
            left -= len(todo)
            for k in set(todo):
                fresh = answers[np.array(todo) == k]
                asked[k] += len(fresh)
                seen[k] = np.append(seen[k], fresh[np.isfinite(fresh)])
        alive = sorted((k for k in alive if mean(k) < mean(0)), key=mean)
        alive, wanted = alive[: (len(alive) + 1) // 2], 2 * wanted
        if len(alive) == 1 and better(alive[0], 2 * least):
            break
    best = min(range(1, len(points)), key=mean, default=0)
    k = best if len(seen[best]) and (not len(seen[0]) or better(best, least)) else 0
    return Reevaluated(points[k], seen[k], k > 0)


@dataclass
class _Watch:
    """What a wrapped strategy recommends, and what has been seen beside it."""

    seen: Candidates
    x: Floats
    values: Floats = field(default_factory=lambda: np.empty(0))
    deterministic: bool = False
    recommended: bool = False
    exact: bool = False  # whether the values at x have no noise: several agreed
    solver: str | None = None
    sampled: bool = False  # whether points of one row share a sample

    @property
    def silent(self) -> bool:
        """Whether the strategy has recommended nothing: then the best points seen are compared."""
        return not self.recommended and not self.deterministic

    @property
    def value(self) -> float:
        values = self.values[np.isfinite(self.values)]
        return float(values.mean()) if len(values) else np.inf

    @property
    def rivals(self) -> list[Candidate]:
        """Points that may be better than the incumbent."""
        if self.silent:
            return list(self.seen.best)
        if self.deterministic or self.exact or not self.seen.noise:
            return []
        return self.seen.below(self.value, LUCK)

    def better_than_x0(self, n_errors: float) -> bool:
        """Tell whether x lies below x0 by so many standard errors, of means or of medians."""
        here = compared(self.values, np.array(self.seen.start.values), paired=False)
        return here.better(n_errors) or here.against < -n_errors

    def note(self, report: Report) -> None:
        self.solver = report.solver or self.solver
        if report.deterministic is not None:
            self.deterministic = report.deterministic
        if report.x is not None:
            self.recommended, self.exact = True, report.noise == 0.0
            self.x = np.array(report.x)
            self.values = np.atleast_1d(np.array(() if report.values is None else report.values))


def with_incumbent(inner: Strategy, problem: Problem, budget: Budget, rng: Any) -> Asking:
    """Run a strategy; at the end re-evaluate the points that may beat what it recommends.

    About 3 % of the budget is kept back for that, and x0 competes too. Half of it, or all where
    nothing competes, are values of the winner that no choice has seen: only they are reported, so
    the value at the end is not too low.
    """
    watch = _Watch(Candidates(problem.x0, problem.noise), problem.x0, sampled=problem.sampled)
    own = Budget(budget.limit, budget.n_coords, budget.tol, budget.max_stall)
    own.reserve = reserved(watch, budget)
    running, sent, outcome = inner(problem, own, rng), None, None
    while True:
        own.limit, own.spent = budget.limit, budget.spent
        try:
            asked = running.send(sent)
        except StopIteration as end:
            outcome = end.value
            break
        sent = None
        if isinstance(asked, Report):
            watch.note(asked)
            own.reserve = reserved(watch, budget)
            known = asked.x is None or watch.exact
            yield asked if known else replace(asked, noise=watch.seen.noise)
            continue
        while isinstance(asked, Wait) or (own.reserve and n_asked(asked) > own.left):
            yield from settle(watch, budget)
            own.reserve = 0
            yield Wait()
            yield Report(solver=watch.solver)
            if isinstance(asked, Wait):
                break
            own.limit, own.spent = budget.limit, budget.spent
        else:
            if isinstance(asked, Steps) and asked.n_evals is None and not problem.sampled:
                asked = replace(asked, spare=reserved(watch, budget, stepping=True))
            sent = yield asked
            if isinstance(asked, Steps):
                watch.recommended = True  # its engine stands for a point
                if asked.spare:
                    watch.x, watch.values = sent.x, sent.values
            if isinstance(asked, Along | np.ndarray):
                watch.seen.see(asked, sent)
                if watch.silent and 2 * budget.left <= budget.total:
                    own.reserve = reserved(watch, budget)
    yield from settle(watch, budget)
    return outcome if outcome is not None else Outcome()


def reserved(watch: _Watch, budget: Budget, *, stepping: bool = False) -> int:
    """Return the evaluations to keep back: none where f repeats itself or nothing is known.

    Samples are noise from the beginning: long stages of SCGD are planned before its level is known.
    """
    known = watch.values.size or (stepping and budget.limit is not None)
    if watch.deterministic or not ((known and watch.seen.noise) or watch.sampled):
        return 0
    n = int(np.clip(SHARE * budget.total, LEAST, MOST))
    return max(0, min(n, budget.total // 4, budget.left))


def settle(watch: _Watch, budget: Budget) -> Asking:
    """Re-evaluate what competes, then the winner, and report it with fresh values.

    For a strategy that recommends nothing, the best points seen compete with x0.
    """
    start, noise, rivals = watch.seen.start, watch.seen.noise, watch.rivals
    n, silent = min(budget.left, MOST), watch.silent

    def told() -> Report:
        return Report(x=watch.x, values=watch.values, noise=noise)

    if silent:
        watch.values = np.array(start.values)
    if n and (rivals or (noise and watch.values.size and not (watch.deterministic or watch.exact))):
        yield Report(solver="re-evaluation")
    if rivals and n < 2:
        if rivals[0].mean < watch.value - (0.0 if silent else CERTAIN * noise):
            watch.x, watch.values = rivals[0].x, np.array([rivals[0].mean])
        yield told()
    elif rivals:
        n = n if silent else n // 2
        won = yield from reevaluate([one.x for one in rivals], n, watch.x, watch.values, noise)
        for one in rivals:
            one.revisited = True
        watch.x, watch.values, n = won.x, won.values, min(budget.left, MOST)
        same = won.changed and bool(np.all(won.values == rivals[0].mean))
        if silent and same and np.array_equal(won.x, rivals[0].x):
            watch.deterministic = True
            yield Report(deterministic=True)
        yield told()
    if silent or not (n and noise and watch.values.size) or watch.deterministic or watch.exact:
        return
    moved = bool(start.values) and not np.array_equal(watch.x, start.x)
    doubtful = moved and n > 1 and not watch.better_than_x0(CLEAR)
    points = np.stack([watch.x, start.x]) if doubtful else watch.x[None]
    values = yield np.broadcast_to(points, (n // len(points), *points.shape))
    here, there = values[:, 0], values[:, 1:].ravel()
    if np.isfinite(here).any():
        watch.values = here[np.isfinite(here)]
    for value in there[np.isfinite(there)].tolist():
        start.add(value)
    better = watch.better_than_x0(BETTER)
    if doubtful and watch.sampled:  # both saw the same samples
        better |= compared(here, there).better(BETTER)
    if moved and not better:
        watch.x, watch.values = start.x, np.array(start.values)
    yield told()
