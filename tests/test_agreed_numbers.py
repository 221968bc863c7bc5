"""Values that must come twice: how often points are asked, what agrees, and when it is over."""

import numpy as np
import pytest

from scgd.questions import EVERYWHERE, Point, joint, single
from scgd.searches.agreed import Agreed, share_that_agrees
from scgd.searches.base import Search, Standing
from scgd.searches.judge import Verdict


class Scripted(Search):
    """Asks what it was given and notes what it is told."""

    name = "scripted"
    at, budget, known = 5.0, None, None

    def __init__(self, *questions):
        super().__init__(Point(np.zeros(2)))
        self.todo, self.told = [make(self.point) for make in questions], []

    @property
    def cost(self):
        return len(self.todo[0]) if self.todo else 1

    def ask(self):
        return self.todo.pop(0) if self.todo else None

    def tell(self, question, values):
        self.told.append(values.tolist())
        self.report(float(np.min(values)))

    def extend(self, budget):
        self.budget = budget

    def finding(self):
        return Verdict(1.0, 2.0)

    @property
    def level(self):
        return self.at

    @property
    def standing(self):
        return Standing(self.point.x, np.array([3.0]), exact=True)

    @property
    def members(self):
        return {} if self.known is None else {"a": self.known}


def along(*entries):
    """Return a question along the first coordinate."""
    return lambda point: single(point, [0] * len(entries), list(entries))


def crowd(*entries):
    """Return a question of whole points."""
    return lambda point: joint(point, EVERYWHERE, np.repeat(np.array(entries)[:, None], 2, axis=1))


def take(search, *values):
    """Answer the next question; return the first coordinates that it asks."""
    question = search.pose()
    points = question.points()
    assert len(points) == len(values)
    search.take(question, np.array(values, float))
    return points[:, 0].tolist()


def test_a_point_is_asked_twice_and_again_until_two_agree():
    inner = Scripted(along(1.0, 2.0), along(3.0))
    search = Agreed(inner)
    assert search.cost == 4 and search.name == "scripted"
    assert take(search, 7.0, 7.0, 8.0, 9.0) == [1.0, 1.0, 2.0, 2.0]
    assert inner.told == [] and search.cost == 1 and (search.n_points, search.n_agreed) == (2, 1)
    assert take(search, 10.0) == [2.0]
    assert take(search, 9.0) == [2.0] and inner.told == [[7.0, 9.0]]
    assert (search.n_points, search.n_agreed) == (2, 1)  # only what agreed at once counts
    assert search.cost == 2 and take(search, 4.0, 4.0) == [3.0, 3.0]
    assert inner.told[1] == [4.0] and search.n_evals == 8 and inner.n_evals == 3
    assert search.journal == [(6, 7.0), (8, 4.0)] and inner.journal == []
    assert search.pose() is None


def test_the_second_point_agrees_by_itself():
    """Equal values of different points are no agreement."""
    search = Agreed(Scripted(along(1.0, 2.0)))
    take(search, 7.0, 8.0, 8.0, 9.0)
    assert (search.n_points, search.n_agreed) == (2, 0)
    assert take(search, 7.0, 9.0) == [1.0, 2.0] and search.inner.told == [[7.0, 9.0]]


@pytest.mark.parametrize("other, agrees", [(1000.0 + 0.9e-9, True), (1000.0 + 1.1e-9, False)])
def test_rounding_is_agreement(other, agrees):
    for sign in (1.0, -1.0):
        search = Agreed(Scripted(along(1.0)))
        take(search, sign * 1000.0, sign * other)
        assert bool(search.inner.told) is agrees


def test_lost_values_agree_with_each_other():
    search = Agreed(Scripted(along(1.0, 2.0)))
    take(search, np.nan, np.nan, 3.0, np.nan)
    assert search.inner.told == [] and search.n_agreed == 1
    take(search, np.nan)
    np.testing.assert_array_equal(search.inner.told[0], [np.nan, np.nan])


