"""Turns after the race is decided: polishing, restarts, populations."""

from types import SimpleNamespace

import numpy as np
import pytest

from racing import Turns, made
from scgd.searches.arms import contest as module
from scgd.searches.arms.grain import Grain
from scgd.searches.arms.population import default_size

# ---- populations ---------------------------------------------------------------------------------


def crowds(monkeypatch, race, n, p):
    """Return what the first n populations are made with."""
    log = []

    def population(mean, sigma, rng, size=None, **words):
        log.append((mean, sigma, size, words))
        yield "asked"
        return 40.0 - len(log)

    monkeypatch.setattr(module, "population", population)
    telling = race._populations(np.zeros(p), np.ones(p), 0.5)
    for _ in range(n):
        next(telling)
    return log


def test_populations_double_and_take_turns_with_diagonal_ones(monkeypatch):
    race = made()
    log = crowds(monkeypatch, race, 11, 4)
    assert [size for _, _, size, _ in log] == [default_size(4) * 2 ** min(k, 8) for k in range(11)]
    assert [words["diagonal"] for *_, words in log] == [k % 2 == 1 for k in range(11)]
    rng = np.random.default_rng(5)
    assert log[0][0].tolist() == [1.0] * 4 and log[0][1] == 0.5
    for mean, sigma, _, words in log[1:]:
        expected = 0.5 * 2 ** rng.uniform(-1, 1)
        assert sigma == pytest.approx(expected) and words["box"] is race.box
        np.testing.assert_allclose(mean, 1.5 * expected * rng.standard_normal(4))
    assert race.n_restarts == 10
    assert race.ending.notes == [("population", 50.0, 40.0 - k) for k in range(2, 11)]


@pytest.mark.parametrize("flat, left, first", [(True, 2000, 4), (True, 1999, 1), (False, 2000, 1)])
def test_on_steps_the_first_population_is_larger_where_much_is_left(monkeypatch, flat, left, first):
    race = made(left=left)
    race.flat = flat
    log = crowds(monkeypatch, race, 3, 4)
    assert [size for _, _, size, _ in log] == [default_size(4) * first * 2**k for k in range(3)]
    assert [words["diagonal"] for *_, words in log] == [False, not flat, False]
    assert race.n_restarts == 2 and len(race.ending.notes) == 1  # the first is no restart


@pytest.mark.parametrize(
    "p, left, full", [(64, 99, True), (65, 32499, False), (65, 32500, True), (301, 10**9, False),
                      (300, 150000, True)]
)  # fmt: skip
def test_up_to_which_size_a_covariance_is_full(monkeypatch, p, left, full):
    log = crowds(monkeypatch, made(p=p, left=left), 1, p)
    assert log[0][3]["diagonal"] is (not full)


def test_starts_of_populations_are_mirrored(monkeypatch):
    race = made(lower=np.full(4, -0.1), upper=np.full(4, 0.1))
    for mean, *_ in crowds(monkeypatch, race, 5, 4)[1:]:
        assert np.all(np.abs(mean) <= 0.1)


def test_the_first_step_size_of_a_population_is_a_tenth_of_the_box_at_most(monkeypatch):
    race = made(lower=np.array([-1.0, -1.0, -9.0, 0.0]), upper=np.array([2.0, 2.0, 9.0, 0.0]))
    log = crowds(monkeypatch, race, 2, 4)
    assert log[0][1] == pytest.approx(0.3)  # the median width of those that may move is 3
    assert log[1][1] == pytest.approx(0.3 * 2 ** np.random.default_rng(5).uniform(-1, 1))


# ---- turns after the choice ----------------------------------------------------------------------


def turns(leads, descent, crowd, polish=None, rounds=99, restart=None, grain=0.0, wide=99.0):
    """Let scripted arms take turns for so many looks at the end."""
    race, log = made(), []
    race.grain = Grain(grain)
    arms = Turns("descent", log, descent, 10.0), Turns("crowd", log, crowd, 12.0)
    arms[1].x = np.full(4, 7.0)
    third = Turns("wide", log, [], wide)
    third.x = np.full(4, 5.0)
    polisher = None if polish is None else Turns("polish", log, polish, 10.0)
    race.looks, race.began = [], []

    def is_over(arm, n_failed):
        race.looks.append(n_failed)
        assert arm is polisher
        return len(race.looks) > rounds

    race._is_over, race._polisher = is_over, lambda newton, x, f: polisher
    race._restarts = lambda x, s, best: race.began.append(best.copy())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "Arm", lambda owner, name, telling: restart)
        list(race._take_turns(np.zeros(4), 1.0, SimpleNamespace(), (*arms, third), leads))
    return race, [entry[0] for entry in log], log


