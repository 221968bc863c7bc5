"""Stories told by hand: what a plan asks next, for findings and budgets worked out beforehand."""

import numpy as np
import pytest

import scgd
from scgd.plans.auto import auto
from scgd.plans.descent import descent, race, random_search
from scgd.plans.doubt import doubted
from scgd.plans.ground import Ground
from scgd.plans.mixed import over_space
from scgd.plans.steps import n_asked, patiently, steps, watched
from scgd.searches import (
    Doubted,
    Leg,
    Length,
    Noise,
    Raced,
    RandomSearch,
    Repeats,
    Started,
    Verdict,
)
from telling import EQUAL, FINE, LENGTH, ground, names, told

# ---- auto ----------------------------------------------------------------------------------------

BEGUN = (Started(5.0), 1)
DETERMINISTIC = [BEGUN, (Noise("deterministic"), 8)]


@pytest.mark.parametrize(
    "p, total, second",
    [(10, 68, "scale"), (10, 69, "race"), (2000, 12009, "race"), (2001, 12500, "race"),
     (99, 593, "scale"), (99, 603, "race"), (100, 408, "scale"), (100, 409, "race")],
)  # fmt: skip
def test_searches_race_from_six_evaluations_per_coordinate_or_four_hundred_in_all(p, total, second):
    where = ground(p, total)
    assert names(told(auto(where), where, *DETERMINISTIC)) == ["start", "classify", second]
    assert where.repeats


@pytest.mark.parametrize("total, n_reaches", [(99, 1), (399, 1), (400, 3), (5000, 3)])
def test_a_tiny_budget_asks_once_whether_there_is_noise(total, n_reaches):
    where = ground(4, total)
    assert told(auto(where), where, BEGUN)[1].n_reaches == n_reaches


def test_what_the_user_says_of_noise_is_not_asked():
    where = ground(4, noise=0.0)
    assert names(told(auto(where), where, BEGUN)) == ["start", "race"]
    assert next(auto(ground(4, noise=0.1))).name == "ladder"


@pytest.mark.parametrize(
    "p, total, sample, first",
    [(4, 3, None, "start"), (4, 100, None, "start"), (4, 100, 10, "steps"),
     (2001, 10**6, None, "steps"), (2000, 10**6, None, "start")],
)  # fmt: skip
def test_derivatives_are_used_in_steps_where_no_race_is(p, total, sample, first):
    assert next(auto(ground(p, total, sample=sample, first_order=True))).name == first


@pytest.mark.parametrize(
    "kind, second",
    [("deterministic", "race"), ("uncontrollable", "steps"), ("controllable", "steps")],
)
def test_derivatives_of_a_noisy_function_are_used_in_steps(kind, second):
    where = ground(4, 1000, first_order=True)
    assert names(told(auto(where), where, BEGUN, (Noise(kind), 8)))[2] == second


@pytest.mark.parametrize("total, third", [(6, "slopes"), (99, "slopes"), (100, "race")])
def test_few_evaluations_follow_derivatives_at_once(total, third):
    where, script = ground(4, total, first_order=True), (Noise("deterministic"), 2)
    assert names(told(auto(where), where, BEGUN, script)) == ["start", "classify", third]
    where = ground(4, total, first_order=True)
    lost = told(auto(where), where, (Started(np.nan), 1), script)
    assert names(lost) == ["start", "classify", "race"]  # nothing to begin with
    where = ground(4, 5, first_order=True)  # none is left to ask about noise
    assert names(told(auto(where), where, BEGUN)) == ["start", "slopes"]


@pytest.mark.parametrize("total, third", [(34, "steps"), (35, "descent")])
def test_a_sweep_needs_nearly_two_evaluations_per_coordinate(total, third):
    where = ground(20, total)
    script = [BEGUN, (Noise("deterministic"), 2), (LENGTH, 6)]
    assert names(told(auto(where), where, *script))[3] == third
    if third == "steps":
        assert where.sentence == "Deterministic, too wide for a sweep; length scale 2."


