"""The race and its arms at their borders: what it measures, lines, falls, ends."""

import numpy as np
import pytest

from by_hand import problem
from scgd.questions import Point
from scgd.searches import race as race_module
from scgd.searches.arms.grain import Grain
from scgd.searches.arms.spread import Partials
from scgd.searches.race import Race

EPS = 2.0**-52
GRAIN = Grain(0.01, 2.0)


def raced(p=2, budget=100, seed=0, **more):
    where = problem(p)
    return Race(where, Point(where.x0), np.random.SeedSequence(seed), budget, 0.0, **more)


def copied(rng):
    """Return a generator that draws what another will."""
    twin = np.random.Generator(np.random.PCG64(0))
    twin.bit_generator.state = rng.bit_generator.state
    return twin


def at_once(result):
    """Return an arm that asks nothing."""
    yield from ()
    return result


class Told:
    """A race whose measurements are given, and who notes what it does with them."""

    def __init__(self, monkeypatch, x, f, active, s=0.5, value=None, **more):
        self.race, self.x = raced(len(x), **more), np.array(x, float)
        self.looked, self.competed, self.inner = [], [], []
        best = self.x + 1.0
        fallen = (s, best, f - 1.0 if value is None else value)
        monkeypatch.setattr(race_module, "falling_length", lambda *_: at_once(fallen))
        monkeypatch.setattr(race_module, "measure_grain", self.measure)
        monkeypatch.setattr(race_module, "active_coordinates", self.look(np.array(active)))
        monkeypatch.setattr(race_module, "Contest", self.contest)
        self.story = self.race.tell_story(self.x)
        next(self.story)
        self.f = f

    def measure(self, x, f, s, change, rng, box):
        self.measured = (x, f, s, change, rng, box)
        return at_once(GRAIN)

    def look(self, active):
        def found(x, f, s, rng, box, most, grain):
            assert grain is self.race.grain
            self.looked.append((x, f, s, most))
            return at_once(active)

        return found

    def contest(self, owner, ending, box, grain):
        assert grain is owner.grain and ending.grain == grain.size
        self.inner.append(box)
        self.leader = "bfgs"
        return self

    def compete(self, *how, **words):
        self.competed.append(how)
        self.words = words
        return at_once(None)

    def tell(self, value):
        try:
            return self.story.send(value)
        except StopIteration:
            return None


def test_where_nothing_is_known_random_points_are_asked_until_one_has_a_value(monkeypatch):
    told = Told(monkeypatch, [1.0, -2.0], np.inf, [True, True], value=np.inf)
    rng, value, asked = copied(told.race.rng), np.inf, told.tell(np.inf)
    for value in (np.inf, np.inf, 3.0):
        expected = told.x + 0.5 * 2.0 ** rng.uniform(-3, 3) * rng.standard_normal(2)
        np.testing.assert_allclose(asked, expected, rtol=1e-14)
        last, asked = asked, told.tell(value)
    assert asked is None and len(told.competed) == 1
    x, f, s, _ = told.looked[0]
    assert x is last and (f, s) == (3.0, 0.5)
    assert told.competed[0][0] is last and told.competed[0][1:3] == (3.0, 0.5)


@pytest.mark.parametrize(
    "budget, most, held", [(400, 64, True), (193, 48, True), (192, 48, True), (191, 47, False)]
)
def test_a_race_is_held_where_six_evaluations_per_coordinate_are_left(
    monkeypatch, budget, most, held
):
    p = 32  # fewer go down at once
    told = Told(monkeypatch, np.full(p, 1.0), 5.0, np.ones(p, bool), budget=budget)
    told.tell(5.0)
    x, f, s, asked = told.looked[0]
    assert x is told.x and (f, s) == (5.0, 0.5) and asked == most
    assert told.race.finding().held is held and len(told.competed) == held
    if held:
        x, f, s, best, value = told.competed[0]
        assert x is told.x and best.tolist() == [2.0] * p and (f, s, value) == (5.0, 0.5, 4.0)
        assert told.words == {"at_once": False}


@pytest.mark.parametrize(
    "p, budget, lean", [(31, 371, True), (31, 372, False), (32, 371, False), (2, 23, True)]
)
def test_few_coordinates_with_few_evaluations_go_down_at_once(monkeypatch, p, budget, lean):
    told = Told(monkeypatch, np.ones(p), 5.0, np.ones(p, bool), budget=budget)
    told.tell(5.0)
    assert told.words == {"at_once": lean} and bool(told.looked) is not lean
    if lean:
        x, f, s, best, value = told.competed[0]
        assert x is best is told.x and (f, s, value) == (5.0, 0.35, 5.0)
        assert told.race.grain == Grain()  # 5 is a whole number


@pytest.mark.parametrize("f, size", [(float(np.float32(0.1)), 3e-8), (0.1, 0.0)])
def test_going_down_at_once_minds_single_precision(monkeypatch, f, size):
    told = Told(monkeypatch, np.ones(2), f, np.ones(2, bool), budget=20)
    told.tell(f)
    assert told.race.grain.size == pytest.approx(size * abs(f))


def test_without_a_value_at_the_start_nobody_goes_down(monkeypatch):
    told = Told(monkeypatch, np.ones(2), 5.0, np.ones(2, bool), budget=20)
    told.tell(np.inf)
    assert told.looked and told.words == {"at_once": False}


@pytest.mark.parametrize("p, held", [(2000, True), (2001, False)])
def test_a_race_serves_two_thousand_coordinates(monkeypatch, p, held):
    told = Told(monkeypatch, np.zeros(p), 5.0, np.ones(p, bool), partials=True)
    told.tell(5.0)
    assert told.race.held is held


