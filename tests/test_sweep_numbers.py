"""Sweeps, length searches and searches written as stories: their numbers by hand."""

import numpy as np
import pytest

from scgd.problem import Problem
from scgd.questions import Point
from scgd.searches import Archive, Filling, Parabolas, RandomSearch, ScaleSearch, Stop, Told
from scgd.searches.arms.lines import Line
from scgd.searches.arms.spread import Spread
from scgd.searches.base import decoded, encoded
from scgd.searches.filling import valley
from scgd.searches.judge import Verdict
from scgd.searches.race import LOOK_AGAIN, Embedding, Race


def problem(p=3, bounds=None, scale=1.0, x0=0.0):
    return Problem.check(np.full(p, x0), bounds, scale)


def answer(search, values):
    """Answer the next question; return its points."""
    question = search.pose()
    points = question.points()
    values = [values(x) for x in points] if callable(values) else values
    search.take(question, np.broadcast_to(np.asarray(values, float), (len(question),)).copy())
    return points


# ---- what every search has -----------------------------------------------------------------------


def test_a_flag_is_raised_and_lowered():
    stop = Stop()
    stop.set()
    assert stop.array.tolist() == [1] and stop.raised == [1] and not stop.over
    stop.clear()
    assert stop.array.tolist() == [0] and not stop.raised
    stop.end()
    assert stop.over == [1] and stop.array.tolist() == [1]


def test_what_a_search_remembers_comes_back_as_it_was():
    assert encoded(np.array([True, False])).dtype == np.int64
    assert encoded(np.array([1.5])).dtype == np.float64 and encoded(np.float64(2.0)) == 2.0
    np.testing.assert_array_equal(encoded([1.0, 2.0]), [1.0, 2.0])
    for mine, value in ((1, 1.0), (1.0, 1), ("a", 1), (True, 1), ([1.0], 2.0), (np.ones(1), 2.0)):
        with pytest.raises(ValueError, match="stands in the place of"):
            decoded(value, mine)
    mine = np.zeros(2)
    assert decoded(np.ones(2), mine) is mine and mine.tolist() == [1.0, 1.0]
    assert decoded(np.array([1, 0]), np.zeros(3, bool)).dtype == bool
    assert decoded(np.array([3.0]), [1.0]) == [3.0]
    search = RandomSearch(problem(), Point(np.zeros(3)), np.random.default_rng(0))
    state = search.state_dict()
    for name in ("n_posed", "n_open", "n_evals"):
        with pytest.raises(ValueError, match="counts below zero"):
            search.load_state_dict({**state, name: -1})


def test_an_archive_is_filled_over_its_oldest_points():
    found = Archive.empty(2, 3)
    points = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]])
    found.add(points, np.array([10.0, np.nan, 30.0, 40.0]))
    assert len(found) == 3 and found.values.tolist() == [10.0, 30.0, 40.0]
    found.add(points[:1] * 5, np.array([50.0]))
    assert len(found) == 3 and found.values.tolist() == [50.0, 30.0, 40.0]
    away, values = found.near(np.full(2, 3.0), np.full(2, 0.5), 2, 10.0)
    assert values.tolist() == [30.0, 40.0] and away.tolist() == [[0.0, 0.0], [2.0, 2.0]]
    assert found.near(np.full(2, 3.0), np.full(2, 0.5), 3, 2.0)[1].tolist() == [30.0]
    assert found.near(np.full(2, 3.0), np.full(2, 0.5), 3, 2.1)[1].tolist() == [30.0, 40.0]
    assert len(Archive.empty(2, 0)) == 0
    assert Verdict(1.0, 1.0).median == 0.0 and Verdict(1.0, 1.0).lower == 0.5


# ---- lengths -------------------------------------------------------------------------------------


def scaled(rounds=(1, 1, 1), **more):
    where = problem(2, scale=2.0)
    return ScaleSearch(where, Point(where.x0), np.random.default_rng(0), rounds, **more)


def test_a_length_is_slope_over_bend():
    """F = 3 z + z^2 / 2 along the signs, z in units: slope 3, bend 1, so 3; h goes to a tenth."""
    search = scaled(repeat=False)
    assert search.cost == 3 and search.total_cost == 9
    h = 1e-3
    points = answer(search, [5.0, 5.0 + 3 * h + h * h / 2, 5.0 - 3 * h + h * h / 2])
    np.testing.assert_allclose(points[0], 0.0)
    np.testing.assert_allclose(np.abs(points[1:]), 2.0 * h)
    assert search.scale == pytest.approx(3.0, rel=1e-6) and search.bend == pytest.approx(
        1.0, rel=1e-6
    )
    assert search.h == pytest.approx(0.3, rel=1e-6) and not search.repeats
    np.testing.assert_allclose(np.abs(answer(search, np.nan)[1:]), 2.0 * 0.3, rtol=1e-6)
    assert search.h == pytest.approx(3e-3, rel=1e-6)  # lost: too far
    answer(search, 5.0)
    assert search.h == pytest.approx(3e-2, rel=1e-6) and search.finished  # nothing seen: wider
    assert search.finding().length == search.scale and search.finding().value == 5.0


