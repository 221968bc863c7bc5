"""Drive a strategy by hand: for tests, for a notebook, for reading what a strategy is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scgd.problem import Problem
from scgd.strategies.asks import Along, Gradient, Report, Strategy, Wait
from scgd.strategies.budget import Budget
from scgd.typing import Floats

__all__ = ["Driven", "drive"]


@dataclass
class Driven:
    """What a strategy did with a function.

    Attributes
    ----------
    found
        What it returned; None where the budget ended before.
    x, fun
        The best point that was evaluated, and its value.
    n_evals
        Evaluations made.
    reports
        What it reported, in order.
    points, values
        Everything that was evaluated, in order.
    """

    found: Any = None
    x: Floats = field(default_factory=lambda: np.empty(0))
    fun: float = float("inf")
    n_evals: int = 0
    reports: list[Report] = field(default_factory=list)
    points: list[Floats] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def reported(self, name: str) -> Any:
        """Return what was reported last under a name."""
        known = (getattr(report, name) for report in reversed(self.reports))
        return next((value for value in known if value is not None), None)


def drive(
    strategy: Strategy,
    problem: Problem,
    fun: Callable[[Floats], float],
    max_evals: int,
    seed: int = 0,
    *,
    jac: Callable[[Floats, Any], Floats] | None = None,
    tol: float = 1e-10,
) -> Driven:
    """Evaluate what a strategy asks until it returns or the budget is used.

    Parameters
    ----------
    strategy
        The generator function.
    problem
        What it is given.
    fun
        The function to minimise.
    max_evals
        The budget.
    seed
        Of its random generator.
    jac
        ``jac(x, coords)``, where it asks for derivatives.
    tol
        The share of the gain so far that counts as nothing.

    Examples
    --------
    >>> def halve(problem, budget, rng):
    ...     x, length = problem.x0, 1.0
    ...     f = yield x
    ...     while budget.left >= 2:
    ...         values = yield np.stack([x - length, x + length])
    ...         k = values.argmin()
    ...         if values[k] < f:
    ...             x, f = x + (2 * k - 1) * length, values[k]
    ...         else:
    ...             length /= 2
    ...     return x
    >>> done = drive(halve, Problem.check([3.0]), lambda x: float((x[0] - 1) ** 2), 21)
    >>> done.n_evals, done.found
    (21, array([1.]))
    """
    budget, done = Budget(max_evals, problem.n_coords, tol), Driven()
    asking = strategy(problem, budget, np.random.default_rng(seed))

    def value(x: Floats) -> float:
        seen = float(fun(x))
        done.points.append(x.copy())
        done.values.append(seen)
        done.n_evals += 1
        if seen < done.fun:
            done.fun, done.x = seen, x.copy()
        return seen

    sent: Any = None
    try:
        while True:
            asked = asking.send(sent)
            if isinstance(asked, Wait):
                return done
            if isinstance(asked, Report):
                done.reports.append(asked)
                sent = None
                continue
            if isinstance(asked, Gradient):
                assert jac is not None, "the strategy asks for derivatives"
                done.n_evals += 1
                sent = np.asarray(jac(asked.x, asked.coords), np.float64)
            else:
                points = np.asarray(asked) if isinstance(asked, Along) else asked
                flat = points.reshape(-1, points.shape[-1])
                if done.n_evals + len(flat) > max_evals:
                    for x in flat[: max_evals - done.n_evals]:
                        value(x)
                    return done
                seen = np.array([value(x) for x in flat]).reshape(points.shape[:-1])
                sent = float(seen) if points.ndim == 1 else seen
            budget.spent = done.n_evals
    except StopIteration as end:
        done.found = end.value
    return done
