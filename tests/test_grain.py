"""How fine f is: what is asked to tell it, what it comes to, and what the race makes of it."""

import numpy as np
import pytest

import scgd
from by_hand import replies
from scgd.compare.bbob import crumpled
from scgd.searches.arms.box import Box
from scgd.searches.arms.ending import Ending
from scgd.searches.arms.grain import EPS, Grain, is_single, is_smooth, measure_grain, noise_of
from scgd.searches.arms.lines import Line, polish, sweep_lines, try_parabola
from scgd.searches.arms.quasinewton import QuasiNewton
from scgd.searches.arms.structure import Groups, active_coordinates, is_additive


def measured(fun, x, s=0.5, change=1.0, box=None, seed=0):
    rng = np.random.default_rng(seed)
    return replies(measure_grain(x, fun(x), s, change, rng, box or Box.around(x)), fun)


def bowl(x):
    return float(x @ x)


# ---- radii ---------------------------------------------------------------------------------------


def test_radii_are_roots_of_the_grain_over_the_change():
    grain = Grain(1e-8, change=1e-2)
    assert grain.forward == pytest.approx(1e-3) and grain.central == pytest.approx(1e-2)
    assert Grain(1e-18, change=1.0).forward == pytest.approx(1e-8, rel=1e-9)  # double precision
    assert Grain(1e-22, change=1.0).central == pytest.approx(1e-7)
    assert Grain(0.5, change=1.0).forward == Grain(0.5, change=1.0).central == 0.1
    assert Grain(0.5, change=0.0).forward == 0.1 and Grain(0.0, change=0.0).forward == 1e-8


def test_the_level_is_four_roundings_and_five_grains():
    assert Grain(0.25).level(-8.0) == 32 * EPS + 1.25


# ---- noise in a row of values --------------------------------------------------------------------


def reference_noise(values):
    """ECNoise by its definition: sigma_k^2 = (k!)^2 / (2k)! times the mean of squared differences."""
    from math import factorial

    table, found, signs = np.array(values), [], []
    for k in range(1, len(values)):
        table = table[1:] - table[:-1]
        found.append(np.sqrt(factorial(k) ** 2 / factorial(2 * k) * np.mean(table**2)))
        signs.append(table.min() < 0 < table.max())
    for k in range(len(found) - 2):
        if signs[k] and max(found[k : k + 3]) <= 4 * min(found[k : k + 3]):
            return found[k]
    return 0.0


@pytest.mark.parametrize("seed", range(8))
def test_noise_is_that_of_the_first_three_orders_that_agree(seed):
    rng = np.random.default_rng(seed)
    for slope in (0.0, 1.0, 30.0, 1e4):
        values = slope * np.arange(7.0) + rng.standard_normal(7)
        assert noise_of(values) == pytest.approx(reference_noise(values), rel=1e-6)


def test_the_usual_noise_is_told_within_a_half():
    rng = np.random.default_rng(3)
    found = [noise_of(5.0 * np.arange(7.0) + rng.standard_normal(7)) for _ in range(400)]
    told = np.array([each for each in found if each])
    assert len(told) > 300 and 0.7 < np.median(told) < 1.3


def test_smooth_rows_have_no_noise():
    assert noise_of(np.arange(7.0) ** 2) == 0.0 and noise_of(np.zeros(7)) == 0.0
    assert noise_of(np.exp(np.arange(7.0))) == 0.0


# ---- what is asked -------------------------------------------------------------------------------


def test_two_points_a_hair_away_tell_a_smooth_function():
    x = np.array([1.0, -2.0, 0.5])
    points, grain = measured(bowl, x)
    direction = 0.5 * np.random.default_rng(0).standard_normal(3)
    np.testing.assert_allclose(points, [x + 1e-7 * direction, x + 2e-7 * direction], rtol=1e-15)
    assert grain == Grain()


def test_the_line_turns_back_at_a_wall():
    x = np.zeros(3)
    points, _ = measured(bowl, x, box=Box(x, np.full(3, -1.0), np.zeros(3)))
    assert np.all(np.array(points) <= 0) and np.all(points[0] < 0)