@pytest.mark.parametrize("n, inner", [(4, 0.5), (2, 0.25)])
def test_few_coordinates_race_in_lengths_of_their_own(monkeypatch, n, inner):
    """Directions were diluted by the rest: by the root of a quarter, by nothing from a half on."""
    active = np.arange(8) < n
    told = Told(monkeypatch, np.arange(8.0), 5.0, active, budget=1000)
    y = told.tell(5.0)  # the race of those is over at once: do the others matter?
    np.testing.assert_array_equal(y[:n], np.arange(n))
    x, f, s, best, value = told.competed[0]
    assert x.tolist() == best.tolist() == list(range(n)) and (f, value) == (5.0, 5.0)
    assert s == pytest.approx(inner) and told.inner[0].start.size == n
    assert told.tell(5.0) is None and told.race.moving.tolist() == active.tolist()


def test_others_that_wake_up_race_too(monkeypatch):
    told = Told(monkeypatch, np.arange(8.0), 5.0, np.arange(8) < 2, budget=1000)
    told.tell(5.0)
    assert told.tell(5.5) is None and told.race.moving.all() and len(told.competed) == 2
    x, f, s, best, value = told.competed[1]
    assert x.tolist() == best.tolist() == list(range(8)) and (f, s, value) == (5.0, 0.5, 5.0)


def embedded(asks, values, n_told=(), budget=100, f=5.0):
    """Run an arm of the middle one of three coordinates; return what is asked, found and sent."""
    race, sent = raced(3, budget), []
    x = np.array([1.0, 2.0, 3.0])

    def inner():
        for points in asks:
            sent.append((yield points))

    arm = race._embedded(x, f, 0.5, np.array([False, True, False]), inner())
    asked, told, counts = [], iter(values), iter(n_told)
    try:
        points = next(arm)
        while True:
            asked.append(points)
            race.n_told = next(counts, race.n_told)
            points = arm.send(next(told))
    except StopIteration as end:
        return asked, end.value, sent


ONE = [np.array([float(k)]) for k in range(3)]


def test_others_are_looked_at_after_every_twentieth_of_the_budget():
    asked, woke, sent = embedded(ONE, [4.0] * 5, [5, 6, 9])  # due at 5, then at 10
    assert woke is None and sent == [4.0] * 3
    moved = [point[0] != 1.0 for point in asked]
    assert moved == [False, True, False, False, True]
    asked, woke, _ = embedded(ONE, [4.0] * 6, [5, 6, 10])
    assert [point[0] != 1.0 for point in asked] == [False, True, False, True, False, True]
    asked, woke, _ = embedded(ONE, [4.0] * 4, [4, 4, 4])
    assert [point[0] != 1.0 for point in asked] == [False, False, False, True]


@pytest.mark.parametrize("n_told", [(), (5,)])
@pytest.mark.parametrize("off, woke", [(12, False), (14, True), (-12, False), (-14, True)])
def test_what_differs_by_more_than_four_roundings_matters(n_told, off, woke):
    """At a value of 3 those are twelve times the spacing of numbers at one."""
    values = [3.0, 3.0 + off * EPS] if n_told or woke else [3.0, 3.0 + off * EPS, 3.0]
    asked, found, _ = embedded(ONE[:1], [*values, 3.0], n_told)
    assert (found is not None) is woke
    if woke:
        assert found[0].tolist() == [1.0, 0.0, 3.0] and found[1] == 3.0 and len(asked) == 2


def test_the_first_of_equal_values_is_kept():
    _, woke, _ = embedded(ONE, [4.0, 4.0, 4.0, 9.0])
    assert woke[0].tolist() == [1.0, 0.0, 3.0] and woke[1] == 4.0


def test_slopes_are_passed_on_and_the_best_of_a_batch_is_kept():
    batch = np.array([[7.0], [8.0], [9.0]])
    slopes = Partials(np.array([4.0]), np.array([0]))
    told = [np.array([0.25]), np.array([6.0, 1.0, 2.0]), 9.0]
    asked, woke, sent = embedded([slopes, batch], told)
    assert asked[0].coords.tolist() == [1] and asked[0].x.tolist() == [1.0, 4.0, 3.0]
    assert sent[0].tolist() == [0.25] and sent[1].tolist() == [6.0, 1.0, 2.0]
    assert woke[0].tolist() == [1.0, 8.0, 3.0] and woke[1] == 1.0


def test_elsewhere_moves_what_does_not_matter_and_stays_in_the_box():
    race, x = raced(4), np.array([1.0, 2.0, 3.0, 4.0])
    active = np.array([False, True, False, True])
    drawn = copied(race.rng).standard_normal(2)
    y = race._elsewhere(x, 0.5, active)
    np.testing.assert_allclose(y, [1.0 + 0.5 * drawn[0], 2.0, 3.0 + 0.5 * drawn[1], 4.0])
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert np.abs(race._elsewhere(x, 1e3, active)).max() <= 10.0


def test_what_a_race_tells_of_itself():
    race = raced(3)
    assert race.contest is None and race.relevance is None and race.weights is None
    assert race.sentence == "race led by nobody yet"

    class Led:
        leader, found = "lines", None

        def relevance(self):
            return self.found

    race.contest = led = Led()
    assert race.relevance is None and race.sentence == "race led by lines"
    led.found, race.moving = ([0.25, 0.75], [0.1, 0.2]), np.array([True, False, True])
    shares, errors = race.relevance
    assert shares.tolist() == [0.25, 0.0, 0.75] == race.weights.tolist()
    assert errors.tolist() == [0.1, 0.0, 0.2]