@pytest.mark.parametrize(
    "p, total, last",
    [(2001, 3501, "steps"), (2004, 3507, "descent"), (2000, 600, "descent"), (400, 500, "descent")],
)
def test_random_signs_follow_a_race_that_is_not_held_where_a_sweep_is_too_wide(p, total, last):
    """On a sparse quadratic of 10,000 a sweep cut short left 26 of 39, random signs .002."""
    where = ground(p, total)
    lost = Doubted(False, {"held": False})
    script = [*DETERMINISTIC, (lost, 40), (LENGTH, 6), (FINE, 8)]
    asked = names(told(auto(where), where, *script))
    assert asked == ["start", "classify", "race", "scale", "rounding", last] and not where.converged


def test_blocks_under_a_sample_are_compared_four_times_along_the_way():
    """Of 2,500 evaluations 2 x 100 / 150 -> 16 pairs are kept; a fifth of the rest each time."""
    where = ground(4, 2500, sample=50)
    head = [(Noise("controllable"), 9), (LENGTH, 120), (FINE, 8)]
    asked = told(auto(where), where, *head)
    walk, start, end = asked[3], 137, 2500 - 2 * 16
    assert names(asked) == ["classify", "scale", "rounding", "steps"]
    assert walk.until == int(start + 0.2 * (end - start)) - start
    np.testing.assert_array_equal(walk.scale, 2.0)
    assert where.sentence == "Noise that the sample controls; length scale 2."
    where = ground(4, 2500, sample=50, scale=3.0)
    script = list(head)
    for verdict in (EQUAL, EQUAL, EQUAL, EQUAL):
        script += [(Leg(True), 470), (verdict, 32)]
    script += [(Leg(True), 100)]
    asked = told(auto(where), where, *script)
    assert names(asked[3:]) == ["steps", "judge"] * 5
    assert [j.n_samples for j in asked[4::2]] == [16] * 5
    np.testing.assert_array_equal(asked[-1].reference, where.problem.x0)
    np.testing.assert_array_equal(asked[3].scale, 2.0 * 3.0)
    assert where.mean_law is not None and float(where.arrays["n_laws"][0]) == 4.0


@pytest.mark.parametrize("total, n_judges", [(2499, 1), (2500, 5)])
def test_small_budgets_are_compared_at_the_end_alone(total, n_judges):
    where = ground(4, total, sample=50)
    script = [(Noise("controllable"), 9), (LENGTH, 120), (FINE, 8)]
    for _ in range(n_judges - 1):
        script += [(Leg(True), 400), (EQUAL, 32)]
    asked = told(auto(where), where, *script, (Leg(True), 100))
    assert names(asked[3:]) == ["steps", "judge"] * n_judges
    np.testing.assert_array_equal(asked[-1].reference, where.problem.x0)
    if n_judges == 1:
        n_evals = 2499 - 2 * 16 - 137
        assert asked[3].until == n_evals
        assert asked[3].timetable.total == n_evals // asked[3].step_cost


def test_the_last_comparison_is_with_the_start():
    where = ground(4, 2500, sample=50)
    telling = auto(where)
    told(telling, where, (Noise("controllable"), 9), (LENGTH, 120), (FINE, 8))
    where.point.put(np.ones(4))
    references = []
    for _ in range(4):
        where.spent += 400
        references.append(telling.send(Leg(True)).reference[0])
        where.spent += 32
        assert telling.send(EQUAL).name == "steps"
    where.spent += 400
    assert [*references, telling.send(Leg(True)).reference[0]] == [0.0, 1.0, 1.0, 1.0, 0.0]


def test_a_space_with_budget_for_slopes_is_like_any_other_problem():
    from scgd.spaces import Space

    problem = Space(a=scgd.Float(0, 1)).problem()
    for total, first in ((300, "niches"), (301, "start")):
        where = Ground(problem, ground().samples, np.random.SeedSequence(0), total)
        assert next(auto(where)).name == first


