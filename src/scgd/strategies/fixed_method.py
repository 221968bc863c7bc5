"""A fixed configuration of SCGD: find the unit of its steps where nothing tells it, then run it."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.estimators import FirstOrder, random_signs
from scgd.method import SCGD
from scgd.problem import Problem
from scgd.strategies.asks import Asking, Outcome, Report, Steps, Strategy, Wait
from scgd.strategies.budget import Budget
from scgd.strategies.gradient_check import check_gradient
from scgd.strategies.length_scale import length_scale
from scgd.typing import Floats, Ints

AFFORDABLE = 20
"""A measurement before the run may cost one over this of the budget (32 evaluations for the
length): what a run loses without it is more than that only where steps are far from right."""
BESIDE = 0.1
"""How far beside x0 that is, in units of x: far enough for noise that grows with f to show."""
MONITOR = 16
"""Evaluations of f, at most, that tell the value reached by a run that sees derivatives only."""


def run_method(method: SCGD) -> Strategy:
    """Return the strategy that runs one configuration of SCGD.

    Learning rates and radii that are relative need the unit of each coordinate. Where no argument,
    bound or entry of x0 tells it, it is the length at which f stops being a straight line
    (:func:`~scgd.strategies.length_scale.length_scale`).
    """

    def strategy(problem: Problem, budget: Budget, rng: np.random.Generator) -> Asking:
        from scgd.descent import CoordinateDescent

        exact = isinstance(method.estimator, FirstOrder)
        unit, base, same = problem.scale, float("nan"), False
        if method.relative and not exact:
            unit, base, same = yield from measure(problem, budget, rng)
        if same:
            yield Report(deterministic=True)
        limit = None if budget.limit is None else budget.left
        engine = CoordinateDescent(
            method, problem, problem.x0, seed_of(rng), scale=unit, budget=limit
        )
        if exact:
            some = rng.permutation(problem.n_coords)[: method.block_size]
            return (yield from watched(engine, problem, budget, some))
        if budget.max_stall is not None and not same:
            return (yield from until_stalled(engine, budget))
        while True:
            yield Steps(engine, base=base if same else float("nan"))
            yield Wait()
            engine.plan_for(engine.n_evals + budget.left)

    return strategy


def measure(problem: Problem, budget: Budget, rng: np.random.Generator) -> Asking:
    """Return the unit of each coordinate, f(x0) and whether f repeats itself.

    That is tried at x0 and beside it, for at x0 itself noise may vanish.
    """
    if problem.scale is None and AFFORDABLE * 32 <= budget.total:
        yield Report(solver="length scale")
        found = yield from length_scale(problem, problem.x0, rng, repeat=True)
        unit = np.full(problem.n_coords, found.length)
        return unit, found.value, found.repeats and not problem.sampled
    if problem.sampled:
        return problem.scale, float("nan"), False
    yield Report(solver="x0")
    n = 4 if AFFORDABLE * 4 <= budget.total else min(3, budget.left)
    points = np.tile(problem.x0, (n, 1))
    points[max(1, n - 2) :] += BESIDE * problem.unit * random_signs(problem.n_coords, rng)
    points = problem.clipped(points)
    values = yield points
    if (failed := np.isnan(values)).any():
        values = values.copy()
        values[failed] = yield points[failed]
    here, beside = (part[~np.isnan(part)] for part in np.split(values, [max(1, n - 2)]))
    same = all(bool(np.all(part == part[:1])) for part in (here, beside))
    return problem.scale, float(here[0]) if here.size else float("nan"), same


def until_stalled(engine: Any, budget: Budget) -> Asking:
    """Take steps in stages of ``max_stall`` evaluations until the last stage did not fall."""
    assert budget.max_stall is not None
    n, total = budget.max_stall, budget.limit
    while True:
        stage = yield Steps(engine, n)
        if stage.enough and not stage.fell:
            return Outcome(converged=True)
        n = budget.max_stall if stage.enough else 2 * n
        if budget.left < engine.step_cost:
            yield Wait()
        if budget.limit != total:
            total = budget.limit
            engine.plan_for(None if total is None else engine.n_evals + budget.left)


def watched(engine: Any, problem: Problem, budget: Budget, some: Ints) -> Asking:
    """Check the derivatives, take steps that see nothing else, and look at f before and after."""
    n = 0 if budget.limit is None else min(4, budget.left // AFFORDABLE)
    if n:
        yield Report(solver="x0")
        values = yield np.broadcast_to(problem.x0, (n, 1, problem.n_coords))
        if problem.sampled or np.ptp(values) == 0:
            yield from check_gradient(problem, problem.x0, budget, some)
    while budget.limit is not None:
        n = min(MONITOR, budget.left // 10)
        yield Steps(engine, budget.left - n)
        if n:
            x: Floats = engine.x.copy()
            values = yield np.broadcast_to(x, (n, 1, x.size))
            yield Report(x=x, values=values.ravel())
        yield Wait()
        engine.plan_for(engine.n_evals + budget.left)
    yield Steps(engine)
    return None


def seed_of(rng: np.random.Generator) -> np.random.SeedSequence:
    """Return a seed for an engine that draws on its own."""
    return np.random.SeedSequence(int(rng.integers(2**63)))
