"""Books, races and places of searches over a grid, worked out by hand."""

import math

import numpy as np
import pytest

from scgd import Choice, Float, Int, Space
from scgd.questions import Point
from scgd.searches import Mutations, Niches
from scgd.searches.mixed.archive import Archive
from scgd.searches.mixed.base import box
from scgd.searches.mixed.mutation import mutated
from scgd.searches.mixed.niches import ranks, tamed

SMALL = Space(n=Int(0, 4))
MIXED = Space(x=Float(0, 1), c=Choice("a", "b", "c"), d=Float(0, 1, when={"c": "b"}))


def made(cls, space, budget=100, **more):
    problem = space.problem()
    return cls(problem, Point(problem.x0), np.random.default_rng(0), budget, **more)


def answer(search, fun):
    question = search.pose()
    points = question.points()
    search.take(question, np.array([fun(point) for point in points]))
    return points


# ---- books ---------------------------------------------------------------------------------------


def archive(*values):
    found = Archive(1)
    for k, told in enumerate(values):
        row = found.add(np.array([float(k)]))
        for value in told:
            found.waiting[row] += 1
            found.tell(row, value)
    return found


def test_the_best_point_follows_its_mean():
    found = archive([2.0], [1.0], [1.0])
    assert found.best == 2 and found.means == [2.0, 1.0, 1.0]  # the latest of equals
    found.waiting[2] = 1
    found.tell(2, 4.0)
    assert found.means[2] == 2.5 and found.best == 1 and found.counts == [1, 1, 2]
    assert found.seen[2] == [1.0, 4.0] and found.waiting == [0, 0, 0]
    found.tell(0, math.nan)
    assert found.lost == [1, 0, 0] and found.asked(0) == 1 + 1 - 1 and found.best == 1
    np.testing.assert_array_equal(found.told, [0, 1, 2])
    assert found.has(np.array([[1.0], [7.0]])).tolist() == [True, False]


def test_an_archive_grows_and_is_taken_up():
    found = archive(*[[float(k)] for k in range(9)])
    assert len(found) == 9 and found.points[8, 0] == 8.0
    other = Archive(1)
    other.load_state_dict(found.state_dict())
    assert other.means == found.means and other.best == 0
    for name, value in (("points", np.full((9, 1), np.inf)), ("waiting", np.full(9, -1)),
                        ("points", np.zeros((9, 1))), ("points", np.zeros((9, 2))),
                        ("waiting", np.zeros(8, int)), ("rows", np.full(9, 9))):  # fmt: skip
        with pytest.raises(ValueError):
            Archive(1).load_state_dict({**found.state_dict(), name: value})
    state = found.state_dict()
    state["points"][0] = np.nan  # each once, but one is no number
    with pytest.raises(ValueError, match="no points of this problem"):
        Archive(1).load_state_dict(state)


def test_the_cube_lies_between_bounds_or_around_the_start():
    from scgd.problem import Problem

    lower, width = box(Problem.check(np.array([1.0, 1.0]), [(0, 5), (None, 4)], 2.0))
    np.testing.assert_allclose(lower, [0.0, 1.0 - 8.0])
    np.testing.assert_allclose(lower + width, [5.0, 4.0])
    lower, width = box(Problem.check(np.array([1.0]), None, 2.0))
    np.testing.assert_allclose([lower[0], width[0]], [1.0 - 8.0, 16.0])


# ---- a small grid --------------------------------------------------------------------------------


def test_every_point_of_a_small_grid_once_and_the_best_again():
    search = made(Mutations, SMALL)
    asked = []
    while not search.finished:
        points = answer(search, lambda x: (x[0] - 0.65) ** 2)
        asked += [round(5 * float(point[0]) - 0.5) for point in points]  # centres of five cells
    assert sorted(set(asked)) == [0, 1, 2, 3, 4]
    assert len(asked) == 6 and asked.count(3) == 2 and search.kind == "deterministic"
    np.testing.assert_allclose(search.point.x, 0.7)
    assert search.level == pytest.approx(0.0025) and search.standing.exact
    assert search.journal[-1] == (6, pytest.approx(0.0025))


def test_what_was_measured_before_is_known():
    search = made(Mutations, SMALL)
    search.know(np.array([0.7]), 1.0)
    assert search.archive.means == [math.inf, 1.0] and search.archive.waiting == [0, 0]
    search.know(np.array([0.7]), 1.0)
    assert search.kind == "deterministic" and search.archive.counts == [0, 2]
    other = made(Mutations, SMALL)
    other.know(np.array([0.7]), 1.0)
    other.know(np.array([0.7]), 1.5)
    assert other.noisy


