"""Implicit filtering: differences as wide as the length scale, narrower when a line fails."""

import contextlib

import numpy as np
import pytest

from by_hand import each, replies
from scgd.searches.arms.box import Box
from scgd.searches.arms.filtering import Filtering
from scgd.searches.arms.quasinewton import QuasiNewton


def run(fun, x, s=1.0, most=10**4, box=None, search=Filtering):
    """Search until it is over or has asked for so many values; return it and the values."""
    search, values = search(x, fun(x), s, box=box), []
    with contextlib.suppress(TimeoutError):
        replies(search.run(), each(fun, values, most))
    return search, values


def test_the_first_differences_reach_one_length_both_ways():
    x, s = np.array([2.0, -1.0]), 0.5
    first = np.asarray(next(Filtering(x, 0.0, s).run())) - x
    h = s + 3e-4 * np.abs(x)
    np.testing.assert_allclose(first, [[h[0], 0], [0, h[1]], [-h[0], 0], [0, -h[1]]])


def test_each_failure_makes_them_four_times_narrower_down_to_the_last_radius():
    """On a plain nothing falls: radii 1, 1/4, ... 1/256."""
    search = Filtering(np.zeros(2), 0.0, 1.0)
    points, _ = replies(search.run(), lambda y: np.zeros(len(y)))
    radii = [np.abs(np.asarray(p)).max() for p in points]
    np.testing.assert_allclose(radii, 0.25 ** np.arange(5))
    assert search.radius == pytest.approx(0.25**5)


def test_a_line_that_does_not_fall_makes_them_narrower_too_and_forgets():
    """|x| + x / 2 has its minimum at 0; differences promise that it falls to the left."""
    search, radii, memories = Filtering(np.zeros(1), 0.0, 1.0), [], []

    def fun(points):
        if points.ndim == 2:
            radii.append(float(np.abs(np.asarray(points)).max()))
        else:
            memories.append(len(search.steps))
        y = np.asarray(points)[..., 0]
        return np.abs(y) + y / 2 if points.ndim == 2 else float(np.abs(y) + y / 2)

    replies(search.run(), fun)
    assert radii == [0.25**k for k in range(5)] and set(memories) == {0}
    assert search.f == 0.0 and search.x.tolist() == [0.0]


def test_gradients_over_two_radii_are_never_compared():
    """After a step and a failure, the change of the gradient is the radius', not the step's."""
    search = Filtering(np.zeros(2), 9.0, 1.0)
    search.moved, search.gradient, search.first = np.ones(2), np.zeros(2), False
    search.steps, search.changes = [np.ones(2)], [np.ones(2)]
    assert not search._refuse() and search.radius == 0.25
    search._learn(np.ones(2))
    assert search.steps == [] == search.changes


def test_a_kink_stops_bfgs_and_not_wide_differences():
    """x0^2 + 100 |x1|: BFGS stands still on the ridge, wide differences go along it."""

    def ridge(x):
        return float(x[0] ** 2 + 100 * np.abs(x[1:]).sum())

    x = np.array([5.0, 0.3, -0.2, 0.4])
    _, values = run(ridge, x, most=400)
    _, told = run(ridge, x, most=400, search=QuasiNewton)
    assert min(values) < 0.1 * min(told)


def test_stairs_have_no_slopes_and_are_gone_down():
    def stairs(x):
        return float(np.floor(3 * np.abs(x)).sum())

    x = np.array([4.2, -3.3, 2.6])
    search, values = run(stairs, x)
    assert min(values) == search.f == 0.0 and len(values) < 300
    assert stairs(search.x) == search.f


def test_the_lowest_point_of_the_differences_is_taken_where_the_line_found_none_lower():
    """A hole beside the start that no line along the slope meets."""
    hole = np.array([0.0, 1.0])

    def fun(x):
        return -50.0 if np.allclose(x, hole, atol=1e-6) else float((x[0] + 1) ** 2)

    search, _ = run(fun, np.zeros(2), most=9)
    assert search.f == -50.0 and search.x.tolist() == hole.tolist()


def test_a_line_that_is_lower_than_the_differences_is_kept():
    search, values = run(lambda x: float(np.sum((x - 3) ** 2)), np.zeros(3), most=40)
    assert search.f == min(values) < 1e-12


def test_walls_are_kept():
    x = np.full(3, 0.9)
    box = Box(x, np.zeros(3), np.ones(3))
    seen = []

    def fun(y):
        seen.append(y.copy())
        return float(np.floor(5 * y).sum())

    search, _ = run(fun, x, box=box)
    assert np.min(seen) >= 0 and np.max(seen) <= 1 and search.f == 0.0