def test_after_a_leading_descent_all_three_take_turns_and_who_gains_goes_on():
    race, names, log = turns(True, [9.0, 9.0, 8.0, 8.0], [12.0], [10.0, 7.5, 7.5], rounds=5)
    once = ["descent", "descent", "polish", "crowd"]
    assert names == [*once, "descent", "descent", "polish", "polish"]
    assert race.looks == [0, 0, 1, 1, 1, 2] and log[2] == ("polish", 40)
    assert log[0] == ("descent", 40, race.ending)
    assert race.ending.notes == ["gained"] * 3  # 10 to 9, 9 to 8, 8 to 7.5


def test_a_gain_that_is_not_worth_it_lets_an_arm_go_on_but_counts_for_nothing():
    race, names, _ = turns(True, [9.75, 9.75], [12.0], [10.0], rounds=2)
    assert names == ["descent", "descent", "polish"] and race.ending.notes == []
    race, names, _ = turns(True, [10.0 - 1e-14, 1.0], [12.0], [10.0], rounds=2)
    assert names == ["descent", "polish"]  # rounding is no gain


def test_an_arm_that_gains_goes_on_ten_times_at_most():
    _, names, _ = turns(True, np.arange(9.0, -9.0, -1.0), [12.0] * 3, [10.0] * 2, rounds=3)
    assert names == ["descent"] * 10 + ["polish", "crowd"]


def test_a_leading_population_has_six_turns_at_least():
    _, names, _ = turns(False, [10.0] * 4, [12.0] * 12, rounds=4)
    assert names == (["crowd"] * 6 + ["descent"]) * 2
    _, names, _ = turns(True, [10.0] * 4, [12.0] * 12, rounds=5)
    assert names == ["descent", "crowd", "descent"]  # no polishing: its turns pass


def test_where_f_is_grainy_polishing_has_six_turns_at_least():
    _, names, _ = turns(True, [10.0] * 4, [12.0] * 4, [10.0] * 12, rounds=3, grain=1e-3)
    assert names == ["descent"] + ["polish"] * 6 + ["crowd"]
    _, names, _ = turns(False, [10.0] * 4, [12.0] * 12, rounds=2, grain=1e-3)
    assert names == ["crowd"] * 6 + ["descent"]


def test_polishing_is_given_up_after_eight_turns_for_nothing():
    _, names, _ = turns(True, [10.0] * 20, [12.0] * 20, [10.0] * 20, rounds=30)
    assert names.count("polish") == 8 and names.count("descent") == 10
    _, names, _ = turns(True, [10.0] * 20, [12.0] * 20, ["over"], rounds=9)
    assert names.count("polish") == 1


def test_a_descent_that_is_over_restarts_from_the_best_point():
    again = Turns("again", [], [5.0, 5.0])
    race, _, _ = turns(False, ["over"], [9.0, *[9.0] * 11], rounds=4, restart=again)
    assert len(again.log) == 2 and race.began[0].tolist() == [7.0] * 4  # the population's


def test_without_a_trend_restarts_are_strides(monkeypatch):
    race, made_with, named = made(), [], []
    race.trendless, race._polisher = True, lambda newton, x, f: None

    def take_strides(*args):
        made_with.append(args)
        return 30.0 - len(made_with)
        yield

    monkeypatch.setattr(module, "take_strides", take_strides)
    restarts = race._restarts(np.zeros(4), 0.5, np.ones(4))
    start = next(restarts)
    for _ in range(3):
        before, start = start, restarts.send(40.0)
        x, f, length, rng, box = made_with[-1]
        assert x is before and f == 40.0 and length == pytest.approx(0.4 * 0.5 * 2)
        assert rng is race.rng and box is race.box
    assert race.ending.notes == [("descent", 50.0, 29.0), ("descent", 50.0, 28.0)]  # not the third
    monkeypatch.setattr(module, "Arm", lambda owner, name, telling: named.append(name))
    for race.trendless, name in ((True, "strides"), (False, "bfgs restarts")):
        arms = [Turns("any", [], [9.0] * 9) for _ in range(4)]
        arms[0].over, named[:] = True, []
        with pytest.raises(AssertionError):  # the arm that was made is a name
            race._is_over = lambda polish, n_failed: False
            list(race._take_turns(np.zeros(4), 1.0, SimpleNamespace(), tuple(arms), True))
        assert named == [name]


