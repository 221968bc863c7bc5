"""Who leads the race of arms: the same evaluations for both, lines where f is a sum."""

from types import SimpleNamespace

import numpy as np
import pytest

from by_hand import each, replies
from racing import Turns, made
from scgd.searches.arms import contest as module
from scgd.searches.arms.arm import Arm
from scgd.searches.arms.lines import POOR
from scgd.searches.arms.spread import Partials
from scgd.searches.arms.trend import Trend

# ---- an arm --------------------------------------------------------------------------------------


def test_an_arm_goes_on_where_it_was_stopped_and_keeps_its_best_point():
    owner = SimpleNamespace(doing="")

    def telling():
        got.append((yield np.array([1.0, 2.0])))
        got.append((yield np.array([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])))
        got.append((yield Partials(np.zeros(2), np.arange(2))))
        got.append((yield np.array([9.0, 9.0])))

    got, arm = [], Arm(owner, "who", telling())
    assert arm.best == np.inf and arm.n == 0 and not arm.over
    values = iter([4.0, np.array([5.0, 2.0, 3.0]), np.zeros(2), 2.0])
    points, _ = replies(arm.run(2), lambda y: next(values))
    assert len(points) == 2 and arm.n == 4 and owner.doing == "who"  # three at once are not cut
    assert arm.best == 2.0 and arm.x.tolist() == [5.0, 6.0] and len(got) == 2
    turn = arm.run(1)
    asked = next(turn)
    assert isinstance(asked, Partials)
    with pytest.raises(StopIteration):
        turn.send(next(values))
    assert arm.n == 5 and arm.best == 2.0 and not arm.over  # partials are one evaluation
    points, _ = replies(arm.run(9), lambda y: next(values))
    assert len(points) == 1 and arm.over and arm.n == 6
    assert arm.best == 2.0 and arm.x.tolist() == [5.0, 6.0]  # level: the first one stays
    assert replies(arm.run(9), None)[0] == []


def test_an_arm_is_stopped_by_an_ending():
    def telling():
        while True:
            yield np.zeros(1)

    arm, ending = Arm(SimpleNamespace(), "who", telling()), SimpleNamespace(over=True)
    assert replies(arm.run(3, ending), lambda y: 1.0)[0] == []
    ending.over = False
    assert len(replies(arm.run(3, ending), lambda y: 1.0)[0]) == 3
    assert len(replies(arm.run(3), lambda y: 1.0)[0]) == 3


def test_shares_of_lines_are_exact_and_slopes_know_their_own():
    race = made(p=2)
    assert race.relevance() is None
    race.sizes = np.array([1.0, 3.0])
    shares, errors = race.relevance()
    assert shares.tolist() == [0.25, 0.75] and errors.tolist() == [0.0, 0.0]
    race.sizes = np.array([1.0, np.inf])
    assert race.relevance() is None
    race.newton = SimpleNamespace(relevance=lambda: "slopes")
    assert race.relevance() == "slopes"
    race.owner.left = 17
    assert race.left == 17


# ---- who leads -----------------------------------------------------------------------------------


def compete(
    monkeypatch, *, left=1000, additive=False, still=True, leader=0, overtook=True, at_once=False
):
    """Run the race with stages that only take notes; the leader is chosen by its number."""
    race, log = made(left=left), []

    def is_additive(x, f, s, rng, box, grain, n_times):
        assert n_times == 3
        log.append(("sum?", float(x[0]), f, s))
        return additive
        yield

    def choose(x, f, s, newton, arms):
        log.append(("choose", f))
        arms[2].over = leader == 2
        return arms[leader]
        yield

    def stage(name, returned=None):
        def run(*args):
            log.append(name)
            return returned
            yield

        return run

    def lines(x, f, s):
        log.append("lines")
        return np.full(4, 3.0), 7.0, still
        yield

    monkeypatch.setattr(module, "is_additive", is_additive)
    race._lines, race._choose, race._lead = lines, choose, stage("lead")
    race._follow, race._take_turns = stage("follow", overtook), lambda *args: turns(*args)

    def turns(*args):
        log.append(("turns", float(args[0][0]), args[4]))
        yield from ()

    arm = race.compete(np.zeros(4), 9.0, 0.5, np.full(4, 2.0), 8.0, at_once=at_once)
    replies(arm, None)
    return race, log


