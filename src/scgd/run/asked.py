"""What a strategy of the user's own yields, checked before anything is evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.problem import Problem
from scgd.strategies.asks import Along, Asking, Gradient, Report, Steps, Strategy, Wait
from scgd.strategies.budget import Budget

__all__ = ["checked"]


def checked(
    strategy: Strategy, problem: Problem, budget: Budget, rng: np.random.Generator
) -> Asking:
    """Run a strategy; bring its points inside the bounds, or say what it should have yielded."""
    asking, sent = strategy(problem, budget, rng), None
    if not hasattr(asking, "send"):
        raise TypeError(
            "method must be a generator function, strategy(problem, budget, rng), which yields "
            f"points; got a function that returns {type(asking).__name__}"
        )
    while True:
        try:
            asked = asking.send(sent)
        except StopIteration as end:
            return end.value
        sent = yield points_of(asked, problem)


def points_of(asked: Any, problem: Problem) -> Any:
    """Return points as arrays inside the bounds; leave other things as they are."""
    if isinstance(asked, Steps | Wait | Gradient | Along | Report):
        return asked
    n = problem.n_coords
    try:
        points = np.array(asked, np.float64)
    except (TypeError, ValueError):
        points = np.empty(0)
    if points.ndim not in (1, 2, 3) or points.shape[-1] != n or points.size == 0:
        raise TypeError(
            f"a strategy must yield points of {n} coordinates (an array of shape ({n},), (m, {n}) "
            f"or (k, m, {n})), Along, Gradient, Steps, Report or Wait; got "
            f"{type(asked).__name__} of shape {np.shape(asked)}"
        )
    if not np.isfinite(points).all():
        raise ValueError("a strategy yielded a point that is not finite")
    return problem.clipped(points)
