"""Searches that look before others move: screens, reaches, repeats, rounding; numbers by hand."""

import numpy as np
import pytest

from scgd.estimators import random_signs
from scgd.problem import Problem
from scgd.questions import Point
from scgd.searches import RandomSearch
from scgd.searches.reach import DEFAULT, ROOT10, Reach
from scgd.searches.repeat import Repeat
from scgd.searches.rounding import Rounding
from scgd.searches.screen import FIRST, MOST, Screen, Screened, pursue


def problem(p=3, bounds=None, scale=1.0, x0=0.0):
    return Problem.check(np.full(p, x0), bounds, scale)


def made(cls, *rest, where=None, seed=0):
    where = problem() if where is None else where
    return cls(where, Point(where.x0), np.random.default_rng(seed), *rest)


def told(search, fun):
    question = search.pose()
    search.take(question, np.array([fun(x) for x in question.points()], float))
    return question


# ---- a random search -----------------------------------------------------------------------------


def test_points_lie_around_the_start_wherever_the_best_one_is():
    search, rng = made(RandomSearch, where=problem(2, scale=0.5, x0=3.0)), np.random.default_rng(0)
    first = told(search, lambda x: 5.0)
    assert first.points().tolist() == [[3.0, 3.0]] and not first.far
    for value in (1.0, 2.0):
        question = told(search, lambda x, value=value: value)
        np.testing.assert_allclose(question.points()[0], 3.0 + 0.5 * rng.standard_normal(2))
        assert question.far
    assert search.value == 1.0


def test_of_equal_points_the_first_is_kept():
    search = made(RandomSearch)
    told(search, lambda x: 1.0)
    told(search, lambda x: 1.0)
    assert search.point.x.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("bounds, uniform", [([(-1.0, 2.0)] * 3, True), ([(None, 2.0)] * 3, False)])
def test_points_are_uniform_only_where_both_bounds_are_known(bounds, uniform):
    search, rng = made(RandomSearch, where=problem(3, bounds)), np.random.default_rng(0)
    told(search, lambda x: 1.0)
    expected = rng.standard_normal(3)
    expected = rng.uniform(-1.0, 2.0, 3) if uniform else np.minimum(expected, 2.0)
    np.testing.assert_allclose(search.pose().points()[0], expected)


# ---- repeats and rounding ------------------------------------------------------------------------


def test_two_places_twice_each():
    search, rng = made(Repeat, where=problem(2, scale=4.0)), np.random.default_rng(0)
    assert not search.finding().same and search.cost == 4
    question = told(search, lambda x: float(x @ x))
    there = 0.1 * 4.0 * random_signs(2, rng)
    np.testing.assert_allclose(question.points(), [[0, 0], [0, 0], there, there])
    assert question.far and search.finding().same and search.finished
    other = made(Repeat)
    other.take(other.pose(), np.array([1.0, 1.0, 2.0, 2.5]))
    assert not other.finding().same and other.finding().value == 1.0


def rounded(values, length=2.0):
    search = made(Rounding, np.full(3, length))
    question = search.pose()
    search.take(question, np.asarray(values, float))
    return search, question


def test_third_differences_of_points_a_hair_apart():
    values = np.array([1.0, -3.0, 2.0, 0.1, 5.0, 1.0, 1.0, 2.0])
    search, question = rounded(values)
    third = np.diff(values, 3)
    assert search.finding().error == pytest.approx(np.sqrt(np.mean(third**2) / 20))
    steps = np.diff(question.points(), axis=0)
    np.testing.assert_allclose(np.abs(steps), 2e-9, rtol=1e-5)
    np.testing.assert_allclose(np.abs(question.points()[0]), 0.2)
    assert question.far


def test_the_error_has_a_floor_and_a_lost_value_tells_nothing():
    line = 0.1 - 1e3 * np.arange(8)  # straight, but for rounding
    search, _ = rounded(line)
    size = float(np.abs(line).max())
    assert search.error == max(np.sqrt(np.mean(np.diff(line, 3) ** 2) / 20), 1e-16 * size)
    exact, _ = rounded(0.1 * np.ones(8))
    assert exact.error == 1e-16 * 0.1
    lost, _ = rounded([1.0, np.nan, *[1.0] * 6])
    assert lost.error == 0.0 and lost.finished
    single, _ = rounded(np.full(8, 4.0))
    assert single.error == 3e-8 * 4.0


# ---- a screen ------------------------------------------------------------------------------------


def test_a_screen_stops_after_its_first_pairs_where_nothing_shows():
    search = made(Screen, 0.1, 400)
    assert (FIRST, MOST) == (128, 1000) and made(Screen, 0.1, 5000).most == 1000
    for _ in range(128):
        assert not search.finished
        told(search, lambda x: 1.0)
    assert search.finished and search.n_evals == 256


def test_what_a_screen_keeps_of_a_pair():
    search = made(Screen, 0.5, 4, where=problem(3, scale=2.0, x0=1.0))
    question = told(search, lambda x: 3.0 * x[1])
    side = np.sign(question.entries[0, 1] - 1.0)
    np.testing.assert_allclose(np.abs(question.entries - 1.0), 1.0)
    assert search.odds == [pytest.approx(3.0 * side)] and search.far == pytest.approx(0.5)