def test_a_slope_without_a_bend_is_looked_at_a_hundred_times_as_far():
    search = scaled((2, 1), repeat=True)
    assert search.cost == 4
    answer(search, [1.0, 1.0, 2.0, 0.0])
    assert search.h == 1e-3 and search.repeats and not search.finished  # two directions a round
    answer(search, [1.0, 1.0, 2.0, 0.0])
    assert search.h == pytest.approx(0.1)
    answer(search, [1.0, 1.5, 2.0, 0.0])
    assert search.finished and not search.repeats and search.finding().length == 1.0


def test_where_f_is_as_rough_nearer_by_h_goes_outwards():
    from scgd.searches.scale import ROUGH

    search = scaled()
    search.h = 1.0
    search._settle(0.9 * ROUGH, 4.0)
    assert search.widest == 1.0 and search.floor == 0.0
    h = search.h
    assert h == pytest.approx(max(1e-3, 0.1 * 0.9 * ROUGH))
    search._settle(0.9 * ROUGH * h, 5.0)
    assert search.floor == 1.0 and search.h == 30.0 and search.finding().rough == 30.0
    assert search.bend == 4.0  # of the first look
    search._settle(ROUGH * search.h, 6.0)  # just not rough
    assert search.bend == 6.0 and search.h >= 3.0


# ---- parabolas -----------------------------------------------------------------------------------


def swept(n_scanned=0, bounds=None, x0=0.0, p=3):
    where = problem(p, bounds, 1.0, x0)
    return Parabolas(where, Point(where.x0), np.random.default_rng(0), np.ones(p), n_scanned)


def test_a_sweep_goes_to_the_minimum_of_each_coordinate():
    centre = np.array([0.1, -0.2, 0.15])

    def fun(x):
        return float(np.sum((x - centre) ** 2))

    search = swept()
    assert search.cost == 1
    answer(search, fun)
    assert search.cost == 2 and search.level == pytest.approx(fun(np.zeros(3)))
    for _ in range(3):
        k_points = answer(search, fun)
        k = search.coordinate
        np.testing.assert_allclose(k_points[:, k], [-0.3, 0.3])
        assert search.slope[k] == pytest.approx(-2 * centre[k]) and search.bend[k] == pytest.approx(
            2
        )
        assert search.cost == 1 and search.trial == pytest.approx(centre[k])
        answer(search, fun)
        assert search.radius[k] == pytest.approx(max(abs(centre[k]), 0.09))
        assert search.gain[k] == pytest.approx(centre[k] ** 2)
    assert search.swept and search.due
    np.testing.assert_allclose(search.point.x, centre)
    assert search.level == pytest.approx(0.0, abs=1e-15)


def test_a_scan_steps_forward_and_queues_what_holds_nearly_all():
    from scgd.searches.parabolas import COVERED, SCAN

    search = swept(3)
    slopes = np.array([1.0, 100.0, 50.0])
    answer(search, 7.0)
    assert search.cost == 3
    points = answer(search, lambda x: 7.0 + float(slopes @ x))
    np.testing.assert_allclose(points.sum(axis=1), SCAN)
    np.testing.assert_allclose(search.slope, slopes, rtol=1e-6)
    np.testing.assert_allclose(search.gain, slopes, rtol=1e-6)
    covered = np.cumsum([100.0, 50.0, 1.0])
    n = max(2, int(np.searchsorted(covered, COVERED * 151.0)) + 1)
    assert search.queue.tolist() == [1, 2, 0][:n]
    steep = swept(3)
    answer(steep, 7.0)
    answer(steep, lambda x: 7.0 + float(np.array([1e-9, 100.0, 1e-9]) @ x))
    assert len(steep.queue) == 2 and steep.queue[0] == 1  # two at least
    flat = swept(3)
    answer(flat, 7.0)
    answer(flat, 7.0)
    assert flat.due and flat.scanned
    wall = swept(3, bounds=[(-1, 2)] * 3, x0=2.0)
    answer(wall, 7.0)
    assert np.all(answer(wall, 8.0).sum(axis=1) < 6.0)
    np.testing.assert_allclose(wall.slope, -1.0 / SCAN)


