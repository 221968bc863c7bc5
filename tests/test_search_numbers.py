"""The numbers that searches go by, worked out by hand from their sentences."""

import numpy as np
import pytest

from by_hand import answer, made, problem
from scgd.questions import Point
from scgd.searches import (
    ActiveBFGS,
    Descent,
    Doubt,
    RandomSearch,
    Rest,
    Standing,
    Watch,
)
from scgd.searches.descent import active_set, potential
from scgd.searches.leash import Leash
from scgd.searches.leg import above, compared

# ---- small ones ----------------------------------------------------------------------------------


def test_a_watch_looks_so_often_and_means_what_was_not_lost():
    search = Watch(Point(np.ones(2)), 3)
    assert not search.finished and not Watch(Point(np.ones(2)), 1).finished
    assert Watch(Point(np.ones(2)), 0).finished
    for n, value in enumerate((2.0, np.nan, 5.0), 1):
        assert np.isnan(search.level) and not search.finished
        np.testing.assert_array_equal(answer(search, value), [[1.0, 1.0]])
        assert search.n_evals == n
    assert search.finished and search.level == 3.5 == search.mean
    assert search.journal == [(3, 3.5)] and search.pose() is None
    np.testing.assert_array_equal(search.standing.values, [2.0, np.nan, 5.0])
    open_ = Watch(Point(np.ones(2)), 2)
    assert [open_.pose() is None for _ in range(3)] == [False, False, True]
    lost = Watch(Point(np.ones(2)), 1)
    answer(lost, np.nan)
    assert np.isnan(lost.level)


def test_rest_costs_more_than_any_budget_and_ends_with_a_larger_one():
    search = Rest(Point(np.ones(2)), np.array([4.0]))
    assert search.cost == 2**62 and search.pose() is None and not search.finished
    assert search.standing.values.tolist() == [4.0]
    search.extend(10)
    assert search.finished


def test_a_leg_fell_where_its_last_fifth_lies_a_standard_error_below_its_first():
    """Twenty phases: four and four, variances 1 / 3 each, so an error of sqrt(2 / 3 / 4)."""
    first, error = [0.0, 1.0, 0.0, 1.0], np.sqrt((1 / 3 + 1 / 3) / 4)
    for shift, fell in ((0.99, False), (1.01, True)):
        last = [value - shift * error for value in first]
        assert compared(first, [9.0] * 12 + last, 20).fell is fell
    assert not compared(first, [-9.0] * 20, 19).enough and not compared(first, first, 19).fell
    assert compared(first, first, 20).enough
    many = [0.0] * 50 + [99.0]
    assert compared(many[:51], [1.0] * 60 + [-1.0] * 50, 10**6).fell  # fifty at most
    assert above(1.0, [3.0] * 10 + [100.0]) == 2.0


def test_random_points_are_normal_or_uniform_in_a_bounded_box():
    free = made(RandomSearch, p=2, scale=3.0)
    np.testing.assert_array_equal(answer(free, 5.0), [[0.0, 0.0]])
    drawn = np.random.default_rng(0).standard_normal(2)
    np.testing.assert_allclose(answer(free, 7.0)[0], 3.0 * drawn)
    assert free.level == 5.0 and free.journal == [(1, 5.0), (2, 5.0)]
    np.testing.assert_array_equal(free.point.x, 0.0)
    here = answer(free, 4.0)
    np.testing.assert_array_equal(free.point.x, here[0])
    boxed = made(RandomSearch, p=2, bounds=[(0, 2), (2, 6)], x0=2.0)
    answer(boxed, 1.0)
    rng = np.random.default_rng(0)
    rng.standard_normal(2)  # drawn in any case, so that bounds do not shift what follows
    np.testing.assert_allclose(answer(boxed, 1.0)[0], rng.uniform([0, 2], [2, 6]))
    half = made(RandomSearch, p=2, bounds=[(-9, 9), (-9, None)])
    answer(half, 1.0)
    np.testing.assert_allclose(
        answer(half, 1.0)[0], half.problem.unit * np.random.default_rng(0).standard_normal(2)
    )


# ---- without noise -------------------------------------------------------------------------------


def newton(error=0.0, p=2):
    where = problem(p)
    point = Point(np.full(p, 3.0))
    search = ActiveBFGS(
        where, point, np.ones(p), np.arange(p), np.full(p, 2.0), error, Leash(where)
    )
    search.restart(bowl(point.x))
    return search


def bowl(x):
    return float(np.sum(np.asarray(x) ** 2))


