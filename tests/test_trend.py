"""Ripple or trend: what slopes promise against what f does over a length."""

import numpy as np
import pytest

from by_hand import replies
from scgd.searches.arms.box import Box
from scgd.searches.arms.trend import Trend, follow_slopes


def followed(fun, x, gradient, s=0.5, n=5, seed=3, box=None):
    telling = follow_slopes(x, gradient, s, np.random.default_rng(seed), n, box or Box.around(x))
    return replies(telling, fun)


def test_a_quadratic_keeps_what_its_slopes_promise_over_any_length():
    x, bend = np.array([1.0, -2.0, 0.5]), np.diag([1.0, 100.0, 1e4])
    points, trend = followed(lambda y: float(y @ bend @ y), x, 2 * bend @ x, s=7.0)
    assert trend.agreement == pytest.approx(1.0) and trend.steepness == pytest.approx(1.0)
    assert trend.smooth and not (trend.rough or trend.flat or trend.fractal)
    assert len(points) == 10


def test_points_lie_at_the_length_on_both_sides():
    x = np.array([3.0, 4.0])
    points, _ = followed(lambda y: float(y[0]), x, np.array([1.0, 0.0]), s=0.5, n=2)
    rng = np.random.default_rng(3)
    for up, down in zip(points[::2], points[1::2], strict=True):
        step = rng.standard_normal(2)
        np.testing.assert_allclose(up - x, 0.5 * step / np.linalg.norm(step))
        np.testing.assert_allclose(down - x, x - up)


def test_by_hand():
    """Promised 3 and 4, seen 4 and 3: the cosine is 24 / 25, and both are as long."""
    trend = Trend.of(np.array([3.0, 4.0]), np.array([4.0, 3.0]))
    assert trend.agreement == pytest.approx(0.96) and trend.steepness == pytest.approx(1.0)
    trend = Trend.of(np.array([3.0, 4.0]), np.array([1.0, 0.0]))
    assert trend.agreement == pytest.approx(0.6) and trend.steepness == pytest.approx(5.0)
    trend = Trend.of(np.array([-6.0, -8.0]), np.array([3.0, 4.0]))
    assert trend.agreement == pytest.approx(-1.0) and trend.steepness == pytest.approx(2.0)


def test_walls_shorten_what_is_promised_too():
    x = np.array([0.9, 0.0])
    box = Box(x, np.full(2, -1.0), np.full(2, 1.0))
    points, trend = followed(lambda y: float(3 * y[0] - y[1]), x, np.array([3.0, -1.0]), box=box)
    assert np.abs(points).max() <= 1.0
    assert trend.agreement == pytest.approx(1.0) and trend.steepness == pytest.approx(1.0)


def test_ripples_of_a_known_size():
    """Slopes of a ripple of 100 periods per length are those of its sine, not those of x."""
    x = np.zeros(4)
    slopes = np.full(4, 1.0 + 62.8)
    _, trend = followed(lambda y: float(np.sum(y + 0.1 * np.sin(628 * y))), x, slopes, s=1.0, n=8)
    assert trend.rough and trend.fractal and not trend.smooth


def test_where_the_borders_are():
    assert Trend(0.9, 2.5).smooth and not Trend(0.89, 1.0).smooth and not Trend(1.0, 2.51).smooth
    assert Trend(0.59, 1.0).rough and not Trend(0.6, 2.5).rough and Trend(1.0, 2.51).rough
    assert Trend(1.0, 30.1).fractal and not Trend(1.0, 30.0).fractal


def test_steps_and_plains():
    _, trend = followed(lambda y: float(np.floor(9 * y).sum()), np.full(3, 0.05), np.zeros(3))
    assert trend.flat and trend.rough and trend.agreement == 0
    _, trend = followed(lambda y: 1.0, np.zeros(3), np.ones(3))
    assert trend.steepness == np.inf and trend.rough and not trend.flat


def test_values_that_are_lost_tell_nothing_and_huge_ones_do():
    x = np.zeros(2)
    values = iter([np.inf, 0.0, np.inf, np.inf, 1.0, -1.0])
    _, trend = followed(lambda y: next(values), x, np.ones(2), n=3)
    assert abs(trend.agreement) == pytest.approx(1.0) and 0 < trend.steepness < np.inf
    trend = Trend.of(np.array([3e300, 4e300]), np.array([4e200, 3e200]))
    assert trend.agreement == pytest.approx(0.96) and trend.steepness == pytest.approx(1e100)
    assert Trend.of(np.empty(0), np.empty(0)).rough


@pytest.mark.parametrize(
    "height, walled", [(999.0, False), (1001.0, True), (np.inf, True), (np.nan, True)]
)
def test_a_rise_of_a_thousand_promises_or_a_lost_value_is_a_wall(height, walled):
    """Along one coordinate a slope of one promises twice the length, here 1."""
    x = np.zeros(1)
    _, trend = followed(lambda y: height if y[0] > 0 else 0.0, x, np.ones(1), s=0.5, n=3)
    assert trend.walled is walled
    assert not followed(lambda y: 1e9 * (y[0] > 0), x, np.zeros(1))[1].walled  # steps, not walls