def test_a_screen_far_from_the_start_says_how_far():
    where = problem(2, scale=2.0, x0=1.0)
    search = Screen(where, Point(np.array([7.0, 1.0])), np.random.default_rng(0), 0.5, 4)
    told(search, lambda x: 1.0)
    assert search.far == pytest.approx((6.0 + 1.0) / 2.0)


@pytest.mark.parametrize(
    "left, sparse", [(0.25 * 6 + 1.5 * 2 - 1e-9, True), (0.25 * 6 + 1.5 * 2 + 1e-9, False)]
)
def test_a_screen_explains_all_but_a_quarter_of_the_signal_and_the_noise(left, sparse):
    search = made(Screen, 0.1, 4, 2.0)  # whose halved differences have variance 2
    search.odds, search.left, search.effects[1] = [2.0, np.sqrt(12.0)], left, 1.0
    assert search.finding() == Screened(1, sparse)


def test_a_screen_that_saw_nothing_found_nothing():
    search = made(Screen, 0.1, 4)
    assert search.finding() == Screened(0, False)
    search.effects[0], search.left = 1.0, 0.1
    assert search.finding() == Screened(1, False)  # no power to explain anything with


def test_effects_must_stand_out_of_so_many():
    rng = np.random.default_rng(3)
    plus = rng.random((400, 40)) < 0.5
    signs = np.packbits(plus, axis=1)
    noise = rng.standard_normal(400)
    z = np.sqrt(2 * np.log(400))
    for size, seen in ((2.2 * z, True), (0.3 * z, False)):
        odd = size / np.sqrt(400) * (2.0 * plus[:, 5] - 1) + noise
        effects, errors, left = pursue(signs, odd, 40)
        assert (np.flatnonzero(effects).tolist() == [5]) is seen
        assert errors[5] == pytest.approx(np.sqrt(left / 400), rel=0.15)


def test_an_effect_that_others_explain_is_dropped():
    rng = np.random.default_rng(0)
    plus = rng.random((64, 30)) < 0.5
    plus[:, 1] = plus[:, 0]
    plus[:4, 1] = ~plus[:4, 0]  # nearly the same signs: it enters with the other, and goes
    odd = (2.0 * plus[:, 0] - 1) + 0.05 * rng.standard_normal(64)
    effects, _, _ = pursue(np.packbits(plus, axis=1), odd, 30)
    assert np.flatnonzero(effects).tolist() == [0] and effects[0] == pytest.approx(1.0, abs=0.05)


def test_a_pursuit_of_nothing():
    effects, errors, left = pursue(np.zeros((0, 1), np.uint8), np.empty(0), 3)
    assert not effects.any() and errors.tolist() == [0.0, 0.0, 0.0] and left == 0.0


# ---- a reach -------------------------------------------------------------------------------------


def reached(budget=400, where=None):
    return made(Reach, budget, where=where)


def test_pairs_of_a_refinement_are_a_hundredth_of_the_budget():
    for budget, n in ((100, 2), (700, 7), (1500, 15), (9000, 20)):
        search = reached(budget)
        search.turn = "refine"
        assert search.pairs_per_level == n


def test_a_refinement_ends_when_its_pairs_are_in():
    search = reached(300)
    search.turn, search.radius, search.kind, search.repeats = "refine", 0.5, "slope", [-0.1, 0.1]
    for _ in range(search.pairs_per_level):
        assert not search.finished
        told(search, lambda x: float(x.sum()))
    assert search.finished and search.finding().radius == 0.5


def bent(search, change, n=3, size=4.0):
    """Have pairs whose even part grows at one level of the ladder."""
    search.repeats = [-1.0, 1.0]
    for level in range(len(search.ladder)):
        for k in range(n):
            search.where.append(float(level))
            search.even.append(size * search.sigma if level >= change else 0.1 * k)
            search.odd.append(0.0)
    return search


@pytest.mark.parametrize("change", [1, 3, 5])
def test_the_level_at_which_the_even_part_changes(change):
    search = bent(reached(), change)
    level, score, _ = search._even_level()
    inner, outer = 3 * change, 3 * (6 - change)
    small = np.mean(np.tile([0.0, 0.1, 0.2], change)) / search.sigma
    expected = (4.0 - small) / np.sqrt(2 / inner + 2 / outer)
    assert level == change and score == pytest.approx(expected)


def test_a_level_needs_two_pairs_on_either_side():
    search = reached()
    search.repeats = [-1.0, 1.0]
    search.where, search.even, search.odd = [0.0, 1.0, 1.0, 5.0], [0.0, 0.0, 0.0, 9.0], [0.0] * 4
    level, score, _ = search._even_level()
    inner, outer = np.array([0.0]), np.array([0.0, 0.0, 9.0])
    assert len(inner) < 2 < len(outer)
    assert level == 0 and score == 0.0  # one below, or one above, at every level


@pytest.mark.parametrize("z, default, radius", [(7.5, 7.0, "short"), (7.5, 7.2, "default")])
def test_the_usual_radius_is_kept_where_the_change_is_as_clear_there(
    monkeypatch, z, default, radius
):
    search = bent(reached(), 3)
    monkeypatch.setattr(Reach, "_even_level", lambda self: (3, z, default))
    monkeypatch.setattr(Reach, "_odd_level", lambda self, least: None)
    search._end_round()
    found = search.finding()
    assert found.found == "bend"  # (z^2 - default^2) / 2 is 3.6 and 2.2; the limit is 3
    assert found.radius == (DEFAULT if radius == "default" else search.ladder[3] / ROOT10)
