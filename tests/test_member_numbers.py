"""Members of searches at their borders: leash, radii, ladder, checks, doubt, by hand."""

import numpy as np
import pytest

from by_hand import answer, made
from scgd.problem import Problem
from scgd.questions import Point
from scgd.searches import (
    Check,
    Classify,
    Doubt,
    Footing,
    Ladder,
    Radii,
    RandomSearch,
    Search,
    Standing,
    Walk,
)
from scgd.searches.base import decoded
from scgd.searches.leash import Leash
from scgd.searches.leg import compared

# ---- what every search has -----------------------------------------------------------------------


class Plain(RandomSearch):
    """A search that says nothing of where it stands."""

    standing = Search.standing


def test_a_search_that_knows_nothing_stands_without_values():
    search = made(Plain)
    assert search.standing.values.shape == (0,) and search.standing.x is search.point.x
    assert search.pose().sample == (0, 0)  # its first question, in the first lane
    assert decoded((1, 2), None) == (1, 2)  # what has no kind of its own comes as it is


def test_a_leg_that_stays_has_not_fallen_and_the_first_fifty_phases_count():
    assert not compared([1.0] * 4, [1.0] * 20, 20).fell
    firsts = [0.0] * 50 + [-1e6]  # of a thousand phases, fifty are compared
    assert compared(firsts, [9.0] * 50 + [-1.0] * 50, 1000).fell


# ---- the leash -----------------------------------------------------------------------------------


def leashed(bounds=None):
    """X0 at 3 and -5, units 2 and 4: it begins with ten units."""
    return Leash(Problem.check([3.0, -5.0], bounds, [2.0, 4.0]))


def test_a_leash_is_measured_from_x0_in_units():
    leash = leashed()
    assert leash.inside(0, 7.0) == 7.0 and leash.farthest == 2.0  # (7 - 3) / 2
    assert leash.inside(1, -500.0) == -45.0 and leash.farthest == 10.0
    assert leash.inside(0, 500.0) == 23.0


def test_entries_are_clipped_to_the_leash_and_to_the_bounds():
    both, leash = np.array([0, 1]), leashed()
    assert leash.clip(both, np.array([99.0, -99.0])).tolist() == [23.0, -45.0]
    assert leash.clip(both, np.array([-99.0, 99.0])).tolist() == [-17.0, 35.0]
    leash = leashed([(0, 4), (-6, None)])
    assert leash.clip(both, np.array([99.0, -99.0])).tolist() == [4.0, -6.0]
    assert leash.farthest == 0.5  # 1 / 2 and 1 / 4
    leash.clip(np.empty(0, np.int64), np.empty(0))
    assert leash.farthest == 0.5


def test_a_leash_doubles_when_one_coordinate_goes_beyond_its_half():
    both, leash = np.array([0, 1]), leashed()
    leash.moved(both, np.array([13.0, -25.0]))  # five units each
    assert leash.reach == 10.0
    leash.moved(both, np.array([3.0, -25.1]))
    assert leash.reach == 20.0


# ---- radii ---------------------------------------------------------------------------------------


def radii(n_levels=3, p=3, **more):
    search = made(Radii, np.full(p, 0.5), n_levels, 3, 2, 100, p=p, **more)
    answer(search, [-1.0, 0.0, 1.0])  # base 0, sigma 1
    return search


def test_every_coordinate_is_asked_below_and_then_above():
    search = radii(x0=2.0)
    question = search.pose()
    assert question.far
    below, above = np.split(question.points() - 2.0, 2)
    np.testing.assert_array_equal(below, -0.5 * np.eye(3))
    np.testing.assert_array_equal(above, 0.5 * np.eye(3))


def test_sixteen_deviations_are_right_and_four_are_too_few():
    search = radii()
    answer(search, [16.0, 4.0, 80_000.0] * 2)
    assert search.resolved.tolist() == [True, False, False]
    np.testing.assert_allclose(search.radii, [0.5, 1.0, 0.05])  # narrower by a tenth at most


