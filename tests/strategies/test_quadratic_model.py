"""Quadratic models of few points find minima, keep to bounds and live with failures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scgd.problem import Problem
from scgd.strategies.box import Box, in_box
from scgd.strategies.drive import drive
from scgd.strategies.quadratic_model import quadratic_model
from scgd.strategies.quadratic_model_algebra import Interpolation
from scgd.strategies.trust_region import trust_region_step


def minimise(
    fun, x0, max_evals, *, bounds=None, radius=0.5, final_radius=1e-8, n_points=None, seed=0
):
    def strategy(problem, budget, rng):
        lower, upper = (b / problem.unit if b.size else b for b in (problem.lower, problem.upper))
        box = Box(problem.x0 / problem.unit, lower, upper)

        def search():
            x = box.start
            f = yield x
            options = {"final_radius": final_radius, "n_points": n_points}
            return (yield from quadratic_model(x, f, radius, box, rng, **options))

        return (yield from in_box(search(), problem, box))

    return drive(strategy, Problem.check(x0, bounds=bounds), fun, max_evals, seed)


def rosenbrock(x):
    return float(100 * ((x[1:] - x[:-1] ** 2) ** 2).sum() + ((1 - x[:-1]) ** 2).sum())


def random_quadratic(n, seed, decades=1.0):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((n, n)))[0]
    matrix = turn @ np.diag(10 ** rng.uniform(0, decades, n)) @ turn.T
    centre = rng.uniform(-2, 2, n)
    return lambda x: float((x - centre) @ matrix @ (x - centre)), centre


@pytest.mark.parametrize("n", [1, 2, 5, 20, 60])
def test_a_separable_quadratic_is_solved_once_the_first_set_is_known(n):
    weights, centre = np.linspace(1, 9, n), np.linspace(-0.3, 0.3, n)
    done = minimise(lambda x: float(weights @ (x - centre) ** 2), np.zeros(n), 2 * n + 20)
    assert done.fun < 1e-12


@pytest.mark.parametrize("n", [2, 5, 10])
def test_a_quadratic_is_solved(n):
    fun, centre = random_quadratic(n, n)
    done = minimise(fun, np.zeros(n), 1000)
    assert done.found is not None and done.n_evals < 40 * n
    np.testing.assert_allclose(done.found.x, centre, atol=1e-7)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(0, 10**6), st.floats(0, 3))
def test_any_small_quadratic_is_solved(n, seed, decades):
    fun, centre = random_quadratic(n, seed, decades)
    done = minimise(fun, np.zeros(n), 3000)
    np.testing.assert_allclose(done.found.x, centre, atol=1e-5)


@pytest.mark.parametrize("n_points", [12, 15, 21])
def test_rosenbrock_with_any_number_of_points(n_points):
    done = minimise(rosenbrock, np.zeros(10), 4000, n_points=n_points)
    assert done.fun < 1e-10


def test_the_model_comes_back():
    fun, _ = random_quadratic(3, 1)
    found = minimise(fun, np.zeros(3), 2000).found
    assert np.abs(found.gradient).max() < 1e-5
    assert found.radius <= 1e-8 and found.fun == fun(found.x)


def test_bounds_are_kept_and_minima_on_them_found():
    bounds = [(0.0, 1.0), (-1.0, 0.5), (-1.0, 1.0), (0.25, 0.25), (-2.0, 0.0)]
    lower, upper = np.array(bounds).T
    rng = np.random.default_rng(3)
    factor = rng.standard_normal((5, 5))
    matrix, centre = factor @ factor.T + np.eye(5), np.array([2.0, 2.0, 0.1, 1.0, 1.0])
    x0 = np.array([0.0, 0.5, 0.2, 0.25, -0.1])
    done = minimise(lambda x: float((x - centre) @ matrix @ (x - centre)), x0, 1000, bounds=bounds)
    points = np.array(done.points)
    assert (points >= lower).all() and (points <= upper).all()
    slope = 2 * matrix @ (done.x - centre)
    inward = np.where(
        done.x <= lower,
        np.minimum(slope, 0),
        np.where(done.x >= upper, np.maximum(slope, 0), slope),
    )
    assert np.abs(np.where(upper > lower, inward, 0)).max() < 1e-5


def test_a_point_where_nothing_may_move():
    done = minimise(lambda x: float(x @ x), np.ones(2), 10, bounds=[(1.0, 1.0), (1.0, 1.0)])
    assert done.n_evals == 1 and (done.found.x == 1).all()


@pytest.mark.parametrize("factor", [2.0**-40, 2.0**40])
def test_units_of_f_change_nothing(factor):
    one = minimise(rosenbrock, np.zeros(4), 300)
    other = minimise(lambda x: factor * rosenbrock(x), np.zeros(4), 300)
    np.testing.assert_array_equal(one.points, other.points)


def test_units_of_x_change_nothing():
    def plain(fun, length):
        search = quadratic_model(
            np.zeros(4),
            fun(np.zeros(4)),
            0.5 * length,
            Box.around(np.zeros(4)),
            np.random.default_rng(0),
        )
        asked, values = next(search), []
        while len(values) < 25:  # rounding grows from step to step
            told = np.array([fun(x) for x in np.atleast_2d(asked)])
            values += told.tolist()
            asked = search.send(told if asked.ndim == 2 else told[0])
        return values

    scaled = plain(lambda x: rosenbrock(x / 2.0**20), 2.0**20)
    np.testing.assert_allclose(plain(rosenbrock, 1.0), scaled, rtol=1e-3)


def test_a_far_start_is_as_good():
    shift = np.full(5, 1000.0)
    near = minimise(rosenbrock, np.zeros(5), 3000)
    far = minimise(lambda x: rosenbrock(x - shift), shift, 3000, radius=0.5 / 1000)
    assert near.fun < 1e-10 and far.fun < 1e-8


def test_failed_evaluations_do_not_end_it():
    def fun(x):
        return rosenbrock(x) if x[0] < 1.05 and x[2] > -0.4 else np.nan

    done = minimise(fun, np.zeros(5), 4000)
    assert np.isnan(done.values).any()
    assert done.fun < 1e-8


@pytest.mark.parametrize("which", range(0, 40, 3))
def test_one_failure_anywhere_costs_little(which):
    fun, centre = random_quadratic(4, 8)
    count = iter(range(10**6))
    done = minimise(lambda x: np.nan if next(count) == which else fun(x), np.zeros(4), 1000)
    np.testing.assert_allclose(done.x, centre, atol=1e-6)


def test_nothing_but_failures_ends():
    done = minimise(lambda x: np.nan, np.zeros(3), 1000)
    assert done.n_evals < 100 and (done.found.x == 0).all()


def test_a_flat_function_ends():
    done = minimise(lambda x: 1.0, np.zeros(6), 10_000)
    assert done.found is not None and done.n_evals < 1000


def test_rounding_noise_does_not_hold_it_up():
    rng = np.random.default_rng(0)
    fun, centre = random_quadratic(10, 2)
    done = minimise(lambda x: fun(x) + 1e-6 * rng.standard_normal(), np.zeros(10), 10_000)
    assert done.found is not None
    np.testing.assert_allclose(done.found.x, centre, atol=1e-2)


def test_values_that_span_many_decades():
    done = minimise(
        lambda x: float(np.exp(20 * x @ x) + np.abs(x - 0.2).sum()), np.full(4, 1.5), 3000
    )
    assert done.fun < 2


def test_one_seed_one_path():
    paths = [minimise(rosenbrock, np.zeros(6), 200, n_points=9, seed=4).points for _ in range(2)]
    np.testing.assert_array_equal(*paths)


def exchanged(n, m, seed):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((m, n))
    values = rng.standard_normal(m)
    model = Interpolation(np.zeros(n), points.copy(), values.copy())
    for _ in range(3 * m):
        y = rng.standard_normal(n)
        parts, image, beta = model.denominators(y)
        model.replace(int(parts.argmax()), y, float(rng.standard_normal()), image, beta)
    return model


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6), st.integers(0, 1000), st.floats(0, 1))
def test_the_model_meets_all_values_after_exchanges(n, seed, share):
    m = n + 2 + round(share * (n - 1))
    model = exchanged(n, m, seed)
    rises = model.rise(model.points)
    np.testing.assert_allclose(rises, model.values - model.lowest, atol=1e-5)


def test_updates_of_the_inverse_are_its_definition():
    model = exchanged(4, 9, 0)
    updated = model.inverse.copy()
    assert model.factorise()
    np.testing.assert_allclose(updated, model.inverse, atol=1e-6 * np.abs(updated).max())


def test_lagrange_functions_are_one_at_their_point():
    model = exchanged(4, 9, 1)
    for t in range(9):
        gradient, hessian = model.lagrange(t)
        d = model.points - model.at
        values = d @ gradient + 0.5 * ((d @ hessian) * d).sum(axis=1) + (t == model.best)
        np.testing.assert_allclose(values, np.arange(9) == t, atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 8), st.integers(0, 10**6))
def test_steps_stay_inside_and_fall_as_far_as_along_the_slope(n, seed):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((n, n))
    gradient, hessian = rng.standard_normal(n), factor + factor.T
    lower, upper = -rng.exponential(1, n), rng.exponential(1, n)
    radius = float(rng.exponential(1))
    d, gain, _ = trust_region_step(gradient, hessian, lower, upper, radius)

    def fall(d):
        return -gradient @ d - 0.5 * d @ hessian @ d

    assert np.linalg.norm(d) <= radius * (1 + 1e-9)
    assert (d >= lower).all() and (d <= upper).all()
    lengths = np.linspace(0, radius / np.linalg.norm(gradient), 50)
    ways = [
        -t * gradient
        for t in lengths
        if ((-t * gradient >= lower) & (-t * gradient <= upper)).all()
    ]
    assert fall(d) >= max(fall(way) for way in ways) - 1e-9
    assert gain <= fall(d) + 1e-9


def test_steps_without_bounds_are_nearly_the_best_there_are():
    shares = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        factor = rng.standard_normal((8, 8))
        gradient, hessian = rng.standard_normal(8), factor + factor.T
        none = np.full(8, np.inf)
        d, _, _ = trust_region_step(gradient, hessian, -none, none, 1.0)
        values, vectors = np.linalg.eigh(hessian)
        low, high = max(0.0, -values[0]), max(0.0, -values[0]) + 100.0
        for _ in range(200):  # the multiplier of the ball, by bisection
            middle = 0.5 * (low + high)
            way = -(vectors.T @ gradient) / (values + middle)
            low, high = (middle, high) if way @ way > 1 else (low, middle)
        best = vectors @ way
        fall = [-gradient @ s - 0.5 * s @ hessian @ s for s in (d, best)]
        shares.append(fall[0] / fall[1])
    assert min(shares) > 0.8 and np.median(shares) > 0.97


def test_a_start_in_a_small_feasible_region_is_left_by_smaller_steps():
    done = minimise(
        lambda x: float(((x - 0.06) ** 2).sum()) if np.abs(x).max() < 0.1 else np.nan,
        np.zeros(4),
        500,
    )
    np.testing.assert_allclose(done.found.x, 0.06, atol=1e-6)


def test_a_failed_start_is_left():
    done = minimise(lambda x: np.nan if (x == 0).all() else rosenbrock(x), np.zeros(4), 2000)
    assert done.fun < 1e-10


def test_what_is_returned_is_the_best_that_was_seen():
    for seed in range(5):
        fun, _ = random_quadratic(3, seed)
        done = minimise(lambda x: fun(x) + np.sin(40 * x).sum(), np.zeros(3), 2000)  # noqa: B023
        assert done.found.fun == done.fun and (done.found.x == done.x).all()