def test_a_search_that_lost_all_reports_nothing():
    search = made(Mutations, MIXED)
    answer(search, lambda x: math.nan)
    assert math.isnan(search.journal[-1][1]) and search.standing.values.size == 0
    assert not search.suspicious and math.isnan(search.level)
    answer(search, lambda x: math.nan)
    answer(search, lambda x: 1.0)
    assert search.journal[-1][1] == 1.0 and search.suspicious


def test_the_level_of_a_noisy_search_is_a_mean_of_several():
    from scgd.searches.mixed.base import SURE

    search = made(Mutations, MIXED, sampled=True)
    assert search.noisy and search.paired
    search.archive = archive([1.0] * (SURE - 1), [3.0] * SURE, [2.0] * SURE)
    assert search.level == 2.0
    search.archive = archive([1.0] * (SURE - 1))
    assert math.isnan(search.level)


# ---- races ---------------------------------------------------------------------------------------


def racing(*values, holder=0, rival=-1, sampled=False):
    search = made(Mutations, SMALL)
    search.kind, search.sampled = "noisy", sampled
    search.archive = archive(*values)
    search.holder, search.rival = holder, rival
    return search


def test_a_challenger_that_is_not_behind_is_asked_as_often():
    search = racing([2.0, 2.0, 2.0], [1.0])
    search.note(1, 1.0)
    assert search.rival == 1 and search.holder == 0  # one value against three
    np.testing.assert_array_equal(search._raced(), search.archive.points[1])
    search.archive.waiting[1] += 2
    assert search._raced() is None  # as many are under way
    search.archive.tell(1, 1.5)
    search.note(1, 1.5)
    assert search.rival == 1
    search.archive.tell(1, 1.5)
    search.note(1, 1.5)
    assert (search.holder, search.rival, search.owed) == (1, -1, True)
    np.testing.assert_array_equal(search._raced(), search.archive.points[1])
    assert not search.owed and search._raced() is None
    assert search.favourite() == 1


def test_a_challenger_that_falls_behind_or_is_lost_is_given_up():
    for value in (9.0, math.nan):
        search = racing([2.0, 2.0, 2.0], [1.0], rival=1)
        search.archive.waiting[1] = 1
        search.archive.tell(1, value)
        search.note(1, value)
        assert search.rival == -1 and search.holder == 0
    search = racing([2.0], [2.1])
    search.note(1, 2.1)
    assert search.rival == -1
    search = racing([2.0], [1.0], rival=-1)
    search.note(0, 2.0)  # the holder challenges nobody
    assert search.rival == -1 and search.holder == 0
    search = racing([2.0, 2.0], [1.0], [0.5], rival=1)
    search.note(2, 0.5)  # one race at a time
    assert search.rival == 1


def test_on_common_samples_the_first_values_are_compared():
    for sampled, ahead in ((True, False), (False, True)):
        search = racing([1.0, 9.0], [2.0], sampled=sampled)
        assert search._ahead(1) is ahead
    assert racing([2.0], [2.0])._ahead(1) and not racing([2.0], [])._ahead(1)


def test_the_first_best_point_holds():
    search = racing([5.0], [2.0], holder=-1)
    assert search.favourite() == 1 == search.archive.best
    search.note(1, 2.0)
    assert search.holder == 1 and search.favourite() == 1
    search.holder = 0
    assert search.favourite() == 0
    search.kind = "deterministic"
    assert search.favourite() == 1


def test_no_race_is_on_at_first():
    search = made(Mutations, SMALL)
    assert (search.holder, search.rival, search.owed) == (-1, -1, False)
    assert (
        not search.suspicious and not search.paired and made(Mutations, SMALL, sampled=True).paired
    )
    search.archive = archive([1.0])
    assert search.suspicious and search.archive.best == 0
    search.kind = "deterministic"
    search.note(0, 1.0)
    assert search.holder == -1


def test_the_first_point_races_like_any_other():
    """Row 0 challenges row 1, which has one value more; nobody else may meanwhile."""
    search = racing([1.0], [2.0, 2.0], [0.5], holder=1, rival=0)
    np.testing.assert_array_equal(search._raced(), search.archive.points[0])
    np.testing.assert_array_equal(search.propose(), search.archive.points[0])
    search.owed = True
    np.testing.assert_array_equal(search._raced(), search.archive.points[0])
    search.note(2, 0.5)
    assert search.rival == 0 and search.holder == 1
    search.archive.waiting[0] = 1
    assert search._raced() is None and search.owed  # what is owed waits for the race
    search.archive.tell(0, 1.0)
    search.note(0, 1.0)
    assert (search.holder, search.rival, search.owed) == (0, -1, True)
    assert search.favourite() == 0