def test_a_sum_goes_to_lines_while_it_is_one(monkeypatch):
    asked = ("sum?", 2.0, 8.0, 0.5)
    race, log = compete(monkeypatch, additive=True)
    assert log == [asked, "lines"] and race.leader == "lines" and race.newton is None
    race, log = compete(monkeypatch, additive=True, still=False)
    assert log == [asked, "lines", "lead", ("turns", 3.0, True)]  # nobody is asked again
    assert race.newton.f == 7.0 and race.leader == "bfgs"
    race, log = compete(monkeypatch, left=15)  # four questions per coordinate must be left
    assert log[0] == ("choose", 8.0) and race.newton.f == 9.0
    assert compete(monkeypatch, left=16)[1][0] == asked


def test_bfgs_goes_down_at_once_where_it_is_told_to(monkeypatch):
    race, log = compete(monkeypatch, leader=1, at_once=True)
    assert race.leader == "bfgs" and log[1:] == ["lead", ("turns", 0.0, True)]


def test_who_leads_goes_on_and_then_all_take_turns(monkeypatch):
    race, log = compete(monkeypatch)
    assert race.leader == "bfgs" and log[2:] == ["lead", ("turns", 0.0, True)]
    for overtook in (True, False):
        race, log = compete(monkeypatch, leader=1, overtook=overtook)
        assert race.leader == "population" and log[2:] == ["follow", ("turns", 0.0, overtook)]
    race, log = compete(monkeypatch, leader=2)
    assert race.leader == "filtering" and log[2:] == [("turns", 0.0, False)]


def test_wide_differences_lead_until_they_are_over(monkeypatch):
    """A staircase: they go down it, and when nothing more falls the others have their turns."""
    race, turns = made(left=10**6), []
    race._choose = lambda *args: leads(args[4][2])
    race._take_turns = lambda *args: turns.append(args[4]) or iter(())

    def leads(arm):
        return arm
        yield

    def sums():
        return False
        yield

    def stairs(x):
        return float(np.floor(4 * np.abs(x)).sum() + 3 * np.floor(2 * abs(x.sum())))

    x = np.array([3.1, -2.2, 1.7, 0.6])
    race._is_sum = lambda *args: sums()
    values = []
    replies(race.compete(x, stairs(x), 1.0, x, stairs(x)), each(stairs, values))
    assert turns == [False] and min(values) <= 0.1 * stairs(x)


# ---- lines ---------------------------------------------------------------------------------------


def swept(monkeypatch, values, sums, left=1000, tol=1e-10):
    """Sweep lines that fall to given values; return their sizes, lengths and what is returned."""
    race, log, rest, told = made(left=left, tol=tol), [], iter(values), iter(sums)

    def sweep_lines(x, f, s, rng, n, spread, box, grain, goes_on):
        assert goes_on.args == (s,)  # the same question, over the length of the lines
        log.append((n, s, f))
        spread += 1.0
        yield np.full(4, float(len(log)))

    def is_additive(x, f, s, rng, box, grain, n_times):
        assert n_times == 3
        log[-1] += (s,)
        return next(told)
        yield

    monkeypatch.setattr(module, "sweep_lines", sweep_lines)
    monkeypatch.setattr(module, "is_additive", is_additive)
    found = replies(race._lines(np.zeros(4), 90.0, 0.5), lambda y: next(rest))[1]
    assert race.sizes.tolist() == [1.0] * 4 or len(log) > 1
    return log, found


@pytest.mark.parametrize(
    "left, n", [(1000, 40), (457, 39), (45, 4), (100, 8), (10, 4)]
)  # 35 % of what is left, per coordinate: four at least, forty at most
def test_how_many_evaluations_a_line_gets(monkeypatch, left, n):
    log, (x, f, still) = swept(monkeypatch, [50.0], [False], left)
    assert log == [(n, 0.5, 90.0, 2.0)]  # asked over four lengths whether it still is a sum
    assert x.tolist() == [1.0] * 4 and f == 50.0 and still is False


