"""Openings, levels and models of searches over a grid, and points that fill in: numbers by hand."""

import numpy as np
import pytest

from scgd import Choice, Float, Int, Space
from scgd.problem import Problem
from scgd.questions import Point
from scgd.searches import Filling, Mutations, Niches
from scgd.searches.filling import valley
from scgd.searches.mixed import niches
from scgd.searches.mixed.base import Seeker
from scgd.searches.mixed.mutation import chosen, mutated, reflected, stepped

THREE = Space(x=Float(0, 10), y=Float(0, 10), z=Float(0, 10))
MIXED = Space(x=Float(0, 1), c=Choice("a", "b", "c"), d=Float(0, 1, when={"c": "b"}))


def made(cls, space=THREE, budget=100, **more):
    problem = space.problem()
    return cls(problem, Point(problem.x0), np.random.default_rng(0), budget, **more)


def answered(search, fun, n):
    for _ in range(n):
        question = search.pose()
        search.take(question, np.array([fun(point) for point in question.points()]))
    return search


def bowl(x):
    return float(np.sum((x - 3.0) ** 2))


# ---- what all of them share ----------------------------------------------------------------------


@pytest.mark.parametrize("budget, points", [(50, 7), (85, 7), (1000, 8)])
def test_an_opening_is_a_tenth_of_the_budget_within_limits(budget, points):
    search = made(Mutations, budget=budget)  # three per coordinate: nine with the start
    answered(search, bowl, 1)
    assert len(search.pose()) == points


def test_an_opening_of_many_coordinates_is_a_tenth():
    search = made(Mutations, Space(x=Float(0, 1, size=20)), budget=300)
    answered(search, bowl, 1)
    assert len(search.pose()) == 300 // 10 - 1


def test_a_search_without_suspicion_takes_a_new_budget():
    search = made(Seeker)
    assert not search.suspicious and not search.paired
    search.extend(77)
    assert search.budget == 77
    search.extend(None)
    assert search.budget == 77


def test_the_first_value_is_the_level_and_is_reported():
    search = answered(made(Mutations), bowl, 1)
    assert search.archive.best == 0 and search.journal == [(1, bowl(np.full(3, 0.5)))]
    assert search.level == bowl(np.full(3, 0.5))


def test_a_measurement_from_elsewhere_is_a_point_of_the_cube():
    problem = Problem.check(np.array([2.0, 5.0]), [(2.0, 2.0), (0.0, 10.0)])
    search = Mutations(problem, Point(problem.x0), np.random.default_rng(0), 50)
    search.know(np.array([2.0, 2.5]), 4.0)
    np.testing.assert_allclose(search.archive.points[1], [0.0, 0.25])
    assert search.archive.means[1] == 4.0 and search.archive.waiting == [0, 0]


# ---- mutations -----------------------------------------------------------------------------------


def test_a_choice_becomes_another_one_beside_numbers():
    grid, rng = MIXED.grid, np.random.default_rng(0)
    old = grid.canonical(rng.random((200, 3)))
    new = mutated(grid, old, 1.0, 1e-9, rng)
    assert np.all(grid.levels(new)[:, 1] != grid.levels(old)[:, 1])
    assert set(grid.levels(new)[:, 1].tolist()) == {0, 1, 2}


def test_what_wakes_up_is_drawn_anew_now_and_then():
    grid, rng = MIXED.grid, np.random.default_rng(0)
    asleep = grid.canonical(np.tile([0.5, 0.1, 0.5], (300, 1)))
    woken = mutated(grid, asleep, 1.0, 1e-9, rng)
    awake = woken[grid.active(woken)[:, 2], 2]
    fresh = np.abs(awake - asleep[0, 2]) > 1e-6
    assert 0 < fresh.sum() < len(awake)


def test_without_conditions_nothing_else_is_drawn():
    grid, ours, theirs = THREE.grid, np.random.default_rng(1), np.random.default_rng(1)
    points = np.full((4, 3), 0.5)
    found = mutated(grid, points, 0.5, 0.1, ours)
    which = chosen(np.ones((4, 3), bool), np.full((4, 1), 0.5), theirs)
    away = 0.1 * theirs.standard_normal((4, 3))
    np.testing.assert_allclose(found, np.where(which, reflected(points + away), points))
    assert ours.random() == theirs.random()


@pytest.mark.parametrize("old, away, new", [(1, -1.0, 0), (1, 0.0, 2), (1, 1.0, 2), (4, 1.0, 3)])
def test_a_level_that_would_stay_goes_to_its_neighbour(old, away, new):
    grid = Space(n=Int(0, 4)).grid
    point = grid.centres(np.array([old]))[None]
    found = stepped(grid, point, point, np.array([[away]]), np.random.default_rng(0))
    assert found.tolist() == [[new]]


# ---- niches and their model ----------------------------------------------------------------------


def spied(search, monkeypatch):
    """Return how often the model was fitted, and how many points it was given each time."""
    fitted, given = [], []
    optimise, condition = search.model.optimise, search.model.condition

    def fit(points, values, counts):
        fitted.append(len(points))
        optimise(points, values, counts)

    def take(points, values, counts):
        given.append(len(points))
        condition(points, values, counts)

    monkeypatch.setattr(search.model, "optimise", fit)
    monkeypatch.setattr(search.model, "condition", take)
    return fitted, given