def test_sides_at_a_bound_lie_on_the_side_with_room():
    search = swept(bounds=[(0, 9)] * 3)
    assert search._two_sides(0, 0.0, 0.4) == [0.2, 0.4]
    search = swept(bounds=[(-9, 0)] * 3)
    assert search._two_sides(0, 0.0, 0.4) == [-0.4, -0.2]
    assert search._two_sides(0, -1.0, 0.4) == [-1.4, -0.6]


def test_lost_sides_shrink_and_falling_sides_widen():
    search = swept()
    answer(search, 1.0)
    answer(search, [np.nan, 1.0])
    assert search.radius[search.queue[0]] == pytest.approx(0.03) and search.place == 1
    k = int(search.queue[1])
    answer(search, [0.9, 1.2])  # bends, with its minimum near the lower side
    if search.n_points == 1:
        answer(search, 5.0)
    assert search.point.x[k] == pytest.approx(-0.3) and search.radius[k] == pytest.approx(0.9)
    assert search.value == 0.9


# ---- searches written as stories -----------------------------------------------------------------


class Tale(Told):
    """One point, then three, then one along a coordinate, and the end."""

    name = "tale"

    def tell_story(self, x):
        self.sent = []
        self.sent.append((yield x))
        self.doing = "looking"
        self.sent.append((yield np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])).copy())
        self.left_then = self.left
        self.sent.append((yield Spread(x, np.array([1]), np.array([0.5]), single=True)))


def tale(budget=100, scale=2.0, bounds=None):
    where = problem(2, bounds, scale)
    return Tale(where, Point(where.x0), np.random.SeedSequence(3), budget, 0.0)


def bowl(x):
    return float(np.sum((x - np.array([2.0, 0.0])) ** 2))


def test_a_story_asks_in_units_and_is_told_its_batches():
    search = tale()
    np.testing.assert_array_equal(answer(search, bowl), [[0.0, 0.0]])
    assert search.sent == [4.0] and search.best == 4.0
    points = answer(search, bowl)
    np.testing.assert_array_equal(points, [[2.0, 0.0], [0.0, 4.0], [6.0, 6.0]])
    np.testing.assert_array_equal(search.sent[1], [0.0, 20.0, 52.0])
    assert search.level == 0.0 and search.standing.exact and search.left_then == 96
    np.testing.assert_array_equal(search.point.x, [2.0, 0.0])
    assert search.ran == {"measuring": 1, "looking": 3} and search.far == 3.0
    np.testing.assert_array_equal(answer(search, bowl), [[0.0, 1.0]])
    assert search.finished and search.sent[2] == 5.0 and search.members["measuring"] == 2
    assert search.journal == [(1, 4.0), (4, 0.0), (5, 0.0)] and search.n_told == 5


def test_a_batch_is_asked_in_parts_where_there_is_no_room():
    search = tale()
    answer(search, bowl)
    search.room = 2
    first, second = search.pose(), None
    assert len(first) == 2
    search.take(first, np.array([1.0, np.nan]))
    assert len(search.sent) == 1 and search.best == 1.0
    second = search.pose()
    assert len(second) == 1
    search.take(second, np.array([0.5]))
    np.testing.assert_array_equal(search.sent[1], [1.0, np.inf, 0.5])
    np.testing.assert_array_equal(search.point.x, [6.0, 6.0])


def test_a_larger_budget_is_found_after_the_next_value():
    search = tale(10)
    answer(search, bowl)
    search.extend(50)
    assert search.budgets == [(0, 10), (2, 50)] and search.budget == 10
    search.extend(None)
    assert len(search.budgets) == 2
    answer(search, bowl)
    assert search.budget == 50 and search.left == 46


def test_a_best_point_far_out_widens_the_box():
    search = tale(scale=1.0)
    answer(search, bowl)
    assert search.box.reach == 10.0
    search.values, search.batch, search.distance = np.array([-1.0]), np.array([[8.0, 0.0]]), 8.0
    search.single = True
    search._note_distance()
    assert search.box.reach == 20.0 and search.lowest == -1.0
    half = tale(scale=2.0)  # in units: 8 is 4 lengths away, inside the half
    answer(half, bowl)
    half.values, half.batch, half.distance = np.array([-1.0]), np.array([[8.0, 0.0]]), 5.1
    half._note_distance()
    assert half.box.reach == 10.0