def test_one_radius_alone_is_its_own_joint_radius():
    search = radii(n_levels=1)
    answer(search, [10.0, 0.0, 0.0] * 2)
    assert search.turn == "joint" and search.joint == 1.0 and not search.finished


def test_joint_moves_go_both_ways_along_signs_of_a_key():
    search = radii(n_levels=1, p=12, x0=1.0)
    answer(search, [10.0] * 6 + [0.0] * 6 + [10.0] * 6 + [0.0] * 6)
    points = [answer(search, [10.0, 10.0]) - 1.0 for _ in range(4)]
    assert search.key == int(np.random.default_rng(0).integers(2**62))
    for up, down in points:
        np.testing.assert_allclose(up, -down)
        np.testing.assert_allclose(np.abs(up[:6]), np.abs(up[0]))
        np.testing.assert_array_equal(up[6:], 0.0)
    np.testing.assert_allclose(points[2], 2 * points[0])  # the same signs, twice as far
    assert np.any(np.sign(points[0][0]) != np.sign(points[1][0]))
    assert np.abs(points[0][0][0]) == pytest.approx(0.5 / np.sqrt(6))


@pytest.mark.parametrize("rise, seen", [(6.0, False), (6.2, True)])
def test_a_rise_shows_above_four_of_its_errors(rise, seen):
    """Deviations of 2; two pairs and three repeats: 4 * 2 * sqrt(1 / 4 + 1 / 3) = 6.11."""
    search = made(Radii, np.full(3, 0.5), 0, 3, 2, 100)
    answer(search, [-2.0, 0.0, 2.0])
    assert not search.finding().seen
    for _ in range(2):
        answer(search, [rise, rise])
    assert search.finding().seen is seen


def test_a_radius_that_grew_until_much_shows_is_taken():
    search = radii()
    answer(search, 0.5)
    answer(search, [32.0, 0.5, 10.0] * 2)
    assert search.resolved.tolist() == [True, False, True]
    np.testing.assert_allclose(search.radii, [1.0, 2.0, 1.0])


def test_radii_that_are_lost_are_quartered_and_joint_moves_are_pairs():
    search = radii()
    answer(search, [np.nan, 5.0, 5.0] * 2)
    assert search.resolved.tolist() == [False, True, True] and search.radii[0] == 0.125
    answer(search, 5.0)
    assert search.turn == "joint" and search.cost == 2
    answer(search, [10.0, 7.0])
    assert search.slopes == [3.0] and search.rises == [8.5]


# ---- the ladder ----------------------------------------------------------------------------------


def ladder(bounds, budget=1000, p=2, x0=0.0):
    where = Problem.check(np.full(p, x0), bounds, 1.0)
    return Ladder(where, Point(where.x0), np.random.default_rng(0), budget)


def test_within_bounds_no_coordinate_goes_beyond_two_radii():
    p, rng = 400, np.random.default_rng(0)
    search = ladder([(-50, 50)] * p, p=p)
    answer(search, 1.0 + np.arange(10.0))
    points = answer(search, 1.0)
    for up, down in np.split(points, 2):
        z = rng.standard_normal(p)
        z *= 0.25 * np.sqrt(p) / np.linalg.norm(z)
        assert z.min() < -0.5 and z.max() > 0.5
        np.testing.assert_allclose(up, np.minimum(np.maximum(z, -0.5), 0.5))
        np.testing.assert_allclose(down, -up)


@pytest.mark.parametrize("x0, cramped, n", [(0.0, False, 4), (50.0, True, 6)])
def test_a_level_in_a_corner_is_judged_by_its_middles(monkeypatch, x0, cramped, n):
    search, seen = ladder([(-50, 50)] * 2, x0=x0), []
    monkeypatch.setattr(search, "_judge", lambda *_, **how: seen.append(how))
    answer(search, 1.0 + np.arange(10.0))
    assert search.cost == n
    assert len(answer(search, 1.0)) == n and seen == [{"cramped": cramped}]