def test_bfgs_goes_to_the_minimum_of_a_bowl_in_one_step():
    """The inverse of the bends is exact there: forward differences, then the whole step."""
    search = newton()
    points = answer(search, [bowl([3 + 3e-7, 3.0])] * 2)
    np.testing.assert_allclose(points - 3.0, 3e-7 * np.eye(2), atol=1e-12)
    np.testing.assert_allclose(search.gradient, 6.0, rtol=1e-5)
    np.testing.assert_allclose(search.direction, -3.0, rtol=1e-5)
    assert search.rate == 1.0 and search.line
    np.testing.assert_allclose(answer(search, 1e-9), 0.0, atol=1e-4)
    assert search.value == 1e-9 and search.level == 1e-9 and not search.line
    np.testing.assert_array_equal(search.before, search.gradient)


def test_radii_of_bfgs_rise_above_rounding():
    search = newton()
    np.testing.assert_allclose(search._radii(np.array([3.0, 0.1])), [3e-7, 1e-7])
    search.central = True
    np.testing.assert_allclose(search._radii(np.array([3.0, 0.1])), [3e-5, 1e-5])
    search.error = 1e-4
    np.testing.assert_allclose(search._radii(np.ones(2)), 4 * np.sqrt(1e-4 / 2.0))
    search.central = False
    np.testing.assert_allclose(search._radii(np.ones(2)), 2 * np.sqrt(1e-4 / 2.0))
    search.error = 100.0
    np.testing.assert_allclose(search._radii(np.ones(2)), 1.0)  # no wider than the length


def test_radii_of_bfgs_are_as_narrow_as_can_be_while_rounding_is_usual():
    for error, value, wide in ((1e-12, 1.0, False), (1.1e-12, 1.0, True), (1e-11, 100.0, False)):
        search = newton()
        search.error, search.value = error, value
        expected = 2 * np.sqrt(error / 2.0) if wide else 1e-7
        np.testing.assert_allclose(search._radii(np.ones(2)), expected)


def test_bfgs_goes_by_the_inverse_that_it_has_learned():
    search = newton()
    search.inverse = np.diag([0.1, 0.7])
    assert search.cost == 2
    answer(search, search.value + 3e-7 * np.array([6.0, 6.0]))
    np.testing.assert_allclose(search.direction, [-0.6, -4.2], rtol=1e-5)
    assert search.cost == 1
    search.line, search.central = False, True
    assert search.cost == 4
    search = newton()
    search.inverse = np.diag([-1.0, -1.0])  # uphill: begin afresh
    answer(search, search.value + 3e-7 * np.array([6.0, 6.0]))
    np.testing.assert_allclose(search.direction, -3.0, rtol=1e-5)


def test_bfgs_updates_the_inverse_by_the_secant():
    search = newton()
    step, change = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    search._update(step, change)
    np.testing.assert_allclose(search.inverse @ change, step)
    np.testing.assert_allclose(search.inverse, search.inverse.T)
    before = search.inverse.copy()
    search._update(step, -change)  # no curvature along the step
    np.testing.assert_array_equal(search.inverse, before)


def test_bfgs_backtracks_by_the_parabola_and_grows_its_cap_after_a_short_step():
    search = newton()
    search.gradient, search.direction = np.array([6.0, 6.0]), np.array([-3.0, -3.0])
    search.rate, search.line, search.entries = 1.0, True, np.full(2, 2.0)
    search._judge(20.0)  # 20 - 18 + 36 = 38 above the line: 36 / (2 * 38)
    assert search.n_tries == 1 and search.rate == pytest.approx(36 / 76)
    search._judge(np.inf)
    assert search.rate == pytest.approx(0.1 * 36 / 76)
    cap = search.cap
    search._judge(1.0)
    assert search.cap == cap and search.value == 1.0
    np.testing.assert_array_equal(search.step, -1.0)
    for rate, factor in ((0.5, 4.0), (1.0, 1.0)):
        search = newton()
        search.gradient, search.direction = np.array([6.0, 6.0]), np.array([-3.0, -3.0])
        search.rate, search.n_tries, search.entries, cap = rate, 0, np.full(2, 2.0), search.cap
        search._accept(1.0)
        assert search.cap == factor * cap


def test_what_coordinates_can_change_over_their_length():
    slope, bend, length = (
        np.array([1.0, -2.0, np.nan]),
        np.array([4.0, np.nan, 6.0]),
        np.full(3, 0.5),
    )
    np.testing.assert_allclose(potential(slope, bend, length), [0.5 + 0.5, 1.0, 0.75])
    assert active_set(np.zeros(3), np.zeros(3), np.ones(3)).size == 0
    np.testing.assert_array_equal(
        active_set(np.array([1e-9, 5.0, 3.0]), np.zeros(3), np.ones(3)), [1, 2]
    )


def descended(budget=1000, tol=0.0, p=2):
    where = problem(p)
    return Descent(
        where, Point(where.x0), np.random.default_rng(0), np.ones(p), 0.0, budget, tol=tol
    )


