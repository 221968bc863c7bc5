"""What the portfolio for deterministic functions finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scgd
from scgd.problem import Problem
from scgd.strategies.asks import Outcome
from scgd.strategies.drive import drive
from scgd.strategies.portfolio import portfolio


def rotated_ellipsoid(p, condition=1e4):
    q = np.linalg.qr(np.random.default_rng(p).standard_normal((p, p)))[0]
    weights = condition ** np.linspace(0, 1, p)
    return lambda x: float(weights @ (q @ (x - 0.3)) ** 2)


def rosenbrock(x):
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def rastrigin(x):
    return float(np.sum(x * x + 10 - 10 * np.cos(2 * np.pi * x)))


def stairs(p):
    q = np.linalg.qr(np.random.default_rng(p).standard_normal((p, p)))[0]
    return lambda x: float(np.sum(np.floor(4 * (q @ (x - 0.3)) + 0.5) ** 2))


def median(f, p, n, *, bounds=None, start=2.0):
    gaps = []
    for seed in range(3):
        x0 = np.random.default_rng([seed, 3]).uniform(-start, start, p)
        gaps.append(drive(portfolio, Problem.check(x0, bounds), f, n, seed).fun)
    return float(np.median(gaps))


@pytest.mark.parametrize(
    ("f", "p", "n", "most"),
    [
        (lambda x: float(np.sum((x - 1) ** 2)), 10, 100, 1e-9),
        (lambda x: float(np.sum((x - 1) ** 2)), 300, 1200, 1e-9),
        (rotated_ellipsoid(10), 10, 800, 1e-6),
        (rosenbrock, 5, 1000, 1e-8),
        (lambda x: float(np.sum(np.abs(x - 0.3))), 10, 1000, 1e-3),
        (lambda x: float(np.abs(x - 0.3).max()), 4, 2000, 1e-3),
        (rastrigin, 5, 1500, 1e-6),
        (stairs(4), 4, 4000, 0.5),
    ],
    ids=["sphere", "wide", "ellipsoid", "rosenbrock", "abs", "max", "rastrigin", "stairs"],
)
def test_minima_are_found(f, p, n, most):
    assert median(f, p, n) <= most


def test_minimum_in_a_corner():
    def f(x):
        return float(np.sum(np.arange(1, 9) * x) + (x @ x) / 10)

    bounds = [(-1.0, 2.0)] * 8
    assert median(f, 8, 400, bounds=bounds, start=0.9) == pytest.approx(-35.2, abs=1e-6)


def test_a_plateau_is_left():
    weights = 10 ** np.linspace(0, 6, 20)
    q = np.linalg.qr(np.random.default_rng(0).standard_normal((20, 20)))[0]

    def f(x):
        return float(np.exp(np.floor(np.log(weights @ (q @ (x - 0.5)) ** 2 + 1e-300))))

    for seed in range(3):
        x0 = np.random.default_rng(seed).uniform(0.1, 0.9, 20)
        assert drive(portfolio, Problem.check(x0, [(0, 1)] * 20), f, 2000, seed).fun < 0.5 * f(x0)


def test_steps_that_grow_by_a_factor_are_descended_from_every_start():
    rotate = np.linalg.qr(np.random.default_rng(20).standard_normal((20, 20)))[0]
    weights = 10 ** np.linspace(0, 6, 20)

    def steps(x):
        return float(np.floor(np.log(weights @ (rotate @ (x - 0.5)) ** 2)))

    for seed in (2, 4, 7):
        x0 = np.random.default_rng([seed, 3]).uniform(-2, 2, 20)
        done = drive(portfolio, Problem.check(x0, [(-3, 3)] * 20), steps, 1200, seed=seed)
        assert done.fun <= steps(x0) - 3


@pytest.mark.parametrize(("p", "n"), [(8, 90), (16, 180)])
def test_few_evaluations_of_steps_are_not_spent_on_slopes(p, n):
    f = stairs(p)
    for seed in range(3):
        x0 = np.random.default_rng([seed, 3]).uniform(-2, 2, p)
        assert drive(portfolio, Problem.check(x0), f, n, seed).fun < 0.5 * f(x0)


def test_restarts_reach_far_basins_within_bounds():
    def f(x):  # a wide basin around 0 and a deeper one in a corner
        return float(min(0.1 * (x @ x + x[0] * x[1]), np.sum((x - 3.5) ** 2) - 1))

    found = [
        drive(portfolio, Problem.check([0.5, -0.5], [(-5, 5)] * 2), f, 2000, seed, tol=0).fun
        for seed in range(3)
    ]
    assert np.median(found) == pytest.approx(-1, abs=1e-6)


def test_the_first_evaluation_is_at_x0_and_the_fewest_are_used_and_gain():
    def f(x):
        return float(x @ x)

    for n in (1, 2, 3, 5, 8):
        done = drive(portfolio, Problem.check([3.0, 4.0]), f, n)
        assert done.n_evals <= n
        assert np.array_equal(done.points[0], [3.0, 4.0])
    found = [drive(portfolio, Problem.check([3.0, 4.0]), f, n) for n in (3, 4, 5)]
    assert [done.n_evals for done in found] == [3, 4, 5]
    assert found[-1].fun <= found[0].fun < 25


def test_x_and_f_may_be_given():
    def strategy(problem, budget, rng):
        return portfolio(problem, budget, rng, np.array([2.0, 2.0]), 8.0)

    def f(x):
        return float(x @ x)

    done = drive(strategy, Problem.check([3.0, 4.0]), f, 60)
    assert not any(np.array_equal(x, [2.0, 2.0]) for x in done.points[:1])
    assert done.fun < 1e-10


def test_converged_where_nothing_is_left_to_gain():
    done = drive(portfolio, Problem.check(np.full(5, 2.0)), lambda x: float(x @ x), 10_000)
    assert done.found == Outcome(converged=True)
    assert done.n_evals < 10_000


def test_descents_end_where_rounding_alone_is_left_of_the_slopes():
    rotate = np.linalg.qr(np.random.default_rng(20).standard_normal((20, 20)))[0]
    weights = 10 ** np.linspace(0, 1, 20) / 80

    def hollow(x):
        return 37.3 - 10 * float(np.exp(-weights @ (rotate @ (x - 0.3)) ** 2))

    x0 = np.random.default_rng(3).uniform(-1, 1, 20)
    done = drive(portfolio, Problem.check(x0), hollow, 20_000, seed=3)
    assert done.found == Outcome(converged=True)


def test_no_end_without_tolerance():
    done = drive(portfolio, Problem.check(np.full(5, 2.0)), lambda x: float(x @ x), 3000, tol=0.0)
    assert done.n_evals == 3000


@pytest.mark.parametrize("p", [2, 40])
def test_one_seed_one_trajectory(p):
    x0 = np.linspace(-1, 2, p)
    one, other = (drive(portfolio, Problem.check(x0), rosenbrock, 20 * p, 4) for _ in range(2))
    assert np.array_equal(one.points, other.points)


def test_scaling_f_and_x_changes_little():
    f, x0 = rotated_ellipsoid(6), np.linspace(-1, 2, 6)
    known = drive(portfolio, Problem.check(x0, scale=1.0), f, 300)
    scaled = drive(portfolio, Problem.check(8 * x0, scale=8.0), lambda x: 2.0**20 * f(x / 8), 300)
    assert np.allclose(np.array(scaled.points) / 8, known.points)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.booleans(), st.integers(1, 400))
def test_failures_anywhere_and_bounds(seed, p, bounded, n):
    rng = np.random.default_rng(seed)
    bounds = [(-1.0, 1.5)] * p if bounded else None
    problem = Problem.check(rng.uniform(-1, 1, p), bounds)

    def f(x):
        return float("nan") if rng.random() < 0.2 else float(np.sum((x - 0.4) ** 2))

    done = drive(portfolio, problem, f, n, seed)
    assert done.n_evals <= n
    if bounded:
        points = np.array(done.points)
        assert points.min() >= -1 and points.max() <= 1.5


def test_a_wall_of_failures_is_no_reason_to_stop():
    def f(x):
        return float("nan") if x.sum() < 0.5 else rosenbrock(x)

    done = drive(portfolio, Problem.check(np.full(4, 0.9)), f, 2000)
    assert done.fun < 1e-6


def test_failures_everywhere_but_at_the_start():
    x0 = np.full(3, 0.3)
    done = drive(
        portfolio, Problem.check(x0), lambda x: 1.0 if np.array_equal(x, x0) else np.nan, 100
    )
    assert done.n_evals == 100


def test_a_failed_start():
    def f(x):
        return float("nan") if np.linalg.norm(x - 3) < 0.5 else float(x @ x)

    done = drive(portfolio, Problem.check(np.full(4, 3.0)), f, 1500)
    assert done.fun < 1e-6


def test_inactive_coordinates_are_left_alone_and_wake_up():
    def f(x):  # the second half matters only near the optimum of the first
        a, b = x[:20], x[20:]
        near = float(a[:5] @ a[:5])
        return near + (float(np.sum((b - 1) ** 2)) if near < 0.01 else 20.0)

    done = drive(portfolio, Problem.check(np.full(40, 0.7)), f, 8000)
    assert done.fun < 1e-4


def test_relevance_tells_which_coordinates_matter():
    def f(x):
        return float(np.sum((x[:3] - 1) ** 2) + (x[0] + x[1]) * x[2])

    shares, errors = drive(portfolio, Problem.check(np.zeros(30)), f, 900).reported("relevance")
    assert shares.shape == errors.shape == (30,)
    assert shares.sum() == pytest.approx(1)
    assert shares[:3].sum() > 0.99


def test_derivatives_are_used():
    problem = Problem.check(np.full(50, -1.2))
    problem = type(problem)(**{**vars(problem), "has_gradient": True})

    def slopes(x, coords):
        g = np.zeros(50)
        g[:-1] = -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
        g[1:] += 200 * (x[1:] - x[:-1] ** 2)
        return g[coords]

    done = drive(portfolio, problem, rosenbrock, 600, jac=slopes)
    assert done.fun < 10
    few = drive(portfolio, problem, rosenbrock, 40, jac=slopes)
    assert few.fun < 0.1 * rosenbrock(problem.x0)


def test_a_rough_function_of_few_of_its_inputs_in_a_box_uses_all_evaluations():
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]

    def fun(x):
        y = turn @ (x[:6] - np.linspace(-1, 1, 6))
        return float(np.sum(np.abs(y) + np.sin(9 * y) ** 2))

    x0 = np.zeros(20)
    result = scgd.minimize(fun, x0, bounds=[(-2, 2)] * 20, max_evals=260, seed=0)
    assert result.nfev == 260 and result.fun == fun(result.x) < 0.8 * fun(x0)
