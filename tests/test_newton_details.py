"""Descents at their borders: BFGS of either kind, and the race of parabolas against it."""

import numpy as np
import pytest

from by_hand import answer, problem, replies
from scgd.questions import Point
from scgd.searches import ActiveBFGS, Descent
from scgd.searches.arms.quasinewton import QuasiNewton
from scgd.searches.descent import active_set

# ---- BFGS from values ----------------------------------------------------------------------------


def line(fun, slope, *, first=True, steps=()):
    """Search along the first of two axes from 0; return the rates asked, and what is found."""
    newton = QuasiNewton(np.zeros(2), fun(0.0), 1.0)
    newton.first, newton.steps = first, list(steps)
    axis = np.array([1.0, 0.0])
    points, found = replies(
        newton._search_line(axis, slope, slope * axis), lambda x: fun(float(x[0]))
    )
    return [float(point[0]) for point in points], found


def test_steps_grow_tenfold_until_there_is_a_memory():
    one = [np.ones(2)]
    for first, steps, growth in ((True, one, 10.0), (False, [], 10.0), (False, one, 4.0)):
        rates, _ = line(lambda t: (t - 60.0) ** 2, -120.0, first=first, steps=steps)
        assert rates[:2] == [1.0, pytest.approx(growth)]


def test_a_line_that_falls_for_ever_is_left_after_thirteen_places():
    rates, (best, value, _) = line(lambda t: -t, -1.0)
    assert rates == [10.0**k for k in range(13)] and best == 1e12 == -value


def test_lost_places_are_come_back_from_by_a_tenth_each():
    rates, (best, _, _) = line(lambda t: -t if t < 0.005 else np.inf, -1.0)
    assert rates == pytest.approx([1.0, 0.1, 0.01, 0.001]) and best == pytest.approx(1e-3)
    rates, (best, _, _) = line(lambda t: t**2 - 1e-4 * t, -1e-4)
    assert rates[:4] == pytest.approx([1.0, 0.05, 0.0025, 0.000125])  # by a twentieth at most
    rates, (best, _, _) = line(lambda t: 0.0 if t > 0.2 else -t, -1.0)
    assert rates[:4] == pytest.approx([1.0, 0.5, 0.25, 0.125])  # level: by a half
    rates, _ = line(lambda t: np.inf if t > 0.5 else 0.0 if t > 0.06 else -t, -1.0)
    assert rates[:3] == [1.0, 0.1, 0.05]  # the parabola says more than a half, by rounding


def test_small_slopes_choose_coordinates_as_well_as_large_ones():
    newton = QuasiNewton(np.zeros(20), 1.0, 1.0)
    gradient = np.zeros(20)
    gradient[[3, 7]] = 1e-3
    newton._choose_active(gradient, np.empty(0, np.int64))
    assert newton.n_active == 2 and np.flatnonzero(newton.active).tolist() == [3, 7]


def test_steps_shorten_by_a_thousandth_down_to_a_billionth_of_the_length():
    newton = QuasiNewton(np.zeros(2), 1.0, 4.0)
    for before, after in ((2.0, 2e-3), (1e-7, 4e-9), (4e-6, 4e-9)):
        newton.step_length = before
        newton._shorten()
        assert newton.step_length == pytest.approx(after)


def test_a_step_is_a_billionth_of_the_length_at_least():
    newton = QuasiNewton(np.zeros(2), 1.0, 4.0)
    newton._accept(np.full(2, 1e-12), 0.5)
    assert newton.step_length == pytest.approx(4e-9)


def test_two_places_tell_an_error():
    newton = QuasiNewton(np.zeros(2), 1.0, 4.0)
    for slopes in ([1.0, 3.0], [3.0, 1.0]):
        newton._note_shares(np.array(slopes), np.arange(2))
    shares, errors = newton.relevance()
    np.testing.assert_allclose(shares, 0.5)
    np.testing.assert_allclose(errors, np.std([0.25, 0.75], ddof=1) / np.sqrt(2))


# ---- BFGS on active coordinates ------------------------------------------------------------------