def test_after_twelve_values_their_median_must_do():
    search = Agreed(Scripted(along(1.0)))
    take(search, 0.0, 1.0)
    for k in range(2, 11):
        take(search, float(k))
    assert search.inner.told == []
    take(search, 11.0)
    assert search.inner.told == [[5.5]]


def test_where_there_is_little_room_doubts_are_asked_in_parts():
    search = Agreed(Scripted(along(1.0, 2.0, 3.0)))
    search.room = 10.0
    question = search.pose()
    assert search.inner.room == 5.0
    search.take(question, np.arange(6.0))
    search.room = 2.0
    assert take(search, 0.0, 2.0) == [1.0, 2.0]
    search.room = 0.0
    assert take(search, 4.0) == [3.0]
    assert search.inner.told == [[0.0, 2.0, 4.0]]


def test_a_population_is_asked_once_and_what_would_be_best_again():
    """The level is 5: lower values must come twice."""
    search = Agreed(Scripted(crowd(1.0, 2.0, 3.0)))
    assert take(search, 6.0, 4.0, 5.0) == [1.0, 2.0, 3.0]
    assert search.inner.told == [] and search.n_points == 0
    assert take(search, 7.0) == [2.0]
    assert take(search, 7.0) == [2.0] and search.inner.told == [[6.0, 7.0, 5.0]]
    assert search.rare and search.n_points == search.n_agreed == 0
    alone = Agreed(Scripted(crowd(1.0)))
    assert take(alone, 6.0, 6.0) == [1.0, 1.0]  # one point is no population
    pair = Agreed(Scripted(crowd(1.0, 2.0)))
    assert take(pair, 6.0, 7.0) == [1.0, 2.0] and pair.inner.told == [[6.0, 7.0]]


@pytest.mark.parametrize("agreed, rare", [(3, True), (2, False)])
def test_three_of_ten_points_must_agree_at_once(agreed, rare):
    search = Agreed(Scripted(*[along(1.0)] * 10))
    for k in range(10):
        assert search.rare and not search.finished
        take(search, 1.0, 1.0 if k < agreed else 2.0)
        if k >= agreed:
            take(search, 1.0)
    assert search.rare is rare and search.finished is (not rare)
    inner = {"mean": 1.0, "error": 2.0, "median": 0.0, "lower": 0.5, "against": 0.0}
    found = search.finding()
    assert (found.rare, found.found) == (rare, inner) and np.isnan(found.misled)
    search.finished = False
    search.extend(None)
    assert search.finished is (not rare)


def test_it_is_over_with_the_search_inside():
    search = Agreed(Scripted(along(1.0)))
    search.inner.finished = True
    search.settle()
    assert search.finished
    search.inner.finished = False
    search.extend(100)
    assert not search.finished


def test_more_budget_is_worth_what_a_value_has_cost():
    search = Agreed(Scripted(along(1.0, 2.0)))
    search.extend(100)
    assert search.inner.budget is None  # nothing is known of the price
    take(search, 1.0, 1.0, 2.0, 2.5)
    take(search, 2.0)
    assert (search.n_evals, search.inner.n_evals) == (5, 2)
    search.extend(105)
    assert search.inner.budget == 2 + 40
    search.extend(None)
    assert search.inner.budget == 42


def test_what_it_has_of_the_search_inside():
    search = Agreed(Scripted(along(1.0)))
    assert search.level == 5.0 and search.member == "scripted" and search.members == {}
    assert search.standing.values.tolist() == [3.0] and not search.standing.exact
    search.inner.known, search.n_evals, search.inner.n_evals = 3, 7, 3
    assert search.members == {"a": 3, "again": 4}
    search.n_evals = 3
    assert search.members == {"a": 3}
    search.inner.far = 8.0
    assert search.farthest == 8.0 and search.sentence == "" and search.weights is None
    assert search.relevance is None