def test_a_descent_pays_by_the_gain_per_evaluation():
    search = descended()
    search.parabolas.slope[...], search.parabolas.bend[...] = [1.0, 2.0], 2.0
    search.parabolas.value, search.n_evals = 10.0, 100
    search._start_race()
    assert search.turn == "newton" and search.newton is not None
    assert (search.chunk_start, search.chunk_end) == (100, 130)  # 3 % of the budget
    search.newton.value, search.n_evals = 4.0, 120
    search._end_chunk()
    assert search.rates == [0.3, float("inf")] and search.turn == "parabolas"
    assert search.chunk_end == 140  # 2 %, 20 at least
    search.parabolas.value, search.n_evals = 2.0, 140
    search._end_chunk()
    assert search.rates == [0.3, 0.1] and search.turn == "newton"
    search.newton.stalled, search.newton.value, search.n_evals = True, 1.0, 150
    search._end_chunk()
    assert search.rates[0] == pytest.approx(0.01) and search.turn == "parabolas"
    np.testing.assert_allclose(search.weights, [2 / 5, 3 / 5])
    np.testing.assert_array_equal(np.isnan(search.relevance[1]), True)


def test_a_descent_that_is_stuck_looks_around_before_it_ends():
    """Two coordinates: ten evaluations without a gain of more than tol are enough."""
    search = descended(tol=0.1)
    search.first, search.n_evals = 10.0, 0
    search._judge_end(5.0)
    assert (search.stuck_since, search.stuck_value) == (0, 5.0) and not search.finished
    search.n_evals = 9
    search._judge_end(4.9)
    assert search.stuck_since == 0 and not search.finished
    search.n_evals = 10
    search._judge_end(4.9)
    assert search.finished
    search._judge_end(4.0)  # a gain of 1 is more than a tenth of 6
    assert search.stuck_since == 10 and not search.finished
    never = descended(tol=0.0)
    never.first, never.stuck_since, never.stuck_value, never.n_evals = 10.0, 0, 5.0, 10**6
    never._judge_end(5.0)
    assert not never.finished
    assert search.members == {"parabolas": 0, "bfgs": 0}
    assert search.sentence == "parabolas along coordinates (0), BFGS (0)"


def test_a_descent_without_slopes_knows_no_weights():
    search = descended()
    search.parabolas.slope[...] = search.parabolas.bend[...] = 0.0
    assert search.weights is None and search.relevance is None
    search.n_evals = 10
    search._start_race()
    assert search.newton is None and search.rates[0] == 0.0 and search.turn == "parabolas"


class Standing1(RandomSearch):
    """A search that stands somewhere exactly, or not."""

    values, exact = (2.0,), True

    @property
    def standing(self):
        return Standing(self.point.x, np.array(self.values), exact=self.exact)


def doubting(**more):
    inner = made(Standing1)
    for name, value in more.items():
        setattr(inner, name, value)
    return Doubt(inner, 1000)


def test_doubt_asks_the_best_point_again_when_it_is_due():
    search = doubting()
    period = search.period
    for _ in range(period):
        assert search.cost == search.inner.cost
        answer(search, 3.0)
    assert search.inner.n_evals == period and search.cost == 1
    np.testing.assert_array_equal(answer(search, 2.0), search.point.x[None])
    assert search.inner.n_evals == period and not search.finished
    assert search.due == period + 1 + period
    for _ in range(period):
        answer(search, 3.0)
    answer(search, 2.1)
    assert search.finished and search.finding().differs and not search.standing.exact
    assert search.members == {} and search.n_evals == 2 * period + 2


def test_doubt_looks_every_twentieth_of_the_budget_fifty_at_least():
    for budget, period in ((100, 50), (1000, 50), (2000, 100)):
        assert Doubt(made(Standing1), budget).period == period
    search = doubting()
    search.inner.__class__ = type("Knows", (Standing1,), {"relevance": "shares", "weights": "law"})
    assert search.relevance == "shares" and search.weights == "law"


def test_an_open_question_of_doubt_is_its_own():
    search = doubting()
    for _ in range(search.period):
        answer(search, 3.0)
    own = search.pose()
    assert search.pose() is None  # until it is answered
    again = search.reopen(own.state_dict())
    assert again.role == own.role
    np.testing.assert_array_equal(again.points(), own.points())


@pytest.mark.parametrize("more", [{"exact": False}, {"values": (2.0, 2.0)}, {"values": (np.nan,)}])
def test_doubt_leaves_alone_what_is_no_value_of_the_point(more):
    search = doubting(**more)
    for _ in range(search.period):
        answer(search, 3.0)
    assert not search.looks


def test_questions_of_a_search_stay_open_under_doubt():
    search = doubting()
    assert search.pose() is not None and search.pose() is not None