def test_a_challenger_with_as_many_values_wins_at_once():
    search = racing([2.0], [1.0])
    search.note(1, 1.0)
    assert (search.holder, search.rival, search.owed) == (1, -1, True)
    search = racing([2.0], [2.0])
    search.note(1, 2.0)  # level: it drifts
    assert search.holder == 1
    search = racing([2.0], [2.1], rival=-1)
    search.note(1, 2.1)
    assert search.holder == 0 and search.rival == -1 and not search.owed


def test_a_race_is_between_points_that_were_seen():
    search = racing([2.0, 2.0], [1.0], rival=1)
    state = search.state_dict()
    other = made(Mutations, SMALL)
    other.load_state_dict(state)
    assert (other.holder, other.rival) == (0, 1) and other.archive.means == search.archive.means
    for name in ("holder", "rival"):
        for row in (2, -2):
            with pytest.raises(ValueError, match="not seen"):
                made(Mutations, SMALL).load_state_dict({**state, name: row})
        made(Mutations, SMALL).load_state_dict({**state, name: -1})


# ---- places of the model -------------------------------------------------------------------------


def test_values_in_units_of_their_spread():
    values = np.array([0.0, 1.0, 2.0, 50.0])  # the median is 1.5: no more than 3
    expected = np.array([0.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(tamed(values), (expected - 1.5) / expected.std())
    np.testing.assert_array_equal(tamed(np.full(3, 7.0)), 0.0)
    np.testing.assert_array_equal(ranks(np.array([5.0, 1.0, 3.0])), [2, 0, 1])


def test_a_model_chooses_while_points_are_few():
    from scgd.searches.mixed.niches import LIMIT

    search = made(Niches, MIXED)
    assert not search.modelling
    search.archive = archive(*[[1.0]] * (LIMIT - 1))
    assert search.modelling
    row = search.archive.add(np.array([float(LIMIT)]))
    assert row == LIMIT - 1 and not search.modelling
    np.testing.assert_array_equal(search.niches, [1])


def test_places_go_by_turns_and_elsewhere_while_nothing_is_gained():
    from scgd.searches.mixed.niches import CYCLE

    search = made(Niches, MIXED)
    for search.turn in range(2 * len(CYCLE)):
        assert search._place() == CYCLE[search.turn % len(CYCLE)]
    search.turn = CYCLE.index("l")
    for k in range(2 * search.n_coords + 1):
        search.archive.add(np.full(search.n_coords, k / 10))
    search.gained = 1
    assert {search._place() for _ in range(50)} == {"l"}
    search.gained = 0
    assert {search._place() for _ in range(50)} == {"l", "g", "n"}
    plain = made(Niches, Space(x=Float(0, 1)))
    plain.turn = CYCLE.index("n")
    assert plain._place() == "g"


def test_a_niche_has_another_choice_than_the_best_point():
    search = made(Niches, MIXED)
    grid = search.grid
    for x, level, value in ((0.5, 0, 1.0), (0.25, 1, 5.0), (0.75, 1, 3.0), (0.1, 2, 9.0)):
        point = np.array([x, 0.0, 0.5])
        levels = grid.levels(point)
        levels[1] = level
        point[1] = grid.centres(levels)[1]
        row = search.archive.add(np.asarray(grid.canonical(point[None])[0]))
        search.archive.waiting[row] += 1
        search.archive.tell(row, value)
    seen = set()
    for _ in range(20):
        points, hold = search._niche()
        kinds = set(grid.levels(points)[:, 1].tolist())
        assert hold == 1 and len(kinds) == 1 and 0 not in kinds
        seen |= kinds
    assert seen == {1, 2}
    leading = search._leading(np.array([True, True, True, False]), "n")
    np.testing.assert_allclose(leading[0], search.archive.points[0])


def test_mutations_of_parents_are_near_by_default():
    search = made(Niches, Space(x=Float(0, 1, size=4)))
    parents = np.full((1, 4), 0.5)
    moves = np.abs(search._near(parents, 4000) - 0.5)
    sizes = moves[moves > 0]
    wide = np.abs(search._near(parents, 4000, 0.6) - 0.5)
    ratio = np.median(wide[wide > 0]) / np.median(sizes)
    assert 1.7 < ratio < 2.3 and 0.01 < np.median(sizes) < 0.05  # .3 * 10 ** -1, about
    assert 0.4 < np.mean(np.count_nonzero(moves, axis=1) == 1) < 0.8


# ---- moves ---------------------------------------------------------------------------------------


class Draws:
    """A generator whose numbers are given."""

    def __init__(self, uniform, normal):
        self.uniform, self.normal = uniform, normal

    def random(self, shape=None):
        return np.full(shape, self.uniform)

    def standard_normal(self, shape):
        return np.full(shape, self.normal)


def test_a_move_goes_its_way_and_is_folded_back():
    grid = Space(x=Float(0, 1, size=2)).grid
    there = mutated(grid, np.array([[0.5, 0.9]]), 1.0, 0.1, Draws(0.0, 2.0))
    np.testing.assert_allclose(there, [[0.7, 0.9]])  # .9 + .2, folded at 1
    back = mutated(grid, np.array([[0.5, 0.1]]), 1.0, 0.1, Draws(0.0, -2.0))
    np.testing.assert_allclose(back, [[0.3, 0.1]])


@pytest.mark.parametrize("level, away, new", [(2, 1.0, 3), (2, -1.0, 1), (0, -1.0, 1), (4, 1.0, 3)])
def test_a_short_move_changes_a_level_by_one(level, away, new):
    grid = SMALL.grid
    point = grid.centres(np.array([level]))
    found = mutated(grid, point[None], 1.0, 1e-9, Draws(0.0, away))
    assert grid.levels(found)[0, 0] == new


def test_the_chance_of_a_coordinate_falls_with_the_logarithm_of_evaluations(monkeypatch):
    """Of 100 evaluations 10 are half way: one half; at the end one of four coordinates."""
    from scgd.searches.mixed import mutations

    seen = []

    def noted(grid, parents, chance, spread, rng, hold=None):
        seen.append((len(parents), chance, spread))
        return parents

    monkeypatch.setattr(mutations, "mutated", noted)
    search = made(Mutations, Space(x=Float(0, 1, size=4)))
    search.archive = archive4()
    for search.n_evals, chance in ((1, 1.0), (10, 0.5), (99, 0.25), (0, 1.0)):
        search._mutation()
        n, found, spread = seen[-1]
        assert n == 8 and found == pytest.approx(chance)
        assert np.all((spread <= 0.2) & (spread >= 0.2 * math.exp(-2.0)))
    search.budget, search.n_evals = 1, 0
    search._mutation()
    assert seen[-1][1] == 1.0
    search.rng = np.random.default_rng(3)
    search._mutation()
    expected = 0.2 * np.exp(-2.0 * np.random.default_rng(3).random(8))
    np.testing.assert_allclose(seen[-1][2], expected)


def test_beyond_its_budget_a_search_is_near_its_end(monkeypatch):
    """After n evaluations of fewer planned ones, n + 2 count; one of a thousand at least."""
    from scgd.searches.mixed import mutations

    seen = []
    monkeypatch.setattr(mutations, "mutated", lambda *args: seen.append(args[2]) or args[1])
    search = made(Mutations, Space(x=Float(0, 1, size=1000)), budget=10)
    search.archive = Archive(1000)
    row = search.archive.add(np.full(1000, 0.5))
    search.archive.waiting[row] += 1
    search.archive.tell(row, 1.0)
    for n in (8, 9, 98):
        search.n_evals = n
        search._mutation()
        assert seen[-1] == pytest.approx(1 - math.log(n) / math.log(n + 2), rel=1e-12)
    search.n_evals = 10**6
    search._mutation()
    assert seen[-1] == 1e-3


def archive4():
    found = Archive(4)
    row = found.add(np.full(4, 0.5))
    found.waiting[row] += 1
    found.tell(row, 1.0)
    return found


def test_places_have_so_many_candidates():
    search = made(Niches, MIXED)
    assert len(search._candidates("g")[0]) == 300
    search.archive = Archive(search.n_coords)
    row = search.archive.add(np.asarray(search.grid.start))
    search.archive.waiting[row] += 1
    search.archive.tell(row, 1.0)
    assert len(search._candidates("l")[0]) == 250
    points, hold = search._candidates("n")
    assert len(points) == 201 and hold == 1  # the point itself with another choice, and around it