def test_a_story_is_told_again_what_it_was_told():
    search = tale()
    answer(search, bowl)
    search.room = 2
    question = search.pose()
    search.take(question, np.array([1.0, 3.0]))
    other = tale()
    other.load_state_dict(search.state_dict())
    assert other.sent == [4.0] and other.best == 1.0 and other.n_evals == 3
    assert (other.n_asked, other.n_answered) == (2, 2)
    np.testing.assert_array_equal(other.point.x, [2.0, 0.0])
    other.room = 9
    answer(other, [0.0])
    np.testing.assert_array_equal(other.sent[1], [1.0, 3.0, 0.0])
    for name, value in (("budgets", np.array([[1, 100]])), ("values", np.zeros(7))):
        with pytest.raises(ValueError):
            tale().load_state_dict({**search.state_dict(), name: value})


# ---- the race ------------------------------------------------------------------------------------


def test_points_of_some_coordinates_are_points_of_all():
    whole = Embedding(np.array([9.0, 8.0, 7.0]), np.array([0, 2]))
    np.testing.assert_array_equal(whole(np.array([1.0, 2.0])), [1.0, 8.0, 2.0])
    np.testing.assert_array_equal(
        whole(np.array([[1.0, 2.0], [3.0, 4.0]])), [[1.0, 8.0, 2.0], [3.0, 8.0, 4.0]]
    )
    inner = np.zeros(2)
    spread = whole(Spread(inner, np.array([1]), np.array([5.0])))
    assert spread.coords.tolist() == [2] and spread.at(0).tolist() == [0.0, 8.0, 5.0]
    assert whole(Spread(inner, np.array([0]), np.array([4.0]))).x is spread.x
    other = whole(Spread(np.ones(2), np.array([0]), np.array([4.0])))
    assert other.at(0).tolist() == [4.0, 8.0, 1.0] and spread.at(0).tolist() == [0.0, 8.0, 5.0]


def raced(values, n_told=(), budget=100):
    """Run an embedded search of one point at a time; return what it asked and returned."""
    where = problem(3)
    race = Race(where, Point(where.x0), np.random.SeedSequence(0), budget, 0.0)

    def inner():
        for k in range(3):
            yield np.array([float(k)])

    active = np.array([False, True, False])
    arm = race._embedded(np.zeros(3), 5.0, 1.0, active, inner())
    asked, told = [], iter(values)
    counts = iter(n_told)
    try:
        point = next(arm)
        while True:
            asked.append(np.array(point))
            race.n_told = next(counts, race.n_told)
            point = arm.send(np.array([next(told)]) if np.ndim(point) == 2 else next(told))
    except StopIteration as end:
        return asked, end.value


def test_others_are_looked_at_when_the_search_ends_and_when_it_is_due():
    asked, woke = raced([4.0, 3.0, 6.0, 3.0])
    assert woke is None and len(asked) == 4
    assert [point[1] for point in asked] == [0.0, 1.0, 2.0, 1.0]  # the last around the best
    assert asked[3][0] != 0.0 and asked[3][2] != 0.0 and asked[0][0] == 0.0
    asked, woke = raced([4.0, 3.0, 6.0, 3.1])
    assert woke[1] == 3.0 and woke[0].tolist() == [0.0, 1.0, 0.0]
    due = int(np.ceil(LOOK_AGAIN * 100))
    asked, woke = raced([4.0, 4.0, 3.0, 3.0, 6.0, 3.0], [due, due, 2 * due, 2 * due])
    assert woke is None and [float(point[1]) for point in asked] == [0.0, 0.0, 1.0, 1.0, 2.0, 1.0]
    asked, woke = raced([4.0, 4.5], [due])
    assert woke[1] == 4.0 and len(asked) == 2
    asked, woke = raced([4.0, 3.0, 6.0, 3.0], [due - 1])
    assert len(asked) == 4


# ---- filling in ----------------------------------------------------------------------------------


def test_a_valley_is_the_minimum_of_a_parabola_in_each_coordinate():
    rng = np.random.default_rng(0)
    points, unit = rng.normal(size=(60, 2)), np.array([1.0, 2.0])
    target = np.array([0.3, -0.4])
    values = 3.0 + ((points - target) ** 2) @ np.array([1.0, 4.0])
    step = valley(points, 1e6 * values, np.zeros(2), unit, np.full(2, 5.0))
    np.testing.assert_allclose(unit * step, target, atol=0.02)
    near = valley(points, values, np.zeros(2), unit, np.full(2, 0.1))
    np.testing.assert_allclose(near, [0.1, -0.1])
    hill = valley(points, points @ np.array([1.0, -1.0]) - (points**2).sum(axis=1), np.zeros(2),
                  unit, np.full(2, 3.0))  # fmt: skip
    np.testing.assert_allclose(np.abs(hill), 3.0)
    huge = np.where(np.arange(60) == 7, 1e-20, 1e290 * values)  # divided by the largest, not that
    assert np.all(np.isfinite(valley(points, huge, np.zeros(2), unit, np.full(2, 5.0))))
    assert np.any(valley(points, huge, np.zeros(2), unit, np.full(2, 5.0)) != 0.0)