def test_what_wide_differences_found_must_be_beaten_too():
    race, names, _ = turns(False, ["over"], [9.0] * 12, rounds=2, wide=8.0)
    assert names == ["crowd"] * 6 + ["descent"] and race.ending.notes == []
    again = Turns("again", [], [9.0] * 9)
    race, _, _ = turns(False, ["over"], [9.0] * 12, rounds=4, restart=again, wide=8.0)
    assert race.began[0].tolist() == [5.0] * 4


# ---- polishing and restarts ----------------------------------------------------------------------


def polisher(monkeypatch, *, longest=1.0, p=4, gains=(1.0, 7.0), metric=None, f=3.0, grain=0.0):
    log = []
    monkeypatch.setattr(module, "population", lambda *args, **words: log.append((args, words)))
    metric = np.eye(p) if metric is None else metric
    newton = SimpleNamespace(longest=[longest, 0.0], p=p, gains=list(gains), metric=lambda: metric)
    race = made(p=p)
    race.grain = Grain(grain)
    return race._polisher(newton, np.ones(p), f), log


def test_polishing_is_as_wide_as_the_metric_expects_for_the_last_gains(monkeypatch):
    """f falls by g = 8 over p sigma^2 / 2, so sigma = sqrt(2 g / p)."""
    arm, ((args, words),) = polisher(monkeypatch)
    assert arm.name == "polish" and args[1] == pytest.approx(2.0)
    assert args[0].tolist() == [1.0] * 4 and words["narrowest"] == 1e-9
    np.testing.assert_array_equal(words["covariance"], np.eye(4))
    _, ((args, _),) = polisher(monkeypatch, gains=[0.0], grain=0.2)  # ten grains
    assert args[1] == pytest.approx(1.0)
    _, ((args, _),) = polisher(monkeypatch, gains=[0.0], f=-8.0)
    assert args[1] == pytest.approx(np.sqrt(2 * 1e5 * 2.0**-52 * 8.0 / 4))
    _, ((args, _),) = polisher(monkeypatch, gains=[], f=0.0)
    assert args[1] == pytest.approx(np.sqrt(2e-300 / 4))


@pytest.mark.parametrize("why", [
    {"longest": 0.0}, {"p": 301}, {"metric": np.diag([0.0, 1.0, 1.0, 1.0])},
    {"metric": np.diag([-1.0, 1.0, 1.0, 1.0])}, {"metric": np.diag([1.0, 1.0, 1.0, np.nan])},
], ids=str)  # fmt: skip
def test_without_a_metric_nothing_is_polished(monkeypatch, why):
    assert polisher(monkeypatch, **why)[0] is None
    assert polisher(monkeypatch, p=300)[0] is not None


def test_descents_restart_around_the_start_and_every_third_time_around_the_best(monkeypatch):
    race, begun = made(), []

    class Newton:
        def __init__(self, start, value, s, small, box, partials, grain):
            begun.append((start, value, s, small))
            self.f = value - 1.0

        def run(self):
            yield from ()

    monkeypatch.setattr(module, "QuasiNewton", Newton)
    best = np.full(4, 100.0)
    telling = race._restarts(np.zeros(4), 0.5, best)
    points = [next(telling)]
    for k in range(99):
        points.append(telling.send(float(k)))
    rng = np.random.default_rng(5)
    for n, point in enumerate(points, 1):
        z = 0.5 * 2 ** rng.uniform(0, 3)
        expected = 1.5 * z * rng.standard_normal(4)
        if n % 3 == 0:
            expected = best + z * rng.choice([0.1, 0.3, 1.0]) * rng.standard_normal(4)
        np.testing.assert_allclose(point, expected)
    assert [seen[1:] for seen in begun] == [(float(k), 0.5, 2.5e-4) for k in range(99)]
    independent = [k for k in range(99) if (k + 1) % 3]
    assert race.ending.notes == [("descent", 50.0, k - 1.0) for k in independent]


def test_restarts_are_mirrored(monkeypatch):
    race = made(lower=np.full(4, -0.1), upper=np.full(4, 0.1))
    telling = race._restarts(np.zeros(4), 0.5, np.zeros(4))
    assert np.all(np.abs(next(telling)) <= 0.1)


def test_restarts_are_over_when_polishing_was_tried():
    race = made()
    open_, over = SimpleNamespace(over=False), SimpleNamespace(over=True)
    assert not race._is_over(None, 0)
    race.ending.over = True
    assert race._is_over(None, 0) and race._is_over(over, 0) and race._is_over(open_, 1)
    assert not race._is_over(open_, 0)