def test_lines_are_looked_at_twice_as_closely_until_that_brings_nothing(monkeypatch):
    """A gain of .25 or less is nothing; the second look at least, from 2 POOR evaluations on."""
    log, (x, f, still) = swept(monkeypatch, [50.0, 49.75], [True] * 2)
    rng = np.random.default_rng(5)
    assert log[1][0] == 80 and log[1][1] == pytest.approx(0.5 * rng.uniform(0.7, 1.4))
    assert log[1][2:] == (50.0, pytest.approx(4 * log[1][1])) and len(log) == 2
    assert f == 49.75 and x.tolist() == [2.0] * 4 and still is True
    log, (x, f, _) = swept(monkeypatch, [50.0, 49.7, 49.9], [True] * 3)
    assert len(log) == 3 and f == 49.7 and x.tolist() == [2.0] * 4  # the third was no better
    log, _ = swept(monkeypatch, [90.0, 90.0], [True] * 2)
    assert len(log) == 2  # the first look is no second one
    log, _ = swept(monkeypatch, [90.0] * 9, [True] * 9, left=10)
    sizes = [seen[0] for seen in log]
    assert sizes == [4 * 2**k for k in range(len(log))] and sizes[-2] < 2 * POOR <= sizes[-1]
    log, _ = swept(monkeypatch, [90.0] * 4, [True, True, True, False], tol=0.0)
    assert len(log) == 4  # without a tolerance it never ends by itself


# ---- the same evaluations for both ---------------------------------------------------------------


def ended(arm, n):
    """Take a turn, and be over."""
    yield from Turns.run(arm, n)
    arm.over = True


def chosen(descent, crowd, left=1000, p=4, n_active=4, agreement=(), f=100.0, over=False):
    race, log = made(p=p, left=left), []
    seen = [] if agreement is None else [0.0, *agreement]
    newton = SimpleNamespace(n_active=n_active, agreement=seen, p=p)
    arms = Turns("bfgs", log, descent), Turns("crowd", log, crowd)
    for arm in arms:
        arm.x = np.full(p, 9.0)
    if over:
        arms[0].run = lambda n: ended(arms[0], n)
    told = replies(race._race(np.zeros(p), f, 1.0, newton, *arms, race._turn(p)), None)[1]
    ahead = arms[0].best <= arms[1].best or len(log) == 1
    assert told is arms[0 if ahead else 1]  # BFGS where both are level
    return [entry[1] for entry in log]


@pytest.mark.parametrize(
    "left, both", [(1000, [32, 32]), (500, [30, 30]), (400, [28, 28]), (150, [22, 22]),
                   (120, [18, 18]), (60, [14, 9])]
)  # fmt: skip
def test_how_long_a_turn_is(left, both):
    """p = 4: the least of 8 p = 32, of 6 % but 4 (p + 3) = 28, and of 15 %; BFGS 14 at least."""
    assert chosen([100.0], [54.0], left) == both


def test_a_descent_along_few_coordinates_or_with_little_left_goes_on_alone():
    few = {"p": 16, "left": 10**4}
    assert len(chosen([50.0], [90.0], n_active=4, **few)) == 1
    assert len(chosen([50.0], [90.0], n_active=1, **few)) == 1
    assert len(chosen([50.0], [90.0], n_active=5, **few)) > 1
    assert len(chosen([50.0], [90.0], n_active=0, **few)) > 1
    assert len(chosen([100.0], [90.0], n_active=4, **few)) > 1  # it did not fall
    assert len(chosen([50.0], [90.0], p=15, left=10**4, n_active=3)) > 1
    sound = {"agreement": (0.6,)}  # after a first step that gained nothing: .3 in the mean
    assert len(chosen([50.0], [90.0], left=120, **sound)) == 2
    assert len(chosen([50.0], [90.0], left=119, **sound)) == 1


def test_with_little_left_a_population_is_tried_where_slopes_promise_too_much():
    assert len(chosen([50.0], [90.0], left=119, agreement=(0.59,))) == 2
    assert len(chosen([50.0], [90.0], left=119, agreement=(0.9, 0.0, 0.3))) == 1
    assert len(chosen([50.0], [90.0], left=119, agreement=None)) == 2  # no step was taken yet


