"""Quadratic models of few points find minima as NEWUOA does, keep to bounds, live with failures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scgd
from scgd.problem import Problem
from scgd.strategies.drive import drive
from scgd.strategies.quadratic_model import quadratic_model


def minimise(fun, x0, max_evals, bounds=None, seed=0, scale=None):
    return drive(quadratic_model, Problem.check(x0, bounds, scale), fun, max_evals, seed)


def rosenbrock(x):
    return float(100 * ((x[1:] - x[:-1] ** 2) ** 2).sum() + ((1 - x[:-1]) ** 2).sum())


def random_quadratic(n, seed, decades=1.0):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((n, n)))[0]
    matrix = turn @ np.diag(10 ** rng.uniform(0, decades, n)) @ turn.T
    centre = rng.uniform(-2, 2, n)
    return lambda x: float((x - centre) @ matrix @ (x - centre)), centre


def sum_of_roots(x):
    return float(np.sqrt(1 + (x - 0.3) ** 2).sum() + 0.1 * x.sum() ** 2)


@pytest.mark.parametrize("n", [1, 2, 5, 20, 60])
def test_a_separable_quadratic_is_solved_once_the_first_set_is_known(n):
    weights, centre = np.linspace(1, 9, n), np.linspace(-0.3, 0.3, n)
    done = minimise(lambda x: float(weights @ (x - centre) ** 2), np.zeros(n), 4 * n + 20)
    assert done.fun < 1e-5 * weights @ centre**2


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(0, 10**6), st.floats(0, 3))
def test_any_small_quadratic_is_solved(n, seed, decades):
    fun, centre = random_quadratic(n, seed, decades)
    np.testing.assert_allclose(minimise(fun, np.zeros(n), 3000).x, centre, atol=1e-5)


def test_few_evaluations_are_steps_from_n_plus_2_points():
    fun, _ = random_quadratic(40, 0)
    assert minimise(fun, np.zeros(40), 100).fun < 0.1 * fun(np.zeros(40))


PINNED = [
    ("quadratic", lambda n: random_quadratic(n, 3, 2.0)[0]),
    ("rosenbrock", lambda n: rosenbrock),
    ("roots", lambda n: sum_of_roots),
    ("quartic", lambda n: lambda x: float(((x - 0.5) ** 4).sum() + (x.sum() - n / 2) ** 2)),
]


def test_it_takes_as_many_evaluations_as_newuoa():
    nlopt = pytest.importorskip("nlopt")
    ratios = []
    for n in (2, 5, 10):
        for _, of in PINNED:
            fun, seen = of(n), []
            lowest = minimise(fun, np.zeros(n), 400 * n).fun
            target = lowest + 1e-6 * (fun(np.zeros(n)) - lowest)
            search = nlopt.opt(nlopt.LN_NEWUOA, n)
            search.set_min_objective(
                lambda x, _, fun=fun, seen=seen: seen.append(fun(x)) or seen[-1]
            )
            search.set_initial_step(0.7)
            search.set_stopval(target)
            search.set_maxeval(400 * n)
            search.optimize(np.zeros(n))
            values = minimise(fun, np.zeros(n), 400 * n, scale=1.0).values
            ratios.append((1 + np.argmax(np.asarray(values) <= target)) / len(seen))
    assert np.median(ratios) < 1.5


def test_bounds_are_kept_and_minima_on_them_found():
    bounds = [(0.0, 1.0), (-1.0, 0.5), (-1.0, 1.0), (0.25, 0.25), (-2.0, 0.0)]
    lower, upper = np.array(bounds).T
    factor = np.random.default_rng(3).standard_normal((5, 5))
    matrix, centre = factor @ factor.T + np.eye(5), np.array([2.0, 2.0, 0.1, 1.0, 1.0])
    x0 = np.array([0.0, 0.5, 0.2, 0.25, -0.1])
    done = minimise(lambda x: float((x - centre) @ matrix @ (x - centre)), x0, 1000, bounds)
    points = np.array(done.points)
    assert (points >= lower).all() and (points <= upper).all()
    slope = 2 * matrix @ (done.x - centre)
    into = np.where(done.x <= lower, np.minimum(slope, 0), slope)
    into = np.where(done.x >= upper, np.maximum(into, 0), into)
    assert np.abs(np.where(upper > lower, into, 0)).max() < 1e-4


def test_a_point_where_nothing_may_move():
    done = minimise(lambda x: float(x @ x), np.ones(2), 10, [(1.0, 1.0), (1.0, 1.0)])
    assert (done.x == 1).all()


def test_failed_evaluations_do_not_end_it():
    def fun(x):
        return rosenbrock(x) if x[0] < 1.05 and x[2] > -0.4 else np.nan

    done = minimise(fun, np.zeros(5), 4000)
    assert np.isnan(done.values).any() and done.fun < 1e-8


@pytest.mark.parametrize("which", range(0, 40, 3))
def test_one_failure_anywhere_costs_little(which):
    fun, centre = random_quadratic(4, 8)
    count = iter(range(10**6))
    done = minimise(lambda x: np.nan if next(count) == which else fun(x), np.zeros(4), 1000)
    np.testing.assert_allclose(done.x, centre, atol=1e-6)


@pytest.mark.parametrize("fun", [lambda x: np.nan, lambda x: 1.0, lambda x: float(x[0])])
def test_what_has_no_minimum_to_find_ends_or_spends_the_budget(fun):
    assert minimise(fun, np.zeros(3), 500).n_evals <= 500


def test_a_start_in_a_small_feasible_region_is_left_by_smaller_steps():
    def fun(x):
        return float(((x - 0.06) ** 2).sum()) if np.abs(x).max() < 0.1 else np.nan

    np.testing.assert_allclose(minimise(fun, np.zeros(4), 500).x, 0.06, atol=1e-5)


def test_values_that_span_many_decades():
    def fun(x):
        return float(np.exp(20 * x @ x) + np.abs(x - 0.2).sum())

    assert minimise(fun, np.full(4, 1.5), 3000).fun < 2


def test_one_seed_one_path():
    paths = [minimise(rosenbrock, np.zeros(6), 200, seed=4).points for _ in range(2)]
    np.testing.assert_array_equal(*paths)


def members(fun, x0, **options):
    result = scgd.minimize(fun, x0, seed=0, **options)
    return result, str(result.method)


def test_auto_leads_with_models_where_evaluations_are_scarce():
    fun, _ = random_quadratic(40, 0)
    result, names = members(fun, np.zeros(40), max_evals=120)
    assert "quadratic model" in names and result.fun < 0.1 * fun(np.zeros(40))


def test_auto_looks_at_a_box_by_a_process_where_f_is_rough():
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0]

    def fun(x):
        z = turn @ x
        return float(((z - 0.5) ** 2 + 3 - 3 * np.cos(20 * z)).sum())

    x0 = np.random.default_rng(0).uniform(-3, 3, 8)
    result, names = members(fun, x0, max_evals=90, bounds=[(-5, 5)] * 8)
    assert "Gaussian process" in names and result.fun < 0.6 * fun(x0)


def test_auto_follows_slopes_where_a_parabola_tells_the_first_step():
    names = members(rosenbrock, np.full(6, 0.5), max_evals=80, bounds=[(-5, 5)] * 6)[1]
    assert "bfgs" in names and "Gaussian process" not in names