def test_a_model_is_fitted_when_it_is_due(monkeypatch):
    search = answered(made(Niches), bowl, 2)  # the start and nine others
    fitted, _ = spied(search, monkeypatch)
    n = len(search.archive.told)
    search._learn()
    assert fitted == [n] and search.due == n + max(1, n // niches.PACE)
    search._learn()
    assert fitted == [n]
    search.due = n
    search._learn()
    assert fitted == [n, n]


def test_points_under_way_are_believed_to_come_as_expected(monkeypatch):
    search = answered(made(Niches), bowl, 2)
    search.pose()
    _, given = spied(search, monkeypatch)
    n = len(search.archive.told)
    search._learn()
    assert given[-2:] == [n, n + 1]


def test_the_pace_of_a_model_is_one_in_fifteen(monkeypatch):
    search = answered(made(Niches, budget=400), bowl, 40)
    monkeypatch.setattr(search.model, "optimise", lambda *_: None)
    n = len(search.archive.told)
    search.due = 0
    search._learn()
    assert n > 30 and search.due == n + n // 15


def test_what_the_model_is_told():
    search = made(Niches)
    for k, (value, n) in enumerate([(4.0, 1), (2.0, 3), (0.0, 1), (np.nan, 1)]):
        row = search.archive.add(np.full(3, 0.1 * k))
        for _ in range(n):
            search.archive.waiting[row] += 1
            search.archive.tell(row, value)
    rows, values, counts = search._data()
    assert rows.tolist() == [0, 1, 2, 3] and counts.tolist() == [1.0, 3.0, 1.0, 1.0]
    assert values[2] < values[1] < values[0] == values[3]  # a lost one counts as the worst


def test_one_coordinate_or_many_move(monkeypatch):
    search, seen = made(Niches), []
    monkeypatch.setattr(niches, "mutated", lambda grid, points, chance, *_: seen.append(chance))
    search._near(np.full((2, 3), 0.5), 50)
    assert sorted(set(np.round(seen[0], 6).tolist())) == [round(1 / 3, 6), 0.4]


def test_a_gain_is_noted_when_the_best_point_is_found():
    search = answered(made(Niches), bowl, 2)
    search.gained = 0
    search.note(search.archive.best + 1, 1.0)
    assert search.gained == 0
    search.note(search.archive.best, 1.0)
    assert search.gained == len(search.archive)


def test_the_favourite_of_a_noisy_function_is_the_lowest_of_the_model():
    search = answered(made(Niches, sampled=True), bowl, 2)
    search.theta = search.model.theta + 0.3
    assert search.noisy and search.favourite() in range(len(search.archive))
    values = np.array(search.archive.means)
    assert values[search.favourite()] <= np.sort(values)[2]


# ---- filling in ----------------------------------------------------------------------------------


class Table:
    """Trials that were made."""

    def __init__(self, points, values):
        self.points, self.values = np.asarray(points, float), np.asarray(values, float)

    def known(self):
        return self.points, self.values


def cloud(points, values, scale=1.0):
    where = Problem.check(np.zeros(points.shape[1]), None, scale)
    search = Filling(where, Table(points, values), np.random.default_rng(0))
    return search, search._cloud(points, values)


def by_hand(points, values, unit):
    """Return weighted mean and spread of the best quarter, four at least."""
    best = points[np.argsort(values)[: max(4, len(values) // 4)]]
    weights = np.log(len(best) + 0.5) - np.log(np.arange(1, len(best) + 1))
    weights /= weights.sum()
    mean = weights @ best
    return mean, np.sqrt(weights @ np.square(best - mean)), 0.5 / np.sqrt(len(values)) * unit


@pytest.mark.parametrize("size", [5.0, 1e-3])
def test_a_cloud_is_as_wide_as_the_best_points_and_no_narrower_than_its_floor(size):
    rng = np.random.default_rng(0)
    points, values = size * rng.standard_normal((8, 4)), rng.random(8)
    search, (centre, spread) = cloud(points, values, 2.0)
    mean, deviation, least = by_hand(points, values, 2.0)
    np.testing.assert_allclose(centre, mean)  # too few for a valley
    np.testing.assert_allclose(spread, np.maximum(deviation, least))
    assert search.lane == 2**30 and search.pose().role


def test_with_three_points_per_coordinate_the_centre_goes_into_the_valley():
    rng = np.random.default_rng(1)
    points, values = rng.standard_normal((9, 3)), rng.random(9)
    mean, deviation, least = by_hand(points, values, 2.0)
    spread = np.maximum(deviation, least)
    step = valley(points, values, mean, np.full(3, 2.0), 2 * spread / 2.0)
    np.testing.assert_allclose(cloud(points, values, 2.0)[1][0], mean + 2.0 * step)


def test_a_valley_has_a_ridge_of_a_thousandth():
    points, values = np.array([[-1.0], [0.0], [1.0]]), np.array([4.0, 1.0, 0.0])
    design = np.column_stack([np.ones(3), points, points**2 / 2])
    normal = design.T @ design
    normal[1, 1] *= 1.001
    normal[2, 2] *= 1.001
    better = np.argsort(values)
    seen = (values[better] - values[better[0]]) / 4.0
    _, slope, bend = np.linalg.solve(normal, design[better].T @ seen)
    found = valley(points, values, np.zeros(1), np.ones(1), np.full(1, 9.0))
    np.testing.assert_allclose(found, -slope / bend, rtol=1e-9)


def test_filling_in_goes_on_where_it_was_saved():
    rng = np.random.default_rng(0)
    points, values = rng.standard_normal((10, 2)), rng.random(10)
    search, _ = cloud(points, values)
    search.take(search.pose(), np.array([3.0]))
    search.pose()
    other, _ = cloud(points, values)
    other.load_state_dict(search.state_dict())
    assert other.seen == [3.0] and other.n_posed == 2
    np.testing.assert_array_equal(other.pose().points(), search.pose().points())
