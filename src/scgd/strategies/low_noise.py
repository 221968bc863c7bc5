"""Noise far below what f changes by: solvers for deterministic functions, down to the noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.problem import Problem
from scgd.strategies.asks import Asking, Report, Wait, n_asked, point_of
from scgd.strategies.budget import Budget
from scgd.strategies.portfolio import portfolio
from scgd.strategies.regression import Evaluations
from scgd.strategies.verification import verified
from scgd.typing import Floats

CERTAIN = 3.0
"""Standard deviations of the noise that a gain must have to count."""
STALLED, PATIENCE = 20, 0.2
"""Evaluations per coordinate, and the part of the budget, without a gain that end it: a gradient of
central differences and a line, ten times."""
SOON = 50
"""Evaluations after which the best value is asked for again, as of a deterministic function."""


def low_noise(
    problem: Problem, x: Floats, f: float, noise: float, rng: np.random.Generator, budget: Budget,
    data: Evaluations,
) -> Asking:  # fmt: skip
    """Run the portfolio until it gains nothing above the noise; return the lowest point.

    Where its best value does not come again within the noise, that is larger there: it ends, too.

    Its differences are as wide as the noise asks, so it searches lines where f is a sum, follows
    BFGS where f is smooth and populations where it is not.

    Parameters
    ----------
    problem, x, f
        What is known, where to begin, and the value there.
    noise
        The standard deviation of a value.
    rng, budget
        As for every strategy.
    data
        Takes all points and values.
    """
    patience = max(STALLED * x.size, PATIENCE * budget.total)
    solvers = portfolio(problem, budget, rng, x, f, noise)
    inner, sent, best, since = verified(solvers, budget, SOON, noise), None, f, budget.spent
    while True:
        try:
            asked: Any = inner.send(sent)
        except StopIteration:
            return x
        sent = None
        if isinstance(asked, Report):
            if asked.solver or asked.relevance:
                yield Report(solver=asked.solver, relevance=asked.relevance)
            continue
        stalled = budget.spent - since > patience
        if isinstance(asked, Wait) or stalled or n_asked(asked) > budget.left:
            return x
        sent = yield asked
        values = np.ravel(sent)
        data.add(np.reshape(asked, (-1, x.size)), values)
        k = int(np.argmin(np.where(np.isnan(values), np.inf, values)))
        if values[k] < best - CERTAIN * noise:
            since = budget.spent
        if values[k] < best:
            best, x = float(values[k]), point_of(asked, k)