@pytest.mark.parametrize("size", [1e-9, 1e-6, 1e-3])
def test_jitter_is_measured_within_a_factor_of_three(size):
    for seed in range(5):
        points, grain = measured(crumpled(bowl, size), np.ones(6), change=3.0, seed=seed)
        assert size / 3 < grain.size < 3 * size and grain.change == 3.0
        assert len(points) <= 12
        reached = np.abs(points[-1] - 1.0).max()
        assert reached > 1e-6  # once more over the distance that differences will have


def test_a_flat_function_is_looked_at_farther_out():
    points, grain = measured(lambda x: 3.0, np.ones(3), change=0.0)
    moves = [float(np.abs(p - 1.0).max()) for p in points]
    assert len(points) == 6 and moves[2] == pytest.approx(100 * moves[0]) and grain.size == 0.0


def test_digits_that_are_rounded_away_are_grain():
    _, grain = measured(lambda x: round(bowl(x), 4), np.full(10, -1.1), change=10.0)
    assert 5e-6 < grain.size < 2e-4 and grain.forward > 5e-4


def test_single_precision_is_grain():
    def single(x):
        return float(np.sum(np.asarray(x, np.float32) ** 2, dtype=np.float32))

    _, grain = measured(single, np.full(5, 1.1), change=1.0)
    assert 3e-8 * 6 < grain.size < 1e-5
    assert measured(lambda x: 7.0 + (x[0] > 1.0), np.ones(2), change=1.0)[1].size < 0.1


def test_numbers_of_single_precision_are_told_from_others_and_from_whole_ones():
    assert is_single([0.5, float(np.float32(0.1))]) and not is_single([0.5, 0.1])
    assert not is_single([3.0, 1e9]) and is_single([3.0, 0.25])


@pytest.mark.parametrize("bend, smooth", [(9.9e-6, True), (10.1e-6, False)])
def test_three_values_may_bend_ten_times_as_much_as_a_parabola_that_changes_so(bend, smooth):
    assert is_smooth([0.0, 0.0, bend], spacing=1e-3, change=1.0) is smooth
    assert is_smooth([0.0, bend, 2 * bend], spacing=1e-3, change=1.0)
    assert is_smooth([8.0, 8.0, 8.0 + 64 * 8 * EPS], spacing=0.0, change=1.0)


def test_the_second_look_is_a_third_as_wide_as_differences_will_be():
    points, _ = measured(crumpled(bowl, 1e-6), np.ones(6), change=3.0)
    direction = 0.5 * np.random.default_rng(0).standard_normal(6)
    first = (points[0] - 1.0) / direction
    np.testing.assert_allclose(first, 1e-7, rtol=1e-6)
    again = float(np.median((points[6] - 1.0) / direction))
    assert len(points) == 12 and 1e-4 < 3 * again < 3e-3


def test_lost_values_are_no_grain():
    assert measured(lambda x: np.inf if x[0] != 1.0 else 1.0, np.ones(2))[1] == Grain()
    values = iter([1.0, 2.0, 1.0, np.inf, 1.0, 2.0, 1.0])
    assert measured(lambda x: next(values), np.ones(2))[1] == Grain()


# ---- what is made of it --------------------------------------------------------------------------


def test_differences_are_as_wide_as_the_grain_asks():
    newton, entries = QuasiNewton(np.zeros(2), 0.0, 2.0, grain=Grain(1e-6, change=1.0)), []

    def flat(spread):
        entries.append(spread.entries)
        return np.zeros(len(spread))

    replies(newton._differentiate(), flat)
    newton.central = True
    replies(newton._differentiate(), flat)
    np.testing.assert_allclose(entries[0], 2e-3)
    np.testing.assert_allclose(entries[1], [2e-2, 2e-2, -2e-2, -2e-2])