def test_lengths_of_a_descent_take_few_directions():
    where = ground(4, 3600)
    assert told(descent()(where), where, BEGUN)[1].rounds == (5, 5, 5, 5, 5)


def test_random_search_takes_f_for_deterministic():
    where = ground(4)
    assert next(random_search(where)).name == "random search" and where.repeats


def test_a_leg_that_got_worse_goes_back_and_is_a_third_as_wide():
    where = ground(4, 2500, sample=50)
    telling = auto(where)
    script = [(Noise("controllable"), 9), (LENGTH, 120), (FINE, 8)]
    walk = told(telling, where, *script)[-1]
    rate = walk.recipe.learning_rate.scale
    where.point.put(np.ones(4))
    where.spent += 470
    telling.send(Leg(True))
    where.spent += 32
    again = telling.send(Verdict(2.9, 1.0))
    np.testing.assert_array_equal(where.point.x, 1.0)  # three errors, or it is kept
    assert again.recipe.learning_rate.scale == rate
    where.point.put(np.full(4, 2.0))
    where.spent += 470
    telling.send(Leg(True))
    where.spent += 32
    again = telling.send(Verdict(3.1, 1.0))
    np.testing.assert_array_equal(where.point.x, 1.0)
    assert again.recipe.learning_rate.scale == pytest.approx(rate / 3)


# ---- without noise -------------------------------------------------------------------------------


def test_a_descent_measures_lengths_and_rounding_then_sweeps():
    where = ground(4, 1000, noise=0.0)
    asked = told(descent("bfgs")(where), where, BEGUN, (LENGTH, 30), (FINE, 8), (Raced(True), 100))
    assert names(asked) == ["start", "scale", "rounding", "descent", None]
    assert asked[3].budget == 961 and asked[3].error == 1e-8 and asked[3].only == "bfgs"
    np.testing.assert_array_equal(asked[3].length, 2.0)
    np.testing.assert_array_equal(asked[2].length, 2.0)
    assert where.converged and where.repeats
    where = ground(4, 99, noise=0.0)
    assert names(told(descent()(where), where, BEGUN, (LENGTH, 6)))[1:] == ["scale", "descent"]


@pytest.mark.parametrize("held, after", [(True, None), (False, "scale")])
def test_a_race_that_did_not_hold_goes_on_as_a_descent(held, after):
    where = ground(4, 1000, noise=0.0)
    asked = told(race(where), where, BEGUN, (Raced(held), 300))
    assert names(asked) == ["start", "race", after] and where.converged == held
    assert asked[1].budget == 999


def test_values_that_stop_repeating_change_the_road():
    where = ground(4, 1000)
    search = RandomSearch(where.problem, where.point, where.rng())
    asked = told(doubted(where, search), where, (Doubted(False, {}), 100))
    assert asked[0].inner is search and asked[1] == search.found()
    where = ground(4, 1000)
    where.repeats = True
    search = RandomSearch(where.problem, where.point, where.rng())
    asked = told(doubted(where, search), where, (Doubted(True, {}), 100))
    assert names(asked) == ["random search", "ladder"] and not where.repeats
    assert asked[1].budget == 900
    asked = told(doubted(ground(4, noise=0.0), search), where, (search.found(), 100))
    assert asked[0] is search  # nobody doubts the user


# ---- recipes -------------------------------------------------------------------------------------

RELATIVE = scgd.RECIPES["musketeer"]


@pytest.mark.parametrize(
    "total, sample, asks, n",
    [(1, None, True, 1), (2, None, True, 2), (79, None, True, 3), (80, None, True, 4),
     (None, None, True, 4), (80, None, False, 0), (80, 10, True, 0)],
)  # fmt: skip
def test_whether_values_repeat_is_asked_with_as_many_as_the_budget_pays_for(total, sample, asks, n):
    where = ground(4, total, sample=sample, asks=asks)
    first = next(steps(RELATIVE)(where))
    assert first.name == ("repeat" if n else "steps")
    assert n == 0 or first.cost == n == n_asked(where)