def test_a_tenth_of_the_gain_is_a_tie_and_then_half_of_the_last_gain():
    assert len(chosen([50.0], [55.0])) == 2  # 5 is a tenth of 50: no tie
    assert len(chosen([50.0, 40.0], [54.9, 45.0], over=True)) == 2
    assert len(chosen([50.0, 40.0], [54.9, 45.0])) == 4  # then 5 is half of the last 10
    assert len(chosen([50.0, 40.0, 39.0], [54.9, 44.9, 44.0])) == 6
    assert len(chosen([50.0, 40.0, 39.0, 38.0], [50.0, 40.1, 39.1, 38.1])) == 8  # thrice at most
    assert len(chosen([55.0], [50.0])) == 2 and len(chosen([54.9, 45.0], [50.0, 40.0])) == 4


def test_rough_slopes_count_only_while_the_descent_is_ahead():
    rough = {"agreement": [0.1] * 3}
    assert len(chosen([100.0], [100.0], **rough)) == 2
    assert len(chosen([90.0], [50.0], **rough)) == 2
    assert len(chosen([50.0] * 4, [90.0] * 4, **rough)) == 8


@pytest.mark.parametrize("left, n", [(600, 4), (599, 2)])
def test_the_choice_ends_when_four_tenths_are_spent(left, n):
    race, log = made(), []
    newton = SimpleNamespace(n_active=4, agreement=[0.0], p=4)

    class Spends(Turns):
        def run(self, n, ending=None):
            yield from super().run(n, ending)
            race.owner.left = left

    arms = Spends("bfgs", log, [50.0, 20.0]), Spends("crowd", log, [51.0, 90.0])
    list(race._race(np.zeros(4), 100.0, 1.0, newton, *arms, race._turn(4)))
    assert len(log) == n


# ---- what slopes are worth -----------------------------------------------------------------------


def led(monkeypatch, trend, left=1000, wide=(90.0,), sinks=True, strides=(80.0,)):
    """Return who leads by a trend, the turns taken, and what was followed."""
    race, log, seen = made(left=left), [], []
    newton = SimpleNamespace(gradient=np.full(4, 5.0))
    arms = tuple(
        Turns(name, log, values)
        for name, values in (
            ("bfgs", [100.0]), ("crowd", [95.0]), ("wide", wide), ("strides", strides),
        )
    )  # fmt: skip
    crowd = arms[1]

    def follow_slopes(*args):
        seen.append(args)
        return trend
        yield

    monkeypatch.setattr(module, "follow_slopes", follow_slopes)
    race._race = lambda *args: raced(args[6])

    def raced(n):
        log.append(("race", n))
        return crowd
        yield

    def look(arm, p):
        assert arm is crowd and p == 4
        crowd.n = 5  # evaluations of the look are a part of its turn
        return sinks
        yield

    race._sinks = look
    leader = replies(race._choose(np.zeros(4), 100.0, 1.0, newton, arms), None)[1]
    (x, gradient, s, rng, n, box), *_ = seen
    assert x.tolist() == [0.0] * 4 and gradient is newton.gradient and s == 1.0
    assert rng is race.rng and box is race.box
    assert log[0] == ("bfgs", 1)
    return leader.name, log[1:], n, race.rough, race.flat


def test_walls_are_for_the_population(monkeypatch):
    assert led(monkeypatch, Trend(0.95, 1.0, walled=True)) == ("crowd", [], 8, False, False)


def test_smooth_slopes_let_bfgs_lead_and_what_is_neither_is_raced(monkeypatch):
    assert led(monkeypatch, Trend(0.95, 1.0)) == ("bfgs", [], 8, False, False)
    assert led(monkeypatch, Trend(0.8, 1.0)) == ("crowd", [("race", 32)], 8, False, False)


def test_ripples_are_for_the_population_and_ripples_upon_ripples_are_raced(monkeypatch):
    assert led(monkeypatch, Trend(0.2, 1.0)) == ("crowd", [("crowd", 27)], 8, True, False)
    assert led(monkeypatch, Trend(0.99, 3.0))[0] == "crowd"
    both = [("crowd", 27), ("wide", 32)]
    assert led(monkeypatch, Trend(0.0, 31.0)) == ("wide", both, 8, True, False)
    assert led(monkeypatch, Trend(0.0, 31.0), wide=[96.0])[:2] == ("crowd", both)
    assert led(monkeypatch, Trend(0.0, 30.0))[1] == both[:1]