def test_two_repeats_have_a_deviation_and_one_has_none():
    search = ladder(None)
    search.repeats = [1.0, 3.0]
    assert search._plain_deviation() == pytest.approx(np.sqrt(2.0))
    search.repeats = [1.0]
    assert search._plain_deviation() == 0.0


def test_what_a_level_is_judged_by(monkeypatch):
    search, seen = ladder(None), []
    monkeypatch.setattr(search, "_judge", lambda *what, **_: seen.append(what))
    answer(search, [-2.0, -1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 2.0])  # deviation 1.15
    answer(search, np.nan)
    answer(search, [-9.0, 1.0, 0.0, 4.0])  # the second pair found nothing lower
    answer(search, [-9.0, 1.0, 4.0, -6.0])
    assert seen[0] == (0.0, np.inf, False)
    assert seen[1] == pytest.approx((np.sqrt((25 + 4) / 2), -1.0, False))
    assert seen[2] == pytest.approx((5.0, -2.5, True))


@pytest.mark.parametrize(
    "bounds, radius, pays, after",
    [(None, 4.0, False, 8.0), (None, 5.0, False, 10.0), (None, 5.1, False, None),
     (None, 5.1, True, 10.2), ([(-50, 50)] * 2, 1.0, False, 2.0), ([(-50, 50)] * 2, 1.1, True, None)],
)  # fmt: skip
def test_a_ladder_goes_up_to_ten_units_unless_it_pays_and_to_two_within_bounds(
    bounds, radius, pays, after
):
    search = ladder(bounds)
    search.radius = radius
    search._go_up(pays=pays, grows=True)
    assert search.finished is (after is None) and search.radius == (after or radius)


def test_a_level_without_a_value_is_not_rough():
    search = ladder(None)
    for even in (10.0, 8.0, np.inf):
        search._go_down(even)
    assert not search.rough


def test_values_beyond_all_numbers_have_no_deviation_and_equal_ones_rounding():
    search = ladder(None)
    search.repeats = [1.0, 2.0, np.inf]
    assert search._plain_deviation() == 0.0
    search.repeats = [5.0, 5.0]
    assert search.deviation == 1e-15 * 5.0


def test_a_ladder_ends_near_by_and_where_there_is_no_base():
    for radius, over in ((2e-4, False), (1.9e-4, True)):
        search = ladder(None)
        search.radius = radius
        search._go_down(5.0)
        assert search.finished is over and search.radius == radius / 2
    where = Problem.check(np.zeros(2), None, 1.0, 0.5)
    search = Ladder(where, Point(where.x0), np.random.default_rng(0), 1000)
    search.repeats = [float("inf")]
    assert search.deviation == 0.5


# ---- whose the noise is --------------------------------------------------------------------------


def test_classify_looks_at_a_tenth_a_hundredth_and_a_thousandth():
    search = made(Classify, 3, scale=2.0, x0=5.0)
    reaches = [np.abs(answer(search, 1.0) - 5.0) for _ in range(5)]
    for k, reach in enumerate((0.1, 0.1, 0.01, 0.01, 0.001)):
        np.testing.assert_allclose(reaches[k], 2.0 * reach)
    assert search.finished


# ---- checks of a walk ----------------------------------------------------------------------------


def checking(n=4, noise=None, deviation=1.0):
    where = Problem.check(np.zeros(2), None, 1.0, noise)
    footing = Footing(0.5, deviation, 3.0, 5.0, True, False, 4.0)
    walk = Walk(where, Point(where.x0), np.random.default_rng(0), footing)
    return walk, Check(walk, n)


def test_a_point_as_good_as_the_best_is_not_kept():
    walk, check = checking(noise=1.0)
    walk.point.put(np.ones(2))
    question = check.pose()
    assert question.far
    check.take(question, np.full(len(question), 3.0))
    assert walk.best.tolist() == [0.0, 0.0] and walk.best_values == [3.0]
    assert walk.point.x.tolist() == [1.0, 1.0] and check.finished