def test_the_scale_is_looked_for_where_it_costs_a_twentieth():
    cost = next(steps(RELATIVE)(ground(4, None, scale=None))).total_cost
    for total, first in ((20 * cost - 1, "steps"), (20 * cost, "scale"), (None, "scale")):
        where = ground(4, total, scale=None)
        assert next(steps(RELATIVE)(where)).name == first
    where = ground(4, 10**4, scale=None, patience=None)
    asked = told(steps(RELATIVE)(where), where, (Length(3.0, 1.0, 0.0, True, 7.0), 60))
    np.testing.assert_array_equal(asked[1].scale, 3.0)
    assert where.repeats and where.first == 7.0 and asked[1].base == 7.0
    where = ground(4, 10**4, scale=None, sample=5)
    asked = told(steps(RELATIVE)(where), where, (Length(3.0, 1.0, 0.0, True, 7.0), 60))
    assert not where.repeats and np.isnan(asked[1].base)


def test_patience_under_noise_runs_legs_until_one_does_not_fall():
    where = ground(4, 10**4, asks=True, patience=100)
    story = steps(RELATIVE)(where)
    asked = told(story, where, (Repeats(False, 5.0), 4), (Leg(True), 100), (Leg(False, False), 100),
                 (Leg(True), 200), (Leg(False), 100))  # fmt: skip
    assert names(asked) == ["repeat", "steps", "steps", "steps", "steps", None]
    assert where.converged
    where = ground(4, 10**4, patience=100)
    walk = where.steps(RELATIVE, None, 10**4)
    telling, lengths = patiently(where, walk), []
    next(telling)
    for leg_found in (Leg(True), Leg(False, False), Leg(False, False), Leg(True)):
        lengths.append(walk.until)
        telling.send(leg_found)
    assert [*lengths, walk.until] == [100, 100, 200, 400, 100]
    where.total, where.spent = 5000, 1000
    telling.send(Leg(True))
    assert walk.timetable.total == 4000 // walk.step_cost  # planned anew, for what is left
    where.total = None
    telling.send(Leg(True))
    assert walk.timetable.total is None


def test_runs_on_derivatives_keep_a_tenth_or_sixteen_values_back():
    for total, kept in ((100, 10), (1000, 16)):
        where = ground(4, total, first_order=True)
        walk = where.steps(RELATIVE.first_order(), None, total)
        telling = watched(where, walk)
        assert next(telling) is walk and walk.until == total - kept
        where.spent = total - kept
        watch = telling.send(Leg(True))
        assert watch.name == "watch" and watch.n_values == kept
        where.spent = total
        assert telling.send(None).name == "rest"
    where = ground(4, None, first_order=True)
    walk = where.steps(RELATIVE.first_order(), None, None)
    assert next(watched(where, walk)) is walk


# ---- spaces --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "n_floats, n_choices, total, name",
    [(3, 0, 300, "niches"), (3, 0, 301, None), (3, 1, 301, "niches"), (40, 0, 300, "niches"),
     (41, 0, 300, "mutations"), (41, 1, 301, "mutations")],
)  # fmt: skip
def test_models_for_few_evaluations_or_few_coordinates(n_floats, n_choices, total, name):
    from scgd.spaces import Space

    words = {f"f{i}": scgd.Float(0, 1) for i in range(n_floats)}
    words |= {f"i{i}": scgd.Int(0, 3) for i in range(n_choices)}
    problem = Space(words).problem()
    where = Ground(problem, ground().samples, np.random.SeedSequence(0), total)
    telling = over_space(where)
    assert (None if telling is None else next(telling).name) == name
