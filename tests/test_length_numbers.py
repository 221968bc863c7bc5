"""Lengths and parabolas along coordinates: every bound from both sides, every question by hand."""

import numpy as np
import pytest

from by_hand import answer, problem
from scgd.questions import Point
from scgd.searches import Parabolas, ScaleSearch
from scgd.searches.scale import Length

# ---- lengths -------------------------------------------------------------------------------------


def scaled(rounds=(1, 1, 1), repeat=False, bounds=None, x0=0.0, p=2):
    where = problem(p, bounds, 2.0, x0)
    return ScaleSearch(where, Point(where.x0), np.random.default_rng(0), rounds, repeat=repeat)


def along(search, slope, bend, base=5.0):
    """Answer with a parabola along the signs, in units."""
    h = search.h
    values = [base + slope * h + bend * h * h / 2, base - slope * h + bend * h * h / 2]
    return answer(search, [base] * (search.n_points - 2) + values)


def test_a_length_search_begins_with_nothing_known():
    search = scaled()
    assert (search.h, search.scale, search.bend, search.floor, search.widest) == (1e-3, 1, 0, 0, 0)
    found = search.finding()
    assert (found.length, found.bend, found.rough, found.repeats) == (1.0, 0.0, 0.0, False)
    assert np.isnan(found.value) and search.farthest == 0.0
    assert Length(1.0, 2.0, 0.0).repeats is False and np.isnan(Length(1.0, 2.0, 0.0).value)


@pytest.mark.parametrize("repeat, n", [(True, 4), (False, 3)])
def test_the_point_is_asked_beside_a_pair(repeat, n):
    search = scaled((2, 1), repeat=repeat)
    question = search.pose()
    points = question.points()
    assert question.far and len(points) == n == search.cost and search.total_cost == 3 * n
    np.testing.assert_allclose(points[:-2], 0.0)
    np.testing.assert_allclose(np.abs(points[-2:]), 2e-3)
    np.testing.assert_allclose(points[-2], -points[-1])
    assert search.farthest == 1e-3


def test_a_pair_stays_inside_the_bounds():
    search = scaled(bounds=[(0, 5), (-5, 0)])
    points = answer(search, 1.0)
    np.testing.assert_allclose(points[0], [2e-3, -2e-3])
    assert points[:, 0].min() == 0.0 and points[:, 1].max() == 0.0


def test_slopes_and_bends_of_a_round_are_averaged():
    """Slopes 2 and 4, bends 1 and 2: a length of 3 / 1.5."""
    search = scaled((2, 1))
    along(search, 2.0, 1.0)
    assert search.n_round == 0 and search.scale == 1.0 and search.h == 1e-3
    along(search, -4.0, -2.0)  # sizes, whatever their signs
    assert search.scale == pytest.approx(2.0, rel=1e-6)
    assert search.bend == pytest.approx(1.5, rel=1e-6)
    assert search.h == pytest.approx(0.2, rel=1e-6)
    assert (search.n_round, search.n_asked, search.slopes, search.bends) == (1, 0, [], [])


def test_the_value_is_that_of_the_point_and_one_pair_is_never_repeated():
    search = scaled(repeat=False)
    along(search, 3.0, 1.0, base=7.0)
    assert search.value == 7.0 and not search.repeats and not search.finished
    search = scaled(repeat=True)
    along(search, 3.0, 1.0, base=7.0)
    assert search.repeats and search.scale == pytest.approx(3.0, rel=1e-6)
    answer(search, [7.0, 7.5, 9.0, 9.0])
    assert search.finished and not search.repeats and search.finding().length == 1.0


def test_what_was_seen_before_a_loss_does_not_count():
    search = scaled((2, 1))
    along(search, 3.0, 1.0)
    answer(search, np.nan)
    assert search.h == pytest.approx(1e-5) and search.scale == 1.0  # a hundredth, and no more
    assert search.n_round == 1 and search.slopes == []


