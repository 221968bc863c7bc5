"""Strides along random directions: where they lead, how long they are, when they end."""

import numpy as np
import pytest

import scgd
from by_hand import replies
from scgd.searches.arms.box import Box
from scgd.searches.arms.strides import take_strides
from scgd.searches.arms.trend import gets_better


def strode(values, x=(0.0, 0.0), length=1.0, box=None):
    """Answer with given values, then with 100 for ever; return the points asked."""
    start, rest = np.array(x), iter(values)
    arm = take_strides(start, 10.0, length, np.random.default_rng(0), box or Box.around(start))
    points, reached = replies(arm, lambda point: next(rest, 100.0))
    assert reached == min([10.0, *values])
    return [np.asarray(point) for point in points]


def lengths(points, start=(0.0, 0.0)):
    return [float(np.linalg.norm(point - np.array(start))) for point in points]


def test_directions_are_tried_forwards_and_backwards_and_strides_halve_after_two():
    """Two coordinates: two directions that fail, four points, before strides are halved."""
    points = strode([10.0, 10.0], length=3.0)  # as good is no better
    np.testing.assert_allclose(points[0::2], -np.array(points[1::2]))
    expected = np.repeat(3 * 0.5 ** np.arange(14), 4)  # .5 ** 14 is below 1e-4
    np.testing.assert_allclose(lengths(points), expected)
    rng = np.random.default_rng(0)
    direction = rng.standard_normal(2)
    np.testing.assert_allclose(points[0], 3 * direction / np.linalg.norm(direction))


def test_a_better_point_is_taken_at_once_and_the_next_stride_is_longer():
    points = strode([9.0, 10.0, 8.0])
    assert lengths(points[:1])[0] == pytest.approx(1.0)
    assert lengths(points[1:3], points[0]) == pytest.approx([1.3, 1.3])  # 10 is no better than 9
    assert lengths(points[3:4], points[2])[0] == pytest.approx(1.69)


def test_directions_that_failed_are_counted_from_the_last_gain():
    points = strode([100.0, 100.0, 9.0])
    here = points[2]
    assert lengths(points[3:8], here) == pytest.approx([1.3] * 4 + [0.65])


def test_strides_are_mirrored_at_walls():
    box = Box(np.zeros(2), np.full(2, -0.1), np.full(2, 0.1))
    points = np.array(strode([], length=5.0, box=box))
    assert np.all(np.abs(points) <= 0.1) and len(np.unique(np.round(points, 12))) > 20


def test_generations_get_better_below_a_rank_correlation_of_a_quarter():
    """Five generations of one value each: 1 - (sum of squared shifts) / 20."""

    def single(*values):
        return gets_better([np.array([float(value)]) for value in values])

    assert single(2, 5, 3, 4, 1) and not single(2, 5, 4, 1, 3)  # -.3 and -.2
    assert single(5, 4, 3, 2, 1) and single(2, 5e9, 3, 4, 1)  # ranks alone
    assert not single(1, 2, 3, 4, 5) and not single(3, 3, 3, 3, 3)


def katsuura(turn, x):
    """Continuous, nowhere smooth, without any trend."""
    powers = 2.0 ** np.arange(1, 33)
    z = turn @ x
    parts = np.abs(powers * z[:, None] - np.round(powers * z[:, None])) / powers
    k = np.arange(1, z.size + 1)
    return float(10 / z.size**2 * (np.prod((1 + k * parts.sum(1)) ** (10 / z.size**1.2)) - 1))


def test_where_f_is_rough_at_every_scale_and_has_no_trend_strides_lead():
    led, gaps = 0, []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        turn = np.linalg.qr(rng.standard_normal((20, 20)))[0]
        result = scgd.minimize(
            lambda x, turn=turn: katsuura(turn, x), rng.uniform(-4, 4, 20),
            max_evals=2000, seed=seed,
        )  # fmt: skip
        gaps.append(result.fun)
        led += "strides" in dict(result.recipe.members)
    assert led >= 3 and np.median(gaps) < 1.0
