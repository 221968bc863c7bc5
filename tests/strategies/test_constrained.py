"""Strategies under constraints: the minimum is met, and what is recommended is feasible."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint

from scgd.constraints import Constraints, Measured, Merit
from scgd.constraints.augmented import constrained
from scgd.problem import Problem
from scgd.strategies.asks import Report, Wait
from scgd.strategies.budget import Budget
from scgd.strategies.mutation import dynamically_dimensioned_search


def minimised(fun, x0, constraints, max_evals, bounds=None, seed=0):
    """Return the last point recommended, its value, and all points evaluated."""
    problem = Problem.check(x0, bounds=bounds)
    given = Constraints.check(constraints, problem)
    vector, merit = Measured(fun, given, ()), Merit(given, problem.n_coords)
    budget, best, points = Budget(max_evals, problem.n_coords), None, []
    strategy = constrained(dynamically_dimensioned_search, merit)
    asking, sent = strategy(given.free(problem), budget, np.random.default_rng(seed)), None
    while not isinstance(asked := asking.send(sent), Wait):
        sent = None
        if isinstance(asked, Report):
            best = asked if asked.x is not None else best
            continue
        flat = asked.reshape(-1, asked.shape[-1])
        if len(points) + len(flat) > max_evals:
            break
        points += [given.inside(z) for z in flat]
        sent = np.array([vector(z) for z in flat]).reshape(*asked.shape[:-1], -1)
        budget.spent = len(points)
    return best.x, best.values[0], np.array(points)


def rosenbrock(x):
    return float(100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2)


def test_rosenbrock_in_a_disc():
    disc = NonlinearConstraint(lambda x: x @ x, -np.inf, 1.0)
    x, value, points = minimised(rosenbrock, [-0.5, 0.5], disc, 600)
    assert x @ x <= 1 + 1e-8
    assert value == pytest.approx(0.0456748087, rel=1e-6)
    assert len(points) <= 600


def test_an_equation():
    circle = NonlinearConstraint(lambda x: x @ x, 1.0, 1.0)
    x, value, _ = minimised(lambda x: float(x.sum()), [1.0, 0.2], circle, 600)
    assert value == pytest.approx(-np.sqrt(2), abs=1e-6)
    assert x @ x == pytest.approx(1.0, abs=1e-7)


def test_linear_constraints_hold_at_every_evaluation():
    simplex = LinearConstraint(np.ones((1, 3)), 1, 1)
    target = np.array([0.5, 0.3, 0.2])
    _, value, points = minimised(
        lambda x: float(np.sum((x - target) ** 2)), np.full(3, 1 / 3), simplex, 800,
        bounds=[(0, None)] * 3,
    )  # fmt: skip
    assert np.abs(points.sum(axis=1) - 1).max() < 1e-9
    assert points.min() >= 0
    assert value < 1e-3


def test_one_seed_one_trajectory():
    disc = NonlinearConstraint(lambda x: x @ x, -np.inf, 1.0)
    runs = [minimised(rosenbrock, [-0.5, 0.5], disc, 300)[2] for _ in range(2)]
    assert np.array_equal(*runs)