def test_ripples_on_which_a_population_does_not_sink_are_for_strides(monkeypatch):
    assert led(monkeypatch, Trend(0.2, 1.0), sinks=False)[:2] == ("strides", [("strides", 32)])
    both = [("strides", 32), ("wide", 32)]
    fractal = Trend(0.0, 31.0)
    assert led(monkeypatch, fractal, sinks=False)[:2] == ("strides", both)
    assert led(monkeypatch, fractal, sinks=False, strides=[91.0])[:2] == ("wide", both)
    flat = Trend(0.0, 0.0)  # on a step no generation is better
    assert led(monkeypatch, flat, sinks=False)[0] == "crowd"


@pytest.mark.parametrize("left, n", [(1, 3), (127, 3), (128, 4), (255, 7), (256, 8), (9000, 8)])
def test_how_many_generations_of_a_population_are_looked_at(monkeypatch, left, n):
    """Eight points each: a quarter of what is left, three to eight of them."""
    race, seen = made(left=left), []
    generations = iter(np.arange(8.0 * n).reshape(n, 8))

    class Crowd(Turns):
        def run(self, n, ending=None):
            assert n == 1
            self.values = next(generations)
            yield from ()

    def gets_better(values):
        seen.extend(values)
        return "better"

    monkeypatch.setattr(module, "gets_better", gets_better)
    assert replies(race._sinks(Crowd("crowd", [], []), 4), None)[1] == "better"
    np.testing.assert_array_equal(seen, np.arange(8.0 * n).reshape(n, 8))


def test_strides_go_on_alone_with_little_left_or_until_a_population_overtakes_them(monkeypatch):
    for left, rival in ((159, False), (160, True)):
        race, log = made(left=left), []
        race._choose = lambda *args: led_by(args[4])
        race._finish = lambda *arms, log=log: log.append([arm and arm.name for arm in arms]) or []
        race._take_turns = lambda *args, log=log: log.append(args[4]) or []

        def led_by(arms):
            return arms[3]
            yield

        monkeypatch.setattr(module, "is_additive", lambda *args, **words: iter(()))
        replies(race.compete(np.zeros(4), 9.0, 0.5, np.full(4, 2.0), 8.0), None)
        assert log == [["strides", "population" if rival else None], False]
        assert race.leader == "strides"


def test_a_leader_ends_by_itself_or_where_a_rival_is_ahead_after_as_many_turns():
    race, log = made(), []
    list(race._finish(Turns("wide", log, [9.0, 8.0, "over"])))
    assert log == [("wide", 40)] * 3
    log.clear()
    rival = Turns("crowd", log, [9.5, 7.5], best=1.0)  # what it saw before does not count
    list(race._finish(Turns("strides", log, [9.0, 8.0, "over"]), rival))
    assert log == [("strides", 40), ("crowd", 40)] * 2


def test_the_first_stride_is_four_tenths_of_a_length_along_each_coordinate(monkeypatch):
    race = made(lower=np.full(4, -1.0), upper=np.full(4, 1.0))  # a tenth of the box at most
    monkeypatch.setattr(module, "take_strides", lambda *args: args)
    for s, length in ((0.1, 0.08), (9.0, 0.16)):
        arm = race._strides(np.ones(4), 7.0, s)
        x, f, first, rng, box = arm.telling
        assert (x.tolist(), f, first) == ([1.0] * 4, 7.0, pytest.approx(length))
        assert rng is race.rng and box is race.box and arm.name == "strides"


def test_steps_are_for_wide_differences_unless_much_is_left(monkeypatch):
    flat = Trend(0.0, 0.0)
    assert led(monkeypatch, flat, left=239)[:2] == ("wide", [])
    assert led(monkeypatch, flat, left=240)[:2] == ("crowd", [("crowd", 23)])
    assert led(monkeypatch, flat)[4] and not led(monkeypatch, Trend(0.2, 1.0))[4]


@pytest.mark.parametrize("left, n", [(100, 3), (239, 3), (240, 4), (480, 8), (9000, 8)])
def test_how_many_directions_are_followed(monkeypatch, left, n):
    assert led(monkeypatch, Trend(1.0, 1.0), left)[2] == n