def active(value=18.0, fall=-36.0):
    """Stand at (3, 3) with so large a slope along the direction to the origin."""
    where = problem(2)
    search = ActiveBFGS(where, Point(np.full(2, 3.0)), np.ones(2), np.arange(2), np.full(2, 2.0), 0)
    search.restart(value)
    search.gradient, search.direction = np.full(2, fall / -6.0), np.full(2, -3.0)
    search.rate, search.line, search.entries = 1.0, True, np.full(2, 2.0)
    return search


def test_the_inverse_begins_with_the_bends_no_flatter_than_a_millionth_of_the_largest():
    for bend, inverse in (([0.0, 2.0], [5e5, 0.5]), ([0.0, 0.0], [1.0, 1.0])):
        search = active()
        search.bend = np.array(bend)
        np.testing.assert_allclose(search._fresh(), np.diag(inverse))


@pytest.mark.parametrize("stalled", [False, True])
def test_what_has_stalled_begins_afresh(stalled):
    search = active()
    search.inverse, search.stalled, search.central = np.eye(2), stalled, True
    search.restart(7.0)
    assert search.value == 7.0 and not search.line and not search.stalled
    assert search.central is not stalled and search.before.size == 0
    np.testing.assert_allclose(search.inverse, np.eye(2) / (2.0 if stalled else 1.0))


@pytest.mark.parametrize("gain, hardly", [(1.5e-15, False), (0.8e-15, True)])
def test_a_gain_below_rounding_asks_for_both_sides(gain, hardly):
    search = active(value=1.0)
    search._accept(1.0 - gain)
    assert search.central is hardly and (search.before.size == 0) is hardly


def test_a_lost_side_is_no_slope_and_all_of_them_are_a_failure():
    search = active()
    search.line, search.n_tries = False, 3
    answer(search, [np.nan, 18.0 + 6 * 3e-7])
    np.testing.assert_allclose(search.direction, [0.0, -3.0], rtol=1e-5)
    assert search.line and search.n_tries == 0 and not search.central
    search = active()
    search.line = False
    answer(search, np.nan)
    assert search.central and not search.line and not search.stalled


def test_twelve_backtracks_are_tried():
    search = active()
    for n in range(12):
        search._judge(np.inf)
        assert search.n_tries == n + 1 and search.line and not search.central
    assert search.rate == pytest.approx(1e-12)
    search._judge(np.inf)
    assert not search.line and search.central and not search.stalled


def test_a_small_excess_over_the_line_tells_the_rate_as_a_large_one_does():
    search = active(fall=-0.6)
    search._judge(18.25)  # .25 + .6 above the line: .6 / 1.7
    assert search.rate == pytest.approx(0.6 / 1.7)
    search = active(fall=-0.6)
    search._judge(18.0)  # level with the point: a half
    assert search.rate == pytest.approx(0.5)


@pytest.mark.parametrize("value, taken", [(17.99, True), (17.999, False)])
def test_a_place_on_the_line_must_fall_by_a_ten_thousandth_of_the_slope(value, taken):
    search = active()
    question = search.pose()
    assert question.far
    search.take(question, np.array([value]))
    assert search.line is not taken and search.value == (value if taken else 18.0)


def test_a_failure_looks_both_ways_and_a_second_one_stalls():
    search = active()
    search.before = np.ones(2)
    search._fail()
    assert search.central and not search.stalled and not search.line and search.before.size == 0
    search.before, search.line = np.ones(2), True
    search._fail()
    assert search.central and search.stalled and not search.line and search.before.size == 0


# ---- the race of parabolas against BFGS ----------------------------------------------------------


def descent(p=2, tol=0.1, only="", rates=(0.0, 0.0), value=5.0, first=10.0):
    """At the end of a chunk of ten evaluations of BFGS, which pays what ``rates`` says."""
    where = problem(p)
    search = Descent(
        where, Point(where.x0), np.random.default_rng(0), np.ones(p), 0.0, 1000, only, tol=tol
    )
    search.parabolas.slope[...], search.parabolas.bend[...] = 1.0, 2.0
    search.parabolas.value, search.n_evals, search.first = first, 100, first
    search._start_race()
    search.rates, search.turn = list(rates), "newton"
    search.chunk_start, search.n_evals, search.chunk_value = 100, 110, value + 10 * rates[0]
    search.newton.value = value
    search._end_chunk()
    return search


