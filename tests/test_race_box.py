"""The race in a box: inside at all times, as good as without one, and never far beyond what pays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize

import scgd
from scgd.searches.arms.box import REACH, Box
from scgd.searches.arms.lines import search_line, sides, try_parabola
from scgd.searches.arms.quasinewton import QuasiNewton
from test_race import drive, on_line, rosenbrock, rotation

P = 12


def reference_mirror(x, low, high):
    """Bounce between two walls until inside."""
    while not low <= x <= high:
        x = 2 * low - x if x < low else 2 * high - x
    return x


@given(st.floats(-50, 50), st.floats(-3, 0), st.floats(0.5, 4))
def test_mirrors_are_bounces(x, low, high):
    box = Box(np.zeros(1), np.array([low]), np.array([high]))
    assert box.reflect(np.array([x]))[0] == pytest.approx(reference_mirror(x, low, high), abs=1e-9)
    assert low <= box.reflect(np.array([x]))[0] <= high


def test_a_box_doubles_only_where_the_best_lies_in_its_outer_half():
    box = Box(np.zeros(3), np.array([-1.0, -np.inf, 0.0]), np.array([np.inf, np.inf, 0.0]))
    part = box.part(np.array([True, True, False]))
    box.note(np.array([4.9, -5.0, 0.0]))
    assert box.reach == REACH == 10
    box.note(np.array([0.0, -5.1, 0.0]))
    assert box.reach == 20 and box.lower.tolist() == [-1, -20, 0]
    assert box.upper.tolist() == [20, 20, 0] and part.upper.tolist() == [20, 20]
    assert box.reflect(np.array([1.0, 2.0, 3.0])).tolist() == [1, 2, 0]


def shifted_quadratic(x):
    """Its minimum lies outside of the box in most coordinates."""
    return float(10.0 ** np.linspace(0, 3, P) @ (rotation(P) @ (x - 2)) ** 2)


@pytest.mark.parametrize("fun", [rosenbrock, shifted_quadratic])
def test_minima_on_the_bounds_are_those_of_l_bfgs_b(fun):
    bounds, rng, seen = [(-2.0, 0.5)] * 6 + [(-2.0, np.inf)] * 6, np.random.default_rng(0), []
    starts = [rng.uniform(-2, 0.5, P) for _ in range(5)]
    tight = {"ftol": 1e-15, "gtol": 1e-12}
    best = min(scipy_minimize(fun, x, bounds=bounds, options=tight).fun for x in starts)

    def watched(x):
        seen.append(x.copy())
        return fun(x)

    result = scgd.minimize(watched, np.full(P, -1.3), bounds=bounds, max_evals=3000, seed=1)
    assert result.fun <= best + 1e-6 * abs(best)
    points = np.array(seen)
    assert points.min() >= -2 and points[:, :6].max() <= 0.5


def test_bfgs_holds_what_stands_at_a_wall_and_lets_it_go():
    def fun(x):  # first out of the wall, then back from it
        return float((x[0] - 3) ** 2 + 10 * (x[1] - 1 + x[0]) ** 2)

    box = Box(np.zeros(2), np.array([-1.0, -1.0]), np.array([0.5, 2.0]))
    newton = QuasiNewton(np.zeros(2), fun(np.zeros(2)), 0.3, box=box)
    _, values, points = drive(newton.run(), fun, 400)
    assert points.max(axis=0)[0] <= 0.5 and np.all(points >= -1)
    assert points[values.argmin()] == pytest.approx([0.5, 0.5], abs=1e-6)
    assert newton._held(np.array([-1.0, 1.0])).tolist() == [True, False]
    assert newton._held(np.array([1.0, 1.0])).tolist() == [False, False]


def test_coordinates_without_room_have_no_slope():
    box = Box(np.zeros(3), np.array([0.0, -1.0, -1.0]), np.array([0.0, 1.0, 1.0]))
    newton = QuasiNewton(np.zeros(3), 9.0, 0.3, box=box)
    _, values, points = drive(newton.run(), lambda x: float(np.sum((x - 0.5) ** 2)), 200)
    assert np.all(points[:, 0] == 0) and values.min() == pytest.approx(0.25)


def test_lines_between_walls():
    walls = lambda: (-1.0, 2.0)  # noqa: E731
    for start in (-1.0, 0.3, 2.0):
        t, value = on_line(
            search_line(start, (start - 5) ** 2, 4.0, 40, walls), lambda t: (t - 5) ** 2
        )
        assert (t, value) == (2.0, 9.0)
        t, _, told = on_line(
            try_parabola(start, (start - 1) ** 2, 4.0, walls), lambda t: (t - 1) ** 2
        )
        assert t == pytest.approx(1.0) and told
        t, _, told = on_line(
            try_parabola(start, (start - 7) ** 2, 4.0, walls), lambda t: (t - 7) ** 2
        )
        assert t == 2.0 and told
    assert sides(2.0, 4.0, -1.0, 2.0) == (0.5, -1.0) and sides(-1.0, 1.0, -1.0, 2.0) == (0.0, -0.5)
    assert sides(0.0, 1.0, 0.0, 0.0) == (0.0, 0.0)


@pytest.mark.parametrize(("centre", "farthest"), [(1.0, 10), (100.0, 400), (-3e4, 1.3e5)])
def test_nobody_looks_far_beyond_what_pays(centre, farthest):
    seen = []

    def fun(x):
        seen.append(float(np.abs(x).max()))
        return float(np.sum((rotation(5) @ (x - centre)) ** 4))

    result = scgd.minimize(fun, np.zeros(5), max_evals=3000, seed=3)
    assert np.all(abs(result.x - centre) < 0.05 * abs(centre))
    assert result.farthest == pytest.approx(max(seen)) and max(seen) <= farthest


def test_a_flat_or_rising_function_is_not_followed_out():
    seen = []
    for fun in (lambda x: 1.0, lambda x: float(np.sum(np.abs(x)))):
        scgd.minimize(lambda x, fun=fun: (seen.append(np.abs(x).max()), fun(x))[1],
                      np.zeros(4), max_evals=2000, seed=1)  # fmt: skip
        assert max(seen) <= REACH


@pytest.mark.parametrize("method", ["descent", "parabola", "bfgs"])
@pytest.mark.parametrize(("centre", "farthest"), [(1.0, 10), (700.0, 3000)])
def test_searches_of_coordinates_are_kept_on_a_leash(method, centre, farthest):
    seen = []

    def fun(x):
        seen.append(float(np.abs(x).max()))
        return float(np.sum(1 - 1 / (1 + ((x - centre) / 30) ** 2)))  # flattens out far away

    result = scgd.minimize(fun, np.zeros(5), method=method, max_evals=3000, seed=3)
    assert max(seen) <= farthest and result.farthest == pytest.approx(max(seen), rel=1e-6)
    assert np.all(abs(result.x - centre) < 1)


@pytest.mark.parametrize("more", [
    {"sample": 100, "max_evals": 1500}, {"method": "musketeer", "max_evals": 400},
    {"method": "musketeer", "max_evals": 400, "bounds": [(-30, 9)] * 20},
    {"method": "spsa", "max_evals": 400}, {"method": "musketeer", "block_size": 3, "max_evals": 400},
])  # fmt: skip
def test_steps_tell_how_far_they_went(more):
    """Down a slope they may go anywhere; nobody had counted that."""
    seen = []

    def fun(x, *row):
        seen.append(float(np.abs(x - 4).max()))
        return float(np.sum(x))

    result = scgd.minimize(fun, np.full(20, 4.0), seed=1, scale=2.0, **more)
    assert result.farthest == pytest.approx(max(seen) / 2.0) and max(seen) > 1


def test_a_straight_line_has_no_length_scale():
    """Rounding had bent it at 1e8 units, which then were steps: 9e8 units were asked."""
    result = scgd.minimize(lambda x: float(np.sum(x)), np.full(2100, 2.0), max_evals=3150, seed=0)
    assert result.fun < 0 and result.farthest < 1e5
