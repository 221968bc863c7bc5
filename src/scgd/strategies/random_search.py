"""Random search: the yardstick, and all that is left where f has no structure."""

from __future__ import annotations

import numpy as np

from scgd.problem import Problem
from scgd.strategies.asks import Asking, Wait
from scgd.strategies.budget import Budget


def random_search(
    problem: Problem, budget: Budget, rng: np.random.Generator, batch: int = 64
) -> Asking:
    """Evaluate random points: uniform between bounds, normal around x0 where there are none.

    Examples
    --------
    >>> from scgd.strategies.drive import drive
    >>> problem = Problem.check([0.0, 0.0], bounds=[(-1, 1)] * 2)
    >>> drive(random_search, problem, lambda x: float(x @ x), 100).n_evals
    100
    """
    yield problem.x0
    lower, width = problem.lower, problem.upper - problem.lower
    while True:
        while (n := min(batch, budget.left)) < 1:
            yield Wait()
        x = problem.x0 + problem.unit * rng.standard_normal((n, problem.n_coords))
        if lower.size:
            bounded = np.isfinite(width)
            uniform = np.where(bounded, lower, 0.0) + np.where(bounded, width, 1.0) * rng.random(
                x.shape
            )
            x = problem.clipped(np.where(bounded, uniform, x))
        if problem.space is not None:
            x = problem.space.grid.canonical(x)
        yield x[:, None, :]