class Table:
    """Trials that were made."""

    def __init__(self, points, values):
        self.points, self.values = np.asarray(points, float), np.asarray(values, float)

    def known(self):
        return self.points, self.values


def test_filling_in_draws_around_the_best_quarter():
    where = problem(2)
    empty = Filling(where, Table(np.empty((0, 2)), []), np.random.default_rng(0))
    np.testing.assert_allclose(
        empty.pose().points()[0], np.random.default_rng(0).standard_normal(2)
    )
    two = Filling(where, Table([[5.0, 5.0], [7.0, 7.0]], [2.0, 1.0]), np.random.default_rng(0))
    np.testing.assert_allclose(
        two.pose().points()[0], 7.0 + np.random.default_rng(0).standard_normal(2)
    )


def test_filling_in_measures_its_centre_every_fifth_time():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(16, 2))
    values = np.sum((points - 0.2) ** 2, axis=1)
    search = Filling(problem(2), Table(points, values), np.random.default_rng(0))
    first = search.pose()
    centre = first.points()[0]
    best = points[np.argsort(values)[:4]]
    weights = np.log(4.5) - np.log(np.arange(1, 5))
    weights /= weights.sum()
    mean = weights @ best
    spread = np.maximum(np.sqrt(weights @ (best - mean) ** 2), 0.5 / 4)
    step = valley(points, values, mean, np.ones(2), 2 * spread)
    np.testing.assert_allclose(centre, mean + step)
    roles = [bool(first.role)] + [bool(search.pose().role) for _ in range(5)]
    assert roles == [True, False, False, False, False, True]
    search.take(first, np.array([7.0]))
    np.testing.assert_array_equal(search.point.x, centre)
    assert search.seen == [7.0]
    plain = Filling(problem(2, scale=4.0), Table(points[:9], values[:9]), np.random.default_rng(0))
    few = points[np.argsort(values[:9])[:4]]
    middle = weights @ few
    wide = np.maximum(np.sqrt(weights @ (few - middle) ** 2), 0.5 / 3 * 4.0)
    reach = valley(points[:9], values[:9], middle, np.full(2, 4.0), 2 * wide / 4.0)
    np.testing.assert_allclose(plain.pose().points()[0], middle + 4.0 * reach)


def by_arrays(line, width):
    """Return the middle of the easiest interval, all intervals at once."""
    f, t = np.array(line.f), np.array(line.t)
    finite, gaps = np.isfinite(f), np.diff(t)
    lowest, highest = f[finite].min(), f[finite].max()
    if highest == lowest:
        walls = np.where(finite[1:] != finite[:-1], gaps, 0.0)
        k = int(walls.argmax())
        return (t[k] + t[k + 1]) / 2 if walls[k] > 1e-9 * width else None
    roots = np.sqrt(np.where(finite, f, highest) - lowest + 1e-9 * (highest - lowest))
    with np.errstate(divide="ignore"):
        steepness = np.where(gaps < 1e-9 * width, np.inf, (roots[1:] + roots[:-1]) / gaps)
    k = int(steepness.argmin())
    return (t[k] + t[k + 1]) / 2 if np.isfinite(steepness[k]) else None


@pytest.mark.parametrize("kind", ["rough", "walls", "flat", "flat walls", "near"])
@pytest.mark.parametrize("seed", range(5))
def test_the_easiest_interval_is_that_of_the_formula(kind, seed):
    rng, line = np.random.default_rng(seed), Line(0.0, 1.0, 1.0)
    line.t = sorted(rng.standard_normal(7).tolist())
    line.f = [1.0] * 7 if "flat" in kind else rng.exponential(size=7).tolist()
    if "walls" in kind:
        line.f[0] = line.f[5] = np.inf
    if kind == "near":
        line.t[3] = line.t[2] + 1e-12
    found, expected = line.easiest(), by_arrays(line, 1.0)
    assert found == expected
    assert (found is None) == (kind == "flat")