def test_a_bend_within_rounding_is_none():
    for ulps, scale in ((6, 1.0), (10, 1e8)):
        search = scaled()
        answer(search, [1.0, 1.25 + ulps * 2.0**-52, 0.75])
        assert search.scale == scale


def test_a_slope_alone_goes_a_hundredfold_out_and_nothing_tenfold_but_not_too_far():
    search = scaled((1,) * 9)
    along(search, 3.0, 0.0)
    assert search.h == pytest.approx(0.1)
    answer(search, 5.0)
    assert search.h == pytest.approx(1.0)
    along(search, 2.0**9, 0.0)
    assert search.h == 10.0 and search.scale == 1.0  # no farther than the race looks at first
    answer(search, [5.0, 6.0, 6.0])  # a bend alone
    assert search.h == 10.0 and search.bend == 0.0 and search.farthest == 10.0
    search = scaled()
    answer(search, [5.0, 6.0, 6.0])
    assert search.h == pytest.approx(1e-2) and search.bend == 0.0


@pytest.mark.parametrize(
    "length, h, scale",
    [(1e3, 1.0, 1e3), (30.0, 1.0, 30.0), (1e-2, 1e-3, 1e-2), (1e-6, 1e-6, 1e-6),
     (1e-9, 1e-6, 1e-8), (1e9, 1.0, 1e8), (5.0, 0.5, 5.0)],
)  # fmt: skip
def test_h_goes_to_a_tenth_by_a_factor_of_a_thousand_at_most(length, h, scale):
    """From 1e-3; the length itself is kept between 1e-8 and 1e8."""
    search = scaled()
    search._settle(length, 2.0)
    assert search.h == pytest.approx(h) and search.scale == pytest.approx(scale)
    assert search.bend == 2.0


def test_the_first_rough_look_is_kept_until_a_smooth_one():
    search = scaled()
    search._settle(1.4e-3, 2.0)  # below 1.5 h: rough, or bent so much
    assert search.widest == 1e-3 and search.floor == 0.0
    assert (search.scale, search.bend) == (1.4e-3, 2.0)
    h = search.h
    search._settle(1.4 * h, 9.0)  # as rough nearer by
    assert search.floor == 1e-3 and search.h == pytest.approx(30e-3)
    assert (search.scale, search.bend) == (1.4e-3, 2.0)
    search._settle(1.4 * search.h, 9.0)  # rough, but not nearer than the widest
    assert search.widest == pytest.approx(30e-3) and search.floor == 1e-3
    assert search.h == pytest.approx(4.2e-3)
    search._settle(1.4 * search.h, 9.0)
    assert search.floor == pytest.approx(30e-3) and search.h == pytest.approx(0.9)
    search.widest = 1.0
    search._settle(1.5 * search.h, 3.0)  # just not rough
    assert search.widest == 0.0 and search.bend == 3.0 and search.scale == pytest.approx(1.35)
    assert search.h == pytest.approx(0.135) and search.finding().rough == search.h
    search._settle(0.3, 3.0)
    assert search.h == pytest.approx(0.09)  # three times the floor, at least
    search.floor, search.widest, search.h = 5.0, 1.0, 0.5
    search._settle(0.5, 3.0)
    assert search.floor == 5.0 and search.h == 150.0


# ---- parabolas -----------------------------------------------------------------------------------


def swept(n_scanned=0, bounds=None, x0=0.0, p=3, length=None, seed=0):
    where = problem(p, bounds, 1.0, x0)
    length = np.ones(p) if length is None else np.asarray(length, float)
    return Parabolas(where, Point(where.x0), np.random.default_rng(seed), length, n_scanned)


def begun(**more):
    search = swept(**more)
    answer(search, 9.0)
    return search


def test_the_first_value_may_be_lost():
    search = swept()
    assert np.isnan(search.level)
    answer(search, np.nan)
    assert search.level == np.inf and search.standing.exact
    np.testing.assert_array_equal(search.standing.values, [np.inf])
    answer(search, [4.0, 5.0])  # from infinity nothing is gained that could be weighed
    k = int(search.queue[0])
    assert search.value == 4.0 and search.gain[k] == 0.0 and search.point.x[k] == -0.3