def test_a_gradient_that_the_grain_explains_is_drowned():
    """2 sigma / h sqrt(2 p) forward; values of half the weight on both sides, sqrt(p / 2)."""
    newton = QuasiNewton(np.zeros(8), 0.0, 2.0, grain=Grain(1e-6, change=1.0))
    assert newton._drowned() == pytest.approx(2 * 1e-6 / 2e-3 * 4)
    newton.central = True
    assert newton._drowned() == pytest.approx(2 * 1e-6 / 2e-2 * 2)
    assert QuasiNewton(np.zeros(8), 0.0, 2.0)._drowned() == 0.0


def test_drowned_differences_become_central_then_wider_and_then_it_is_over():
    newton, widths = QuasiNewton(np.zeros(2), 0.0, 1.0, grain=Grain(1e-6, change=1.0)), []

    def flat(spread):
        widths.append((len(spread), float(spread.entries.max())))
        return np.zeros(len(spread))

    replies(newton.run(), flat)
    assert [n for n, _ in widths] == [2, 4, 4, 4, 4]
    np.testing.assert_allclose([w for _, w in widths], [1e-3, 1e-2, 3e-2, 9e-2, 0.1])


def test_pairs_that_the_grain_explains_are_not_learned_and_less_bend_widens():
    newton = QuasiNewton(np.zeros(2), 0.0, 1.0, grain=Grain(1e-6, change=1.0))
    newton.gradient, newton.first, newton.moved = np.array([1.0, 0.0]), False, np.array([0.1, 0.0])
    newton._learn(np.array([1.0 + 0.9 * newton._drowned(), 0.0]))
    assert newton.steps == []
    newton.gradient = np.array([1.0, 0.0])
    newton._learn(np.array([1.01, 0.0]))  # a bend of 0.1
    assert len(newton.steps) == 1 and newton.grain == Grain(1e-6, pytest.approx(0.1))
    newton.gradient = np.array([1.0, 0.0])
    newton._learn(np.array([3.0, 0.0]))  # more bend again: no narrower
    assert newton.grain.change == pytest.approx(0.1)


def test_gains_within_the_grain_are_none():
    newton = QuasiNewton(np.zeros(2), 1.0, 1.0, grain=Grain(0.01, change=1.0))
    newton._accept(np.ones(2), 0.989)
    assert newton.n_small == 0
    newton._accept(np.ones(2), 0.98)
    assert newton.n_small == 1


def test_a_race_ends_by_what_its_grain_allows():
    ending = Ending(1e-10, first=10.0, grain=0.01)
    assert ending.worth(1.0) == 0.01 and ending.worth(11.0) == 0.0
    ending.note("descent", before=1.0, value=1.029)
    assert ending.n_agreed == 1
    ending.note("descent", before=1.0, value=1.031)
    assert ending.n_agreed == 1 and ending.failed["descent"] == 1


def test_groups_that_move_f_by_less_than_five_grains_do_not_matter():
    x, grain = np.zeros(4), Grain(0.01)
    looking = Groups(x, 0.0, 1.0, np.random.default_rng(0), Box.around(x), grain)
    assert replies(looking.moves(np.array([1])), lambda y: 0.049)[1] is False
    assert replies(looking.moves(np.array([1])), lambda y: 0.051)[1] is True


def test_a_sum_is_told_up_to_eight_grains_and_not_where_they_are_large():
    def asked(off, size, **words):
        values, rng = iter([1.0, 2.0, 3.0 + off] * 3), np.random.default_rng(0)
        arm = is_additive(np.zeros(2), 0.0, 1.0, rng, grain=Grain(size, change=1.0), **words)
        return replies(arm, lambda y: next(values))[1]

    assert asked(7.9e-5, 1e-5) and not asked(8.1e-5, 1e-5)
    assert asked(0.0, 1.9e-4) and not asked(0.0, 2.1e-4)  # of a change of two
    assert asked(0.0, 0.19, clear=0.1) and not asked(0.0, 0.21, clear=0.1)


