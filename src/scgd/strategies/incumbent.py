"""The best candidates of a run under noise, and their re-evaluation.

The lowest of many noisy values is the luckiest one; yet a point that lies far below all others is
not luck. So the few best of all evaluations are kept, and those that may beat the incumbent are
evaluated again: only fresh values decide, and only they are reported.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from scgd.history import mean_and_error
from scgd.problem import Problem
from scgd.strategies.asks import (
    Along,
    Asking,
    Gradient,
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

FORGET = 0.85
"""What each group of repeats leaves of the squares before it: noise may fall with f, and six or
seven groups tell it well enough."""
KEPT = 8
"""Points that are kept: the luckiest of eight is two standard errors low."""
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
    """A point, its values and their mean, and how often it was asked for when re-evaluated."""

    x: Floats
    values: list[float] = field(default_factory=list)
    mean: float = float("inf")
    asked: int = 0

    def add(self, values: Iterable[float]) -> None:
        """Take other values; failed ones tell nothing."""
        for value in values:
            if abs(value) < np.inf:
                self.values.append(value)
                last = self.mean if len(self.values) > 1 else 0.0
                self.mean = last + (value - last) / len(self.values)

    def is_at(self, x: Floats) -> bool:
        """Tell whether this is the point."""
        return bool(x[0] == self.x[0]) and np.array_equal(x, self.x)


def reevaluate(
    rivals: Iterable[Floats], n_evals: int, incumbent: Floats, values: Iterable[float],
    noise: float = 0.0,
) -> Generator[Any, Any, Candidate]:  # fmt: skip
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
    first = Candidate(incumbent)
    first.add(values)
    first.asked = len(first.values)
    others = [Candidate(x) for x in rivals if not first.is_at(x)]
    alive, wanted, left = others, 1, n_evals
    least = float(np.sqrt(2 * np.log(10 * max(1, len(others)))))

    def better(one: Candidate, n_errors: float) -> bool:
        error = standard_error(np.array(one.values), np.array(first.values), noise)
        return one.mean < first.mean - n_errors * error

    while alive and left > 0:
        todo = [one for one in (first, *alive) for _ in range(wanted - one.asked)][:left]
        if todo:
            fresh = yield np.stack([one.x for one in todo])[:, None]
            left -= len(todo)
            for one, value in zip(todo, fresh[:, 0].tolist(), strict=True):
                one.asked += 1
                one.add([value])
        alive = sorted((one for one in alive if one.mean < first.mean), key=lambda one: one.mean)
        alive, wanted = alive[: (len(alive) + 1) // 2], 2 * wanted
        if len(alive) == 1 and better(alive[0], 2 * least):
            break
    best = min(others, key=lambda one: one.mean, default=first)
    return best if best.values and (not first.values or better(best, least)) else first


class Incumbent:
    """What a strategy recommends, the points with the lowest values, and the noise level.

    Parameters
    ----------
    problem
        Its x0 competes, too, and all values there are kept.

    Attributes
    ----------
    x, values
        What is recommended, and independent values of it.
    deterministic
        Whether the strategy says that f repeats itself.
    exact
        Whether the values at x have no noise: several agreed.
    silent
        Whether the strategy has recommended nothing: then the best points seen are compared.

    Examples
    --------
    >>> seen = Incumbent(Problem.check([0.5], noise=1.0))
    >>> seen.see(np.array([[0.0], [1.0], [2.0]]), np.array([5.0, -4.0, np.nan]))
    >>> [float(one.x[0]) for one in seen.rivals]
    [1.0, 0.0]
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.x, self.values = problem, problem.x0, np.empty(0)
        self.deterministic = self.exact = False
        self.recommended = False
        self.solver: str | None = None
        self.start, self.best = Candidate(problem.x0), list[Candidate]()
        self._squares = self._free = 0.0
        self._worst = np.inf
        self._firsts = {float(problem.x0[0])}  # a quick look for repeats

    @property
    def silent(self) -> bool:
        """Whether the best points seen are compared."""
        return not self.recommended and not self.deterministic

    @property
    def noise(self) -> float:
        """The standard deviation of the noise; 0 where nothing is known of it."""
        if self.problem.noise is not None:
            return self.problem.noise
        return float(np.sqrt(self._squares / self._free)) if self._free > 0 else 0.0

    @property
    def rivals(self) -> list[Candidate]:
        """Points that may be better than x, the best first."""
        if self.silent:
            return list(self.best)
        if self.deterministic or self.exact or not self.noise:
            return []
        level, far = mean_and_error(self.values)[0], LUCK * self.noise
        return [
            one for one in self.best
            if not one.asked and not one.mean >= level - far / np.sqrt(len(one.values))
        ]  # fmt: skip

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
                off = some - some.mean()
                self._squares = FORGET * self._squares + float(np.sum(off**2))
                self._free = FORGET * self._free + len(some) - 1

    def _enter(self, x: Floats, value: float) -> None:
        known = next((one for one in (self.start, *self.best) if one.is_at(x)), None)
        if known is None:
            if value >= self._worst:
                return
            self.best.append(known := Candidate(x.copy()))
        known.add([value])
        self.best.sort(key=lambda one: one.mean)
        del self.best[KEPT:]
        self._worst = self.best[-1].mean if len(self.best) == KEPT else np.inf
        self._firsts = {float(one.x[0]) for one in (self.start, *self.best)}

    def note(self, report: Report) -> None:
        """Take what the strategy reports."""
        self.solver = report.solver or self.solver
        if report.deterministic is not None:
            self.deterministic = report.deterministic
        if report.x is not None:
            self.recommended, self.exact = True, report.noise == 0.0
            self.stand_at(report.x, () if report.values is None else report.values)

    def stand_at(self, x: Floats, values: Floats | Sequence[float]) -> Report:
        """Recommend a point; say so."""
        self.x, self.values = np.array(x), np.atleast_1d(np.array(values, np.float64))
        return Report(x=self.x, values=self.values, noise=self.noise)

    def better_than_x0(self, n_errors: float) -> bool:
        """Tell whether x lies below x0 by so many standard errors, of means or of medians."""
        here = compared(self.values, np.array(self.start.values), paired=False)
        return here.better(n_errors) or here.against < -n_errors

    def reserve(self, budget: Budget, *, stepping: bool = False) -> int:
        """Return the evaluations to keep back: none where f repeats itself or nothing is known.

        Samples are noise from the beginning: long stages of SCGD are planned before its level is
        known.
        """
        known = self.values.size or (stepping and budget.limit is not None)
        if self.deterministic or not ((known and self.noise) or self.problem.sampled):
            return 0
        n = int(np.clip(SHARE * budget.total, LEAST, MOST))
        return max(0, min(n, budget.total // 4, budget.left))

    def settle(self, budget: Budget) -> Asking:
        """Re-evaluate what competes, then the winner, and report it with fresh values.

        For a strategy that recommends nothing, the best points seen compete with x0.
        """
        start, noise, rivals, silent = self.start, self.noise, self.rivals, self.silent
        n = min(budget.left, MOST)
        self.values = np.array(start.values) if silent else self.values
        fresh = bool(noise and self.values.size) and not (self.deterministic or self.exact)
        if n and (rivals or fresh):
            yield Report(solver="re-evaluation")
        if rivals and n < 2:
            level = mean_and_error(self.values)[0] - (0.0 if silent else CERTAIN * noise)
            if not rivals[0].mean >= level:
                yield self.stand_at(rivals[0].x, [rivals[0].mean])
        elif rivals:
            n = n if silent else n // 2
            won = yield from reevaluate([one.x for one in rivals], n, self.x, self.values, noise)
            for one in rivals:
                one.asked += 1
            if silent and rivals[0].is_at(won.x) and {*won.values} == {rivals[0].mean}:
                self.deterministic = True
                yield Report(deterministic=True)
            yield self.stand_at(won.x, won.values)
        n = min(budget.left, MOST)
        if silent or not (n and fresh and self.values.size):
            return
        moved = bool(start.values) and not start.is_at(self.x)
        doubtful = moved and n > 1 and not self.better_than_x0(CLEAR)
        points = np.stack([self.x, start.x]) if doubtful else self.x[None]
        values = yield np.broadcast_to(points, (n // len(points), *points.shape))
        here, there = values[:, 0], values[:, 1:].ravel()
        if np.isfinite(here).any():
            self.values = here[np.isfinite(here)]
        start.add(there.tolist())
        better = self.better_than_x0(BETTER)
        if doubtful and self.problem.sampled:  # both saw the same samples
            better |= compared(here, there).better(BETTER)
        back = moved and not better
        yield self.stand_at(*((start.x, start.values) if back else (self.x, self.values)))


def with_incumbent(inner: Strategy, problem: Problem, budget: Budget, rng: Any) -> Asking:
    """Run a strategy; at the end re-evaluate the points that may beat what it recommends.

    About 3 % of the budget is kept back for that, and x0 competes too. Half of it, or all where
    nothing competes, are values of the winner that no choice has seen: only they are reported, so
    the value at the end is not too low.
    """
    own = Budget(budget.limit, budget.n_coords, budget.tol, budget.max_stall)
    incumbent = Incumbent(problem)
    own.reserve = incumbent.reserve(budget)
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
            incumbent.note(asked)
            own.reserve = incumbent.reserve(budget)
            known = asked.x is None or incumbent.exact
            yield asked if known else replace(asked, noise=incumbent.noise)
            continue
        while isinstance(asked, Wait) or (own.reserve and n_asked(asked) > own.left):
            yield from incumbent.settle(budget)
            own.reserve = 0
            yield Wait()
            yield Report(solver=incumbent.solver)
            if isinstance(asked, Wait):
                break
            own.limit, own.spent = budget.limit, budget.spent
        else:
            if isinstance(asked, Steps) and asked.n_evals is None and not problem.sampled:
                asked = replace(asked, spare=incumbent.reserve(budget, stepping=True))
            sent = yield asked
            if isinstance(asked, Steps):
                incumbent.recommended = True  # its engine stands for a point
                if asked.spare:
                    incumbent.stand_at(sent.x, sent.values)
            elif not isinstance(asked, Gradient):
                incumbent.see(asked, sent)
                if incumbent.silent and 2 * budget.left <= budget.total:
                    own.reserve = incumbent.reserve(budget)
    yield from incumbent.settle(budget)
    return outcome if outcome is not None else Outcome()