def test_three_errors_above_the_best_are_just_borne():
    walk, check = checking(n=2, noise=1.0)  # an error of 1
    walk.point.put(np.ones(2))
    answer(check, 6.0)
    assert walk.point.x.tolist() == [1.0, 1.0]
    walk, check = checking()
    walk.deviation, walk.odds = 2.0, [10.0 * np.sqrt(0.45)] * 6
    check._set_radius(1.9)
    assert walk.signal == pytest.approx(5.0)


def test_no_noise_stays_none():
    walk, check = checking()
    walk.deviation = 0.0
    with np.errstate(invalid="raise"):
        check._measure_noise([np.array([-2.0, 0.0, 0.0, 2.0])])
    assert 0.0 <= walk.deviation < 1e-200


def test_the_radius_of_a_walk_keeps_to_what_is_left_of_its_reach():
    """Half of a reach of one half, times the part of the walk that is left."""
    for share, radius in ((0.0, 0.25), (0.5, 0.15), (0.2, 0.2), (1.5, 0.15)):
        walk, check = checking()
        walk.radius, walk.odds, walk.share = 0.3, [80.0] * 6, share
        check._set_radius(1.9)
        assert walk.radius == pytest.approx(radius)


def test_the_radius_of_a_walk_widens_below_one_and_a_half_deviations():
    for odd, radius in ((1.4, 1.0), (1.6, 0.5), (2.9, 0.5)):
        walk, check = checking()
        walk.odds, walk.levels = [odd * np.sqrt(0.45)] * 6, [1.95]
        check._set_radius(1.9)
        assert walk.radius == radius


def test_a_check_knows_what_the_walk_knows():
    walk, check = checking()
    assert check.relevance is None
    walk.effects[...] = [[1.0, 100.0], [0.1, 0.1]]
    shares, errors = check.relevance
    np.testing.assert_allclose(shares, [1 / 101, 100 / 101])
    np.testing.assert_allclose(errors, 0.1 / 101)


# ---- doubt ---------------------------------------------------------------------------------------


class Sure(RandomSearch):
    """A search that stands somewhere exactly, and notes what it is asked to do."""

    @property
    def standing(self):
        return Standing(self.point.x, np.array([2.0]), exact=True)

    def extend(self, budget):
        self.planned, self.finished = budget, False

    def reopen(self, state):
        return "its own"


def doubting(n_told=0):
    search = Doubt(made(Sure), 1000)
    for _ in range(n_told):
        answer(search, 3.0)
    return search


def test_doubt_begins_without_any():
    search = doubting()
    assert not search.finding().differs and search.standing.exact and not search.finished


def test_doubt_looks_where_a_lost_value_tells_nothing():
    search = doubting(50)
    question = search.pose()
    assert question.far and len(question) == 1
    search.take(question, np.array([np.nan]))
    assert not search.finished and not search.finding().differs


def test_what_a_search_under_doubt_reports_and_ends_is_noted():
    search = doubting(1)
    assert search.journal == [(1, 3.0)] and search.inner.journal == []
    search.inner.finished = True
    search.settle()
    assert search.finished
    search = doubting(50)
    answer(search, 2.0)
    assert search.journal[-1] == (50, 3.0)
    answer(search, 1.0)
    assert search.journal[-1] == (52, 1.0)  # one evaluation was our own
    question = search.pose()
    search.inner.finished = True
    search.take(question, np.array([4.0]))
    assert search.finished


def test_a_search_under_doubt_plans_without_what_doubt_took():
    search = doubting(50)
    answer(search, 2.0)
    search.extend(500)
    assert search.inner.planned == 499
    search.inner.finished = search.finished = True
    search.extend(None)
    assert search.inner.planned is None and not search.finished
    search.differs = True
    search.extend(500)
    assert search.finished


def test_questions_of_a_search_under_doubt_are_reopened_by_it():
    search = doubting(50)
    own = search.pose().state_dict()
    assert search.reopen(own).role == own["role"] == -1
    assert search.reopen({**own, "role": 0}) == "its own"