def test_votes_are_taken_up():
    search = Agreed(Scripted(along(1.0, 2.0)))
    take(search, 7.0, 7.0, 8.0, 9.0)
    state = search.state_dict()
    assert state["places"].tolist() == [0, 0, 1, 1]
    assert state["votes"].tolist() == [7.0, 7.0, 8.0, 9.0]
    other = Agreed(Scripted())
    other.inner.todo = []
    other.load_state_dict(state)
    assert take(other, 8.0) == [2.0] and other.inner.told == [[7.0, 8.0]]
    fresh = Agreed(Scripted(along(1.0)))
    assert fresh.state_dict()["asked"] is None and fresh.places.size == fresh.votes.size == 0
    Agreed(Scripted()).load_state_dict(fresh.state_dict())
    for bad in ({"places": np.array([0, 2])}, {"asked": None}):
        with pytest.raises(ValueError, match="not asked"):
            Agreed(Scripted()).load_state_dict({**state, **bad})


def test_a_value_that_was_outvoted_elsewhere_must_come_six_times():
    search = Agreed(Scripted(along(1.0), along(2.0), along(3.0)))
    take(search, 0.0, 7.0)
    take(search, 7.0)
    assert search.strays == {0.0: 1}
    take(search, 0.0, 0.0)  # two of them are no agreement
    take(search, 8.0)
    assert take(search, 8.0) == [2.0] and search.inner.told == [[7.0], [8.0]]
    assert search.strays == {0.0: 2}
    state = search.state_dict()
    other = Agreed(Scripted())
    other.load_state_dict(state)
    assert other.strays == {0.0: 2} and np.isnan(other.misled)
    take(search, 0.0, 0.0)
    for k in range(4):
        assert len(search.inner.told) == 2, k
        take(search, 0.0)
    assert search.inner.told[2] == [0.0] and search.strays == {0.0: 1}


def test_a_value_believed_as_often_as_outvoted_must_come_twice():
    """Steps have values in common, which outliers may hit."""
    search = Agreed(Scripted(along(1.0), along(2.0)), strays=[3.0])
    take(search, 3.0, 3.0)
    for _ in range(4):
        take(search, 3.0)
    assert search.strays == {3.0: 0}
    take(search, 3.0, 3.0)
    assert search.inner.told == [[3.0], [3.0]] and search.strays == {3.0: -1}


def test_a_rank_is_no_belief():
    search = Agreed(Scripted(crowd(1.0, 2.0)), strays=[9.0])
    take(search, 9.0, 8.0)
    assert search.inner.told == [[9.0, 8.0]] and search.strays == {9.0: 1}


def test_rounding_and_lost_values_are_not_outvoted():
    search = Agreed(Scripted(along(1.0), along(2.0)))
    take(search, 1000.0, 1000.0 + 0.9e-9)
    take(search, np.nan, 5.0)
    take(search, 5.0)
    assert search.strays == {} and len(search.inner.told) == 2


@pytest.mark.parametrize("outlier, misled", [(5.0, True), (4.0, False)])
def test_a_search_whose_best_value_is_outvoted_elsewhere_is_over(outlier, misled):
    search = Agreed(Scripted(along(1.0), along(2.0)))  # whose level is 5
    take(search, outlier, 7.0)
    take(search, 7.0)
    assert search.finished is misled and (search.finding().misled == 5.0) is misled
    search.finished = False
    search.extend(None)
    assert search.finished is misled


def test_the_largest_part_of_equal_values():
    assert share_that_agrees([2.0, 7.0, 2.0, 2.0]) == 0.75 and share_that_agrees([1.0, 1.0]) == 1.0
    assert share_that_agrees([1.0, 2.0, 3.0]) == 0.0 and share_that_agrees([5.0]) == 0.0
    assert share_that_agrees([1.0, 2.0, 2.0, 1.0, 1.0]) == 0.6