def test_sides_are_three_tenths_of_a_length_away_and_far():
    search = begun(length=[1.0, 2.0, 4.0])
    question = search.pose()
    k = search.coordinate
    assert question.far and len(question) == 2 == search.cost
    np.testing.assert_allclose(question.points()[:, k], [-0.3 * 2.0**k, 0.3 * 2.0**k])
    search.take(question, np.array([10.0, 9.5]))
    assert search.pose().far and search.n_points == 1


def test_sides_at_a_wall_have_half_the_room():
    search = swept(bounds=[(0, 9)] * 3, x0=1.0)
    assert search._two_sides(0, 0.0, 0.4) == [0.2, 0.4]
    assert search._two_sides(0, 0.1, 0.4) == [0.0, 0.5]
    search = swept(bounds=[(-9, 2)] * 3, x0=1.0)
    assert search._two_sides(0, 2.0, 0.4) == [1.6, 1.8]
    assert search._two_sides(0, 1.9, 0.4) == [1.5, 2.0]
    assert search._two_sides(0, 1.0, 0.4) == [0.6, 1.4]


@pytest.mark.parametrize(
    "down, up, low, high", [(-0.5, 0.5, 5.0, 3.0), (-0.25, 0.75, 5.0, 3.0), (-1.0, 0.1, 3.0, 2.5)]
)
def test_the_parabola_through_three_points(down, up, low, high):
    """Against the polynomial that interpolates: f(x) + slope t + bend t^2 / 2."""
    search = begun()
    search.pose()
    k, here = search.coordinate, float(search.point.x[search.coordinate])
    search.sides, search.value = [here + down, here + up], 2.0
    search._fit(low, high)
    second, first, _ = np.polyfit([down, 0.0, up], [low, 2.0, high], 2)
    assert search.slope[k] == pytest.approx(first) and search.bend[k] == pytest.approx(2 * second)
    assert search.n_points == 1 and search.trial == pytest.approx(here - first / (2 * second))