def test_the_descent_leads_while_it_gains_more_than_nothing():
    """A gain of .25 is nothing; without a tolerance it goes on up to 150 gradients."""
    race, log = made(), []
    list(race._lead(SimpleNamespace(p=4, jammed=False), Turns("bfgs", log, [50.0, 49.74, 49.49])))
    assert len(log) == 3
    log.clear()
    race.tol = 0.0
    list(race._lead(SimpleNamespace(p=4, jammed=False), Turns("bfgs", log, [50.0] * 99)))
    assert len(log) == int(np.ceil(150 * 7 / 40))
    ended = Turns("bfgs", log, ["over"])
    log.clear()
    list(race._lead(SimpleNamespace(p=4, jammed=False), ended))
    assert len(log) == 1
    log.clear()
    list(race._lead(SimpleNamespace(p=4, jammed=True), Turns("bfgs", log, [50.0, 40.0])))
    assert not log  # at a wall it leads no farther


@pytest.mark.parametrize("left, followed", [(40, True), (39, False)])
def test_where_bfgs_jams_a_population_goes_on_from_there(monkeypatch, left, followed):
    """Ten evaluations per coordinate must be left for it."""
    race, log = made(left=left), []
    monkeypatch.setattr(module, "is_additive", lambda *args, **words: no())
    race._populations = lambda x, best, s: log.append(("at", float(best[0]), s)) or iter(())
    race._choose = lambda *args: leads(args[4][0])
    race._follow = lambda newton, descent, crowd: log.append(crowd.name) or no()
    race._take_turns = lambda *args: log.append(len(args[3])) or iter(())

    def no():
        return False
        yield

    def leads(arm):
        return arm
        yield

    def lead(newton, descent):
        newton.n_walls, descent.x = 3, np.full(4, 5.0)
        yield from ()

    race._lead = lead
    replies(race.compete(np.zeros(4), 9.0, 0.5, np.full(4, 2.0), 8.0), None)
    there = [("at", 5.0, 0.5), "population"] if followed else []
    assert log == [("at", 2.0, 0.5), *there, 4]


def test_bfgs_looks_rough_where_slopes_tell_little_or_it_hardly_moved():
    """p = 4 and s = 1: a quarter of a length per coordinate is .5, from 45 p = 180 evaluations."""
    race = made()
    for agreement, away, budget, rough in (
        ([9.0, 0.1, 0.1, 0.2], 9.0, 1000, True), ([0.0, 0.2, 0.2, 0.1], 9.0, 1000, False),
        ([0.0, 0.1, 0.1], 9.0, 1000, False), ([0.0], 0.49, 180, True), ([0.0], 0.49, 179, False),
        ([0.0], 0.51, 180, False),
    ):  # fmt: skip
        newton = SimpleNamespace(agreement=agreement)
        descent = SimpleNamespace(best=50.0, x=np.array([away, 0.0, 0.0, 0.0]))
        found = race._is_rough(np.zeros(4), 100.0, 1.0, newton, descent, budget)
        assert found is not None and bool(found) is rough
    stuck = SimpleNamespace(best=100.0, x=np.full(4, 9.0))
    assert race._is_rough(np.zeros(4), 100.0, 1.0, SimpleNamespace(agreement=[0.0]), stuck, 180)


def test_the_descent_is_looked_at_while_it_follows():
    race, log = made(), []
    descent, crowd = Turns("bfgs", log, [60.0, 5.0, 5.0]), Turns("crowd", log, [50.0] * 16)
    newton = SimpleNamespace(p=4, jammed=False)
    answer = replies(race._follow(newton, descent, crowd), None)[1]
    eight = [("crowd", 40)] * 8 + [("bfgs", 40)]
    assert answer is True and log == [*eight, *eight, ("bfgs", 40)]
    race.n_restarts = 1
    assert replies(race._follow(SimpleNamespace(p=4), descent, crowd), None)[1] is False


def test_on_ripples_nobody_looks_at_the_descent():
    race, log = made(), []
    race.rough = True

    class Restarts(Turns):
        def run(self, n, ending=None):
            yield from super().run(n, ending)
            race.n_restarts = len(log) // 12

    descent, crowd = Turns("bfgs", log, []), Restarts("crowd", log, [50.0] * 16)
    assert replies(race._follow(SimpleNamespace(p=4), descent, crowd), None)[1] is False
    assert log == [("crowd", 40)] * 12