@pytest.mark.parametrize(
    "rates, value, stuck",
    [((0.04, 0.04), 5.0, True), ((0.04, 0.06), 5.0, False), ((0.06, 0.04), 5.0, False),
     ((0.0075, 0.0), 9.5, False), ((0.0045, 0.0), 9.5, True), ((0.0, 0.0), 12.0, True),
     ((1e-3, 0.0), 12.0, False)],
)  # fmt: skip
def test_a_descent_is_stuck_where_both_pay_less_than_a_share_of_the_gain(rates, value, stuck):
    """A tenth of the gain over five evaluations for each of two coordinates: .05 after 5."""
    search = descent(rates=rates, value=value)
    assert search.parabolas.lost is stuck and (search.rates[1] == np.inf) is stuck
    assert (search.stuck_since == 110) is stuck


def test_bfgs_alone_is_stuck_whatever_parabolas_would_pay():
    assert descent(only="bfgs", rates=(0.0, 9.0)).parabolas.lost
    assert not descent(rates=(0.0, 9.0)).parabolas.lost


@pytest.mark.parametrize("rate, stuck", [(4e-13, True), (7.5e-13, False)])
def test_a_descent_is_stuck_at_rounding(rate, stuck):
    """Without a tolerance: 1e-13 of the value per evaluation."""
    assert descent(tol=0.0, rates=(rate, 0.0)).parabolas.lost is stuck


@pytest.mark.parametrize(
    "p, budget, n_scanned", [(100, 375, 0), (100, 374, 100), (100, 100, 55), (3, 1, 1)]
)
def test_coordinates_are_scanned_where_there_is_no_budget_for_a_sweep(p, budget, n_scanned):
    where = problem(p)
    search = Descent(where, Point(where.x0), np.random.default_rng(0), np.ones(p), 0.0, budget)
    assert search.parabolas.n_scanned == n_scanned


def test_a_gain_of_just_the_tolerance_is_none():
    search = descent(tol=0.5, rates=(9.0, 9.0))
    search.first, search.stuck_since, search.stuck_value = 3.0, 7, 2.0
    search._judge_end(1.0)
    assert search.stuck_since == 7
    search._judge_end(0.9)
    assert search.stuck_since == search.n_evals


@pytest.mark.parametrize("rates, turns", [((2.0, 1.0), "np"), ((1.0, 2.0), "pn")])
def test_every_sixth_chunk_goes_to_the_other_search(rates, turns):
    search = descent(rates=(9.0, 9.0))
    search.n_chunks, search.rates = 4, list(rates)
    for turn in turns:
        search._next_chunk(5.0)
        assert search.turn[0] == turn


def test_a_descent_knows_its_first_and_its_last_value_and_its_budget():
    search = descent(rates=(9.0, 9.0))
    search.arm.value = 5.0
    assert search.level == 5.0
    search.extend(None)
    assert search.budget == 1000
    search.extend(500)
    assert search.budget == 500
    where = problem(2)
    search = Descent(where, Point(where.x0), np.random.default_rng(0), np.ones(2), 0.0, 1000)
    answer(search, 4.0)
    answer(search, 3.0)
    assert search.first == 4.0
    assert active_set(np.ones(600), np.zeros(600), np.ones(600)).size == 500  # at most


def test_a_descent_is_taken_up_only_where_it_can_be():
    search = descent(rates=(9.0, 9.0))
    with pytest.raises(ValueError, match="cannot be at 'nowhere'"):
        search.load_state_dict({**search.state_dict(), "turn": "nowhere"})


def test_a_descent_reports_after_as_many_evaluations_as_the_root_of_its_coordinates():
    where = problem(9)
    search = Descent(where, Point(where.x0), np.random.default_rng(0), np.ones(9), 0.0, 1000)
    n_evals = []
    while len(search.journal) < 3:
        answer(search, 4.0)
        n_evals.append(search.n_evals)
    assert n_evals[:2] == [1, 3] and search.journal[0] == (3, 4.0)
    assert all(b[0] - a[0] >= 3 for a, b in zip(search.journal, search.journal[1:], strict=False))