@pytest.mark.parametrize("swept_once, cap", [(False, 1000 * 2.0), (True, 100 * 0.3)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_how_far_a_parabola_is_followed(swept_once, cap, sign):
    """A thousand lengths in the first sweep; then a hundred radii, or one length."""
    search = begun(length=[2.0, 2.0, 2.0])
    search.pose()
    search.sides, search.swept = [-0.3, 0.3], swept_once
    search._fit(*(9.0 + sign * 1e3 * np.array([-1.0, 1.0]) + 1e-6))
    assert search.trial == pytest.approx(-sign * cap) and search.n_points == 1
    search.sides, search.swept, search.n_points = [-1e-3, 1e-3], True, 2
    search._fit(*(9.0 + sign * np.array([-1.0, 1.0]) + 1e-6))
    assert search.trial == pytest.approx(-sign * 2.0)


@pytest.mark.parametrize("rise, tried", [(1.1, True), (0.9, False)])
def test_a_bend_of_rounding_is_none(rise, tried):
    """1e-13 of the values over the square of the wider side; else the best of what was seen."""
    search = begun()
    search.pose()
    search.value, search.sides = 1.0, [-0.5, 0.5]
    slight = rise * 1e-13 * 2.0 / 0.25  # of the bend
    search._fit(1.0 + slight * 0.125, 1.0 + slight * 0.125)
    assert (search.n_points == 1) is tried


def test_no_room_is_no_parabola():
    for sides in ([0.0, 0.3], [-0.3, 0.0], [0.3, 0.3]):
        search = begun()
        search.pose()
        k, search.sides = search.coordinate, sides
        search._fit(10.0, 10.0)
        assert search.place == 1 and search.value == 9.0 and np.isnan(search.bend[k])


@pytest.mark.parametrize(
    "entry, radius", [(0.2, 0.2), (0.05, 0.09), (5.0, 0.9), (-0.2, 0.2), (0.09, 0.09), (0.9, 0.9)]
)
def test_the_radius_follows_the_move(entry, radius):
    """Between three tenths and three times what it was."""
    search = begun()
    search.pose()
    k, search.values = search.coordinate, [9.5, 9.5]
    search._keep_best(entry, 8.0)
    assert search.radius[k] == pytest.approx(radius) and search.gain[k] == 1.0
    assert search.point.x[k] == entry and search.value == 8.0 and search.visited[k]
    assert search.n_points == 2 and search.place == 1


def test_a_radius_keeps_a_ten_millionth_of_the_length():
    search = begun(length=[1.0, 1.0, 1.0])
    search.pose()
    k = search.coordinate
    search.radius[k], search.values = 2e-7, [9.5, 9.5]
    search._keep_best(0.0, 9.0)
    assert search.radius[k] == pytest.approx(1e-7) and search.gain[k] == 0.0


def test_a_side_that_is_best_widens_and_the_gain_is_averaged():
    search = begun()
    search.pose()
    k, search.values, search.sides = search.coordinate, [8.0, 7.0], [-0.3, 0.3]
    search._keep_best(0.1, 8.5)
    assert search.point.x[k] == 0.3 and search.value == 7.0
    assert search.radius[k] == pytest.approx(0.9) and search.gain[k] == 2.0
    search.place, search.sides, search.values = 0, [-0.3, 0.9], [8.0, 8.0]
    search._keep_best(0.4, 6.0)
    assert search.gain[k] == 1.5 and search.radius[k] == pytest.approx(0.27)


def test_a_trial_counts_only_below_the_value_in_hand():
    for value, entry in ((8.9, 0.25), (9.0, 0.0), (9.1, 0.0)):
        search = begun()
        search.pose()
        k, search.values, search.trial = search.coordinate, [9.5, 9.5], 0.25
        search._keep(value)
        assert search.point.x[k] == entry and search.value == min(value, 9.0)


def test_a_lost_trial_leaves_what_its_sides_showed():
    search = begun()
    answer(search, [8.0, 11.0])
    k = search.coordinate
    assert search.n_points == 1
    answer(search, np.nan)
    assert search.point.x[k] == -0.3 and search.value == 8.0 and search.n_points == 2
    assert search.place == 1 and not search.due


def test_a_sweep_ends_with_its_queue():
    search = begun()
    for n in range(3):
        assert not search.swept and search.place == n % 3
        answer(search, [np.nan, np.nan])
    assert search.swept and search.due
    np.testing.assert_allclose(search.radius, 0.03)
    answer(search, [np.nan, np.nan])
    assert search.place == 1 and not search.due and len(search.queue) == 64


# ---- which coordinate is next --------------------------------------------------------------------


def drawn(gain, lost=False, p=4, length=None):
    search = begun(p=p, length=length)
    search.swept, search.lost, search.gain[...] = True, lost, gain
    search.rng = np.random.default_rng(7)
    search._draw()
    return search


@pytest.mark.parametrize("gain", [[0.0, 1.0, 4.0, 16.0], [0.0] * 4, [0.0, 0.0, 0.0, 1e-300]])
def test_coordinates_are_drawn_by_the_root_of_their_gain(gain):
    """Ten per cent uniformly; the throws are uniform numbers laid on cumulated weights."""
    search = drawn(gain)
    roots = np.sqrt(gain)
    shares = 0.9 * roots / roots.sum() + 0.1 / 4 if roots.sum() else np.full(4, 0.25)
    throws = np.random.default_rng(7).random(64)
    expected = [int(np.sum(np.cumsum(shares) <= throw)) for throw in throws]
    assert search.queue.tolist() == expected and search.place == 0
    assert search.gain.tolist() == gain


def test_a_queue_is_as_long_as_the_root_of_the_dimension():
    assert len(drawn(np.ones(4225), p=4225).queue) == 65
    assert len(drawn(np.ones(4096), p=4096).queue) == 64


def test_a_throw_at_the_very_end_is_the_last_coordinate():
    class Ends:
        def random(self, n):
            return np.ones(n)

    search = begun(p=4)
    search.swept, search.rng = True, Ends()
    search._draw()
    assert search.queue.tolist() == [3] * 64


def test_who_is_lost_draws_wide_radii():
    search = drawn([1.0, 2.0, 3.0, 4.0], lost=True, length=[1.0, 2.0, 3.0, 4.0])
    rng = np.random.default_rng(7)
    expected = np.array([1.0, 2.0, 3.0, 4.0]) * 10.0 ** rng.uniform(-0.5, 1.5, 4)
    np.testing.assert_allclose(search.radius, expected)
    assert search.gain.tolist() == [0.0] * 4
    assert search.queue.tolist() == [int(4 * throw) for throw in rng.random(64)]


def test_who_was_lost_is_so_for_one_queue():
    search = begun()
    search.swept = search.lost = True
    answer(search, [np.nan, 1.0])
    assert not search.lost and not search.due
    search = begun()
    search.swept, search.due, search.lost = True, False, True
    search.queue = np.arange(3)
    answer(search, [np.nan, 1.0])
    assert search.lost  # until the queue is drawn


# ---- the scan ------------------------------------------------------------------------------------


def test_a_scan_steps_by_a_ten_thousandth_of_each_length():
    search = swept(3, p=5, length=[1.0, 2.0, 4.0, 8.0, 16.0])
    answer(search, 7.0)
    assert search.cost == 3
    question = search.pose()
    order = np.random.default_rng(0).permutation(5)[:3]
    assert question.far and search.queue.tolist() == order.tolist()
    np.testing.assert_allclose(search.entries, 1e-4 * 2.0**order)
    slopes = np.array([3.0, -5.0, 1.0])
    search.take(question, 7.0 + slopes * search.entries)
    np.testing.assert_allclose(search.slope[order], slopes, rtol=1e-6)
    np.testing.assert_allclose(search.gain[order], np.abs(slopes) * 2.0**order, rtol=1e-6)
    assert np.isnan(search.slope).sum() == 2 and search.scanned and not search.due
    assert search.queue.tolist() == sorted(order.tolist(), key=lambda k: -search.gain[k])
    assert search.cost == 2 and not search.swept


def test_a_scan_goes_back_at_a_wall_but_not_through_the_other():
    upper, room = 2.0, 3e-5
    search = swept(3, bounds=[(2.0 - room, 2.0), (-9, 2.0), (-9, 9)], x0=upper)
    search.length[...] = 1.0
    answer(search, 7.0)
    answer(search, 7.0)
    steps = search.entries[np.argsort(np.random.default_rng(0).permutation(3))] - upper
    np.testing.assert_allclose(steps, [-room, -1e-4, 1e-4], rtol=1e-9)


@pytest.mark.parametrize(
    "slopes, n",
    [([1e4, 0.9, 0.05, 0.04], 2), ([1e4, 1e4, 3.0, 0.1], 3), ([1e4, 1e4, 1.9, 0.05], 2),
     ([1.0, 1.0, 1.0, 1.0], 4), ([1.0, 0.0, 0.0, 0.0], 2)],
)  # fmt: skip
def test_a_scan_queues_what_holds_all_but_a_ten_thousandth(slopes, n):
    search = swept(4, p=4)
    answer(search, 0.0)
    question = search.pose()
    order = search.queue.copy()
    search.take(question, np.array(slopes) * search.entries)
    assert len(search.queue) == n and search.queue.tolist() == order[:n].tolist()


def test_a_scan_without_a_slope_or_with_lost_values():
    search = swept(4, p=4)
    answer(search, 0.0)
    answer(search, [np.nan, 1.0, np.nan, 2.0])
    assert len(search.queue) == 2 and np.nanmin(search.slope) == 0.0
    flat = swept(4, p=4)
    answer(flat, 1.0)
    answer(flat, [np.nan, 1.0, 1.0, np.inf])
    assert flat.due and np.isnan(flat.slope).all() and flat.cost == 2


def test_a_scan_queues_five_hundred_at_most():
    search = swept(600, p=600)
    answer(search, 0.0)
    answer(search, 1.0)
    assert len(search.queue) == 500
