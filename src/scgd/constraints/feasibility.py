"""Constraints over a space: an exact penalty around any strategy, and the best feasible point."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scgd.constraints.augmented import report_best, update_multipliers
from scgd.constraints.merit import TOLERANCE, Merit
from scgd.constraints.quadratic import vectors_at
from scgd.problem import Known, Problem
from scgd.strategies.asks import Asking, Outcome, Report, Strategy, Wait
from scgd.strategies.budget import Budget
from scgd.typing import Floats

FIRMER, PATIENCE = 4.0, 10
"""How the weight grows where infeasible points stay below all feasible ones, and for how many
evaluations per coordinate they may: a search comes back from them, unless it converges there."""

OPENING = 10
"""Points that tell the usual difference of f."""


class Seen:
    """Points and their vectors, and one number for each.

    Until a point is feasible its violation counts, each constraint's in units of the largest seen;
    from then on f and a weight times the violation, an exact penalty. The weight is the usual
    difference of f at first, and grows where infeasible points stay below all feasible ones.

    Attributes
    ----------
    n_changes
        How often numbers came to mean something else.
    """

    def __init__(self, merit: Merit) -> None:
        self.merit = merit
        self.points: list[Floats] = []
        self.vectors: list[Floats] = []
        self.unit: Floats = np.zeros(len(merit.equal))
        self.weight, self.lowest, self.below, self.n_changes = 0.0, np.inf, 0, 0

    def add(self, points: Floats, vectors: Floats) -> Floats:
        """Take vectors of points, one per row; return their numbers."""
        for x, vector in zip(points, vectors, strict=True):
            if np.isfinite(vector).all():
                self.points.append(x.copy())
                self.vectors.append(vector)
                self.unit = np.maximum(self.unit, self.merit.violations(vector))
                if self.feasible(vector) and vector[0] < self.lowest:
                    self.lowest, self.below = float(vector[0]), 0
        if self.lowest < np.inf and not self.weight and len(self.vectors) >= OPENING:
            values = np.array([vector[0] for vector in self.vectors])
            off = float(np.median(np.abs(values - np.median(values))))
            self.weight = off or max(1.0, abs(self.lowest))
            self.n_changes += 1
        numbers = np.array([self.number(vector) for vector in vectors])
        self.below += int(np.count_nonzero(numbers < self.lowest)) if self.weight else 0
        if self.below > PATIENCE * points.shape[1]:
            self.weight, self.below = FIRMER * self.weight, 0
            self.n_changes += 1
        return numbers

    def feasible(self, vector: Floats) -> bool:
        """Tell whether a point is feasible."""
        return self.merit.violation(vector) <= TOLERANCE

    def number(self, vector: Floats) -> float:
        """Return the number of a vector; NaN where it failed."""
        if not np.isfinite(vector).all():
            return float("nan")
        missing = self.merit.violations(vector)
        share = float(np.sum(missing / np.where(self.unit > 0, self.unit, 1.0)))
        if not self.weight:
            return share
        return float(vector[0]) + (0.0 if self.feasible(vector) else self.weight * share)

    def known(self) -> Known:
        """Return what a strategy that begins may know."""
        numbers = np.array([self.number(vector) for vector in self.vectors])
        return Known(np.array(self.points), numbers)


def by_feasibility(method: Strategy, merit: Merit) -> Strategy:
    """Return a strategy that finds a feasible point first, and then lower ones.

    Where numbers come to mean something else (when the first feasible point is found, and with
    another weight), the strategy begins again with everything that was measured.
    """

    def strategy(problem: Problem, budget: Budget, rng: np.random.Generator) -> Asking:
        merit.reset(problem.x0)  # a run that is resumed begins again
        seen, begun = Seen(merit), problem
        while True:
            outcome = yield from numbered(method, begun, budget, rng.spawn(1)[0], seen)
            if outcome is not None:
                return outcome
            begun = replace(problem, known=seen.known())

    return strategy


def numbered(
    method: Strategy, problem: Problem, budget: Budget, rng: np.random.Generator, seen: Seen
) -> Asking:
    """Run a strategy on numbers; None where they mean something else now."""
    inner, version, noisy, x = method(problem, budget, rng), seen.n_changes, False, problem.x0
    n_last = int(np.clip(budget.total // 50, 2, 16))
    sent: Any = None
    while True:
        try:
            asked = inner.send(sent)
        except StopIteration as end:
            yield from report_best(seen.merit)
            return end.value or Outcome()
        sent = None
        if isinstance(asked, Report):
            noisy = noisy if asked.deterministic is None else not asked.deterministic
            x = x if asked.x is None else asked.x
            yield replace(asked, x=None, values=None, deterministic=None)
            continue
        rows = 0 if isinstance(asked, Wait) else np.asarray(asked).size // problem.n_coords
        while noisy and rows and n_last and budget.left - rows < n_last:
            yield from update_multipliers(x, min(n_last, budget.left), seen.merit)
            n_last = 0
        while not rows or rows > budget.left:
            yield from report_best(seen.merit)
            yield Wait()
            if not rows:
                break
        else:
            points = np.asarray(asked)
            vectors = yield from vectors_at(points, seen.merit)
            numbers = seen.add(points.reshape(-1, problem.n_coords), vectors)
            if seen.n_changes != version:
                inner.close()
                return None
            sent = float(numbers[0]) if points.ndim == 1 else numbers.reshape(points.shape[:-1])
            yield from report_best(seen.merit)