def test_active_coordinates_are_found_under_jitter():
    def fun(x):
        return float(np.sum((x[:3] - 1) ** 2))

    x, jittery = np.zeros(40), crumpled(fun, 1e-5)
    rng = np.random.default_rng(0)
    arm = active_coordinates(x, jittery(x), 0.5, rng, grain=Grain(1e-5, change=1.0))
    assert np.flatnonzero(replies(arm, jittery)[1]).tolist() == [0, 1, 2]


def test_lines_do_not_polish_grain():
    line = Line(0.0, 0.0, 1.0)
    line.t, line.f = [-1.0, 0.0, 1.0], [0.02, 0.0, 0.02]
    assert replies(polish(line, 1.0, Grain(0.01)), lambda t: 0.0)[0] == []
    line.t, line.f = [-1.0, 0.0, 1.0], [0.03, 0.0, 0.03]
    assert replies(polish(line, 1.0, Grain(0.01)), lambda t: 0.0)[0] != []


def test_a_parabola_tells_its_value_up_to_five_grains():
    def told(off):
        values = iter([[1.0, 1.0], off])
        arm = try_parabola(0.0, 0.0, 1.0, grain=Grain(0.01))
        return replies(arm, lambda t: next(values))[1][2]

    assert told(0.0499) and not told(0.0503)


def test_a_line_that_moves_f_by_less_than_five_grains_is_left_alone():
    def asked(high, low):
        values = iter([[high, low], -9.0])
        arm = try_parabola(0.0, 0.0, 1.0, grain=Grain(0.01))
        return replies(arm, lambda t: next(values))

    for sides in ((-0.049, 0.049), (0.049, -0.049)):
        questions, found = asked(*sides)
        assert len(questions) == 1 and found == (0.0, 0.0, True)
    for sides in ((-0.051, 0.06), (0.06, -0.051), (0.051, 0.0), (0.0, 0.051)):
        assert len(asked(*sides)[0]) == 2


def test_a_sweep_within_the_grain_is_the_last():
    def swept(size):
        fun = crumpled(lambda x: float(np.sum((x - 0.3) ** 2)), 1e-6)
        x = np.zeros(3)
        rng = np.random.default_rng(0)
        arm = sweep_lines(x, fun(x), 0.5, rng, 20, np.zeros(3), grain=Grain(size, change=1.0))
        asked = []

        def answer(spread):
            asked.append(len(spread))
            assert sum(asked) < 3000
            rows = np.repeat(spread.x[None], len(spread), axis=0)
            rows[np.arange(len(spread)), spread.coords] = spread.entries
            values = np.array([fun(row) for row in rows])
            return float(values[0]) if spread.single else values

        replies(arm, answer)
        return sum(asked)

    assert swept(1e-6) < 0.7 * swept(0.0)


# ---- what a user sees ----------------------------------------------------------------------------


def rosenbrock(x):
    return 100 * np.sum((x[1:] - x[:-1] ** 2) ** 2) + np.sum((1 - x[:-1]) ** 2)


@pytest.mark.parametrize("relative, most", [(1e-11, 1e-9), (1e-9, 1e-8), (1e-7, 1e-7)])
def test_a_solver_s_tolerance_does_not_stop_auto(relative, most):
    """With differences of 1e-8 medians were 7e-6, 3e-6 and 9e-7 of the start's gap."""
    gaps = []
    for seed in range(3):
        turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((8, 8)))[0]
        bend = np.logspace(0, 2, 8)

        def fun(x, turn=turn, bend=bend):
            return float(np.sum(bend * (turn @ (x - 0.5)) ** 2))

        x0 = np.full(8, 3.0)
        jittery = crumpled(fun, relative * fun(x0))
        result = scgd.minimize(jittery, x0, max_evals=1200, seed=seed)
        gaps.append(fun(result.x) / fun(x0))
    assert np.median(gaps) < most


def test_a_function_in_single_precision_is_minimised():
    def single(x):
        return float(rosenbrock(np.asarray(x, np.float32)))

    gaps = [
        rosenbrock(scgd.minimize(single, np.full(6, -1.0), max_evals=1500, seed=seed).x)
        for seed in range(3)
    ]
    assert np.median(gaps) < 0.1
