"""The numbers that searches under noise go by, worked out by hand from their sentences."""

import numpy as np
import pytest

from by_hand import answer, made
from scgd.problem import Problem
from scgd.questions import Point
from scgd.searches import (
    Check,
    Classify,
    Footing,
    Radii,
    Reach,
    Walk,
)
from scgd.searches.check import middle
from scgd.searches.radii import quadratic

# ---- noise ---------------------------------------------------------------------------------------


def test_classify_asks_a_point_twice_and_once_more():
    search = made(Classify, 3)
    costs, reaches = [], []
    for values in ([1.0, 1.0], 1.0, [2.0, 2.0], 2.0, [3.0, 3.0]):
        costs.append(search.cost)
        points = answer(search, values)
        assert len(points) == costs[-1] and np.ptp(np.abs(points)) == 0
        reaches.append(np.abs(points[0, 0]))
    assert costs == [2, 1, 2, 1, 2] and search.finished
    assert reaches[0] == reaches[1] and reaches[2] == reaches[3] != reaches[0]
    assert search.finding().kind == "deterministic"
    for values in ([[1.0, 2.0]], [[1.0, 1.0], 1.5]):
        search = made(Classify, 2)
        for value in values:
            answer(search, value)
        assert search.finished and search.finding().kind == "uncontrollable"
    search = made(Classify, 1, sampled=True)
    answer(search, [1.0, 1.0])
    answer(search, 1.5)  # another sample may differ
    assert search.finished and search.finding().kind == "controllable"
    search = made(Classify, 2)
    answer(search, [np.nan, 1.0])
    answer(search, 5.0)  # nothing to compare with
    assert search.finding().kind == "deterministic"


def reach(budget=1000, **more):
    search = made(Reach, budget, **{"scale": None, **more})
    search.turn = "ladder"
    return search


@pytest.mark.parametrize(
    "budget, scale, ends, n_repeats, n_more, pairs",
    [(100, None, (-2.0, 0.5), 4, 10, 1), (1000, 1.0, (-2.0, 0.5), 20, 10, 3),
     (10**5, None, (-5.0, 1.0), 20, 500, 5)],
)  # fmt: skip
def test_how_a_reach_spends_its_budget(budget, scale, ends, n_repeats, n_more, pairs):
    search = made(Reach, budget, scale=scale)
    assert np.log10(search.ladder[[0, -1]]).tolist() == pytest.approx(list(ends))
    assert search.n_repeats == search.cost == n_repeats and search.n_more == n_more
    search.turn = "ladder"
    assert search.cost == 2 and search.pairs_per_level == pairs


def test_a_reach_goes_by_half_decades_along_random_signs():
    search = made(Reach, 100, scale=None)
    answer(search, 1.0)
    for rung, h in enumerate(10.0 ** (np.arange(-4, 2) / 2)):
        assert search.rung == rung and search.turn == "ladder"
        points = answer(search, [1.0, 1.0])
        np.testing.assert_allclose(np.abs(points), h * search.problem.unit[0])
        np.testing.assert_allclose(points[0], -points[1])
    search = made(Reach, 100, scale=None)
    answer(search, 1.0)
    answer(search, [5.0, 2.0])
    assert (search.odd, search.even, search.where) == ([3.0], [7.0], [0.0])


def test_the_odd_part_that_shows_and_is_not_bent():
    """sigma = 1; two pairs per level. Power is the square of all but the largest, less the noise."""
    search = reach()
    search.repeats = [0.0, np.sqrt(2.0)]
    base = search.base
    assert search.sigma == pytest.approx(1.0)
    search.where = [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    search.odd = [5.0, 9.0, 8.0, 9.0, 30.0, 30.0]
    search.even = [2 * base] * 4 + [2 * base + 60.0] * 2  # the last is bent
    assert search._odd_level(10.0) == 1
    search.even[4:] = [2 * base + 3 * np.sqrt(225 - 0.5) + 2.9] * 2
    assert search._odd_level(10.0) == 2
    # level 1: 64 / 4 - 1 / 2 = 15.5 over (1 / 2) sqrt(2 / 2)
    search.even[4:] = [2 * base + 60.0] * 2
    assert search._odd_level(30.9) == 1 and search._odd_level(31.0) is None


def test_the_even_part_changes_where_means_differ_most():
    search = reach()
    search.repeats = [-np.sqrt(0.5), np.sqrt(0.5)]  # mean 0, sigma 1
    search.where = [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    search.even = [0.0, 0.0, 0.0, 0.0, 20.0, 5.0, 20.0, 5.0]  # clipped at 8 sigma
    level, z, at_one = search._even_level()
    assert level == 2 and z == pytest.approx(6.5 / np.sqrt(2 / 4 + 2 / 4))
    assert at_one == 0.0  # nothing was asked beyond radius 1
    search.even = [0.0] * 4 + [-20.0] * 4
    assert search._even_level()[1] == pytest.approx(8.0)


@pytest.mark.parametrize(
    "budget, z, n_round, ended, kind",
    [(10**4, 7.1, 0, True, "bend"), (10**4, 6.9, 0, False, "nothing"), (10**4, 4.1, 3, True, "bend"),
     (10**4, 3.9, 3, True, "nothing"), (1999, 4.1, 0, True, "bend"), (2000, 4.1, 0, False, "nothing")],
)  # fmt: skip
def test_how_sure_a_reach_must_be(budget, z, n_round, ended, kind, monkeypatch):
    search = reach(budget)
    search.n_round = n_round
    monkeypatch.setattr(search, "_odd_level", lambda least: None)
    monkeypatch.setattr(search, "_even_level", lambda: (2, z, 0.0))
    search._end_round()
    assert search.finished == ended and search.kind == kind
    if kind == "bend":
        assert search.radius == pytest.approx(search.ladder[2] / np.sqrt(10))
    if not ended:
        assert search.n_round == n_round + 1 and search.turn == "repeats"


def test_the_radius_of_a_reach_matches_odd_and_even_parts():
    search = reach()
    search.repeats, search.radius = [-np.sqrt(0.5), np.sqrt(0.5)], 0.8
    search.where, search.odd, search.even = [-1.0] * 2, [4.0, -8.0], [9.0, 9.0]
    search._refine()  # odd 3, even 9 > 5: times 1.5 * 3 / 9
    assert search.radius == pytest.approx(0.4) and search.finished
    search = reach()
    search.radius = 0.8
    search._refine()
    assert search.radius == pytest.approx(0.8 / np.sqrt(10))
    search = reach()
    search.repeats, search.radius = [-np.sqrt(0.5), np.sqrt(0.5)], 0.8
    search.where, search.odd, search.even = [-1.0] * 2, [4.0, -8.0], [4.9, 4.9]
    search._refine()
    assert search.radius == 0.8
    assert search.finding().radius == 0.8


# ---- radii ---------------------------------------------------------------------------------------


def radii(n_levels=3, n_pairs=2, p=3, n_steps=100):
    search = made(Radii, np.full(p, 0.5), n_levels, 3, n_pairs, n_steps, p=p)
    answer(search, [-1.0, 0.0, 1.0])  # base 0, sigma 1
    return search


def test_radii_widen_where_nothing_shows_and_narrow_where_much_does():
    """A rise of 4 to 16 deviations is right; 8 are aimed at."""
    search = radii()
    assert search.turn == "single" and search.cost == 6
    few, right, much = 0.5, 10.0, 32.0
    points = answer(search, [few, right, much] * 2)
    np.testing.assert_allclose(np.abs(points).max(axis=1), 0.5)
    np.testing.assert_array_equal(search.resolved, [False, True, False])
    np.testing.assert_allclose(search.radii, [1.0, 0.5, 0.5 * np.sqrt(8 / much)])
    assert search.cost == 4
    some = 2.5
    points = answer(search, [some, 0.5, some, 0.5])  # still too little; now too little: it shrank
    np.testing.assert_array_equal(search.resolved, [False, True, True])
    np.testing.assert_allclose(search.radii[0], 2.0)
    answer(search, [np.nan, 1.0])  # lost: too wide; and the last level
    assert search.turn == "joint" and not search.finished
    np.testing.assert_allclose(search.radii[0], 0.5)
    assert search.joint == pytest.approx(1 / np.sqrt(2))
    assert search.finding().n_resolved == 2 and search.finding().base == 0.0


def test_radii_stay_near_what_is_known_while_nothing_shows():
    """Within 10 units of x0, or twice as far as the point has come; then no more is asked."""
    search = radii(n_levels=9, p=2)
    widths = []
    while search.turn == "single":
        widths.append(np.abs(answer(search, 0.0)).max())
    np.testing.assert_allclose(widths, [0.5, 1.0, 2.0, 4.0, 8.0, 10.0])
    search = made(Radii, np.full(2, 0.5), 9, 3, 2, 100, p=2)
    search.point.put(np.array([30.0, 0.0]))
    answer(search, [-1.0, 0.0, 1.0])
    farthest = [np.zeros(2)]
    while search.turn == "single":
        farthest.append(np.abs(answer(search, 0.0)).max(axis=0))
    np.testing.assert_allclose(np.max(farthest, axis=0), [60.0, 60.0])


def test_radii_beyond_what_may_be_asked_are_foretold():
    """Each rises by 1 deviation at 10 units: 8 of them are there at 10 sqrt(8)."""
    search = radii(n_levels=9, p=12)
    while search.turn == "single":
        width = np.abs(search.radii[0])
        answer(search, 0.01 * width**2)
    assert search.resolved.all()
    np.testing.assert_allclose(search.radii, 10 * np.sqrt(8))
    assert search.joint == pytest.approx(1 / np.sqrt(12))


def test_radii_are_not_foretold_by_noise():
    for seed in range(20):
        search, rng = radii(n_levels=9, p=12), np.random.default_rng(seed)
        while search.turn == "single":
            answer(search, rng.standard_normal(search.cost))
        assert np.count_nonzero(search.resolved) <= 1  # a single one may rise by chance


def test_a_joint_radius_stays_near_what_is_known_while_nothing_shows():
    for slope, widest in ((0.0, 8.0), (9.0, 64.0)):
        search, widths = radii(n_levels=0), []
        while not search.finished:
            sides = slope * 2.0 ** (len(widths) // 2)
            widths.append(np.abs(answer(search, [-sides, sides])).max())
        assert max(widths) == widest


def test_radii_end_where_no_spread_or_no_radius_is_seen():
    search = made(Radii, np.ones(3), 3, 3, 2, 100)
    answer(search, [1.0, np.nan, np.nan])
    assert search.finished
    search = made(Radii, np.ones(3), 3, 3, 2, 100)
    answer(search, [1.0, 2.0, np.nan])
    assert not search.finished
    search = radii(n_levels=1)
    answer(search, np.nan)
    assert search.finished and search.finding().n_resolved == 0


def test_a_joint_radius_doubles_while_rises_are_those_of_a_square():
    search = radii(n_levels=0)
    assert search.turn == "joint" and search.joint == 1.0
    np.testing.assert_array_equal(search.resolved, True)
    widths = []
    for rise in (10.0, 40.0, 160.0, 640.0):
        for _ in range(2):
            widths.append(np.abs(answer(search, [rise, rise])).max())
    np.testing.assert_allclose(widths, np.repeat([0.5, 1.0, 2.0, 4.0], 2))
    assert search.finished and search.seen and search.joint == 8.0
    search = radii(n_levels=0)
    for rise in (10.0, 10.0, 100.0, 100.0):  # times ten: no square
        answer(search, [rise, rise])
    assert search.finished and search.joint == 1.0


@pytest.mark.parametrize(
    "odds, joint, steep",
    [((1.0, 2.0, 4.0, 8.0), 8.0, False),  # those of a slope
     ((1.0, 2.0, 4.0, 8 + np.sqrt(2.4 * 2.5)), 8.0, False),  # noise may explain the last
     ((1.0, 2.0, 4.0, 8 + np.sqrt(2.6 * 2.5)), 8 * (3 / (400 * 16 / 9 * 2.5 * 1.6)) ** (1 / 6), True),
     ((1.0, 2.0, 4.0, 8 - np.sqrt(9 * 2.5)), 8 * (3 / (400 * 16 / 9 * 2.5 * 8)) ** (1 / 6), True)],
)  # fmt: skip
def test_a_joint_radius_weighs_bias_against_noise(odds, joint, steep):
    """Three coordinates, a hundred steps; the squared deviation is in units of 5 / 2 sigma^2."""
    search = radii(n_levels=0)
    for rise, odd in zip((10.0, 40.0, 160.0, 640.0), odds, strict=True):
        for sign in (1.0, -1.0):
            answer(search, [rise + sign * odd, rise - sign * odd])
    assert search.finished and search.finding().steep is steep
    assert search.joint == pytest.approx(joint)


def test_bias_does_not_matter_where_no_steps_are_told():
    search = radii(n_levels=0, n_steps=0)
    for rise, odd in zip((10.0, 40.0, 160.0, 640.0), (1.0, 2.0, 4.0, 80.0), strict=True):
        for _ in range(2):
            answer(search, [rise + odd, rise - odd])
    assert search.finished and search.joint >= 4.0


@pytest.mark.parametrize(
    "last, finished, steep", [(62.0, True, True), (61.0, False, False), (20.0, True, False)]
)
def test_f_that_rises_faster_than_a_square_is_steep(last, finished, steep):
    """More than six times as high less half of what shows, 2 sqrt(1 / 4 + 1 / 3) = 1.53."""
    search = radii(n_levels=0)
    for rise in (10.0, 10.0, last, last):
        answer(search, [rise, rise])
    assert search.finished is finished and search.finding().steep is steep


@pytest.mark.parametrize(
    "rises, slopes, fine",
    [((10.0, 40.0), (1.0, 2.0), True), ((10.0, 61.0), (1.0, 2.0), True),
     ((10.0, 61.1), (1.0, 2.0), False), ((10.0, 40.0), (2.0, 8.1), False),
     ((10.0, 40.0), (2.0, 8.0), True), ((10.0, 26.0), (1.0, 2.0), True),
     ((10.0, 25.9), (1.0, 2.0), False), ((1.0, 1.0), (2.0, 2.8), True),
     ((1.0, 1.0), (2.0, 2.7), False), ((1.0, 1.0), (0.9, 0.1), True),
     ((2.0, 1.0), (2.0, 2.8), True), ((1.0, 1.0), (1.0, 0.1), False)],
)  # fmt: skip
def test_what_looks_like_a_quadratic(rises, slopes, fine):
    """Noise: rises below 2, slopes below 1; rises times 3 to 6, slopes times 1.4 to 4."""
    assert quadratic(np.array(rises), np.array(slopes), 2.0, 1.0) is fine


# ---- checks of a walk ----------------------------------------------------------------------------


def checking(n=4, deviation=1.0, noise=None, **footing):
    where = Problem.check(np.zeros(2), None, 1.0, noise)
    words = {"radius": 0.5, "deviation": deviation, "base": 3.0, "signal": 5.0, "seen": True,
             "rough": False, "farthest": 4.0, **footing}  # fmt: skip
    walk = Walk(where, Point(where.x0), np.random.default_rng(0), Footing(**words))
    return walk, Check(walk, n)


def test_the_noise_of_a_walk_moves_towards_that_of_repeats():
    """Four repeats weigh a half: the geometric mean of 1 and of 1.4826 times the median."""
    walk, check = checking()
    check._measure_noise([np.array([-2.0, 0.0, 0.0, 2.0])])
    assert walk.deviation == pytest.approx(np.sqrt(1.4826))
    walk, check = checking(n=2)  # few: the standard deviation, a quarter of the weight
    check._measure_noise([np.array([-1.0, 1.0])])
    assert walk.deviation == pytest.approx(2.0 ** (0.5 * 0.25))
    walk, check = checking(n=8)
    check._measure_noise([np.array([-99.0, 99.0] * 4)])
    assert walk.deviation == pytest.approx(4.0)  # no more than fourfold
    walk, check = checking(n=8)
    check._measure_noise([np.zeros(8)])
    assert walk.deviation == pytest.approx(0.05)  # nor less than a twentieth
    walk, check = checking(n=4)
    check._measure_noise([np.zeros(4)])
    assert walk.deviation == pytest.approx(0.05**0.5)
    walk, check = checking(n=3)  # few are equal by chance
    check._measure_noise([np.zeros(3)])
    assert walk.deviation == pytest.approx(0.25 ** (3 / 8))
    for n, noise, groups in (
        (8, 1.0, [np.arange(8.0)]),
        (1, None, [np.zeros(1)]),
        (4, None, [np.zeros(1)]),
    ):
        walk, check = checking(n=n, noise=noise)
        check._measure_noise(groups)
        assert walk.deviation == 1.0


def test_the_noise_of_a_walk_is_a_geometric_mean():
    walk, check = checking(n=4, deviation=2.0)
    check._measure_noise([np.array([-2.0, 0.0, 0.0, 2.0])])
    assert walk.deviation == pytest.approx(np.sqrt(2.0 * 1.4826))


def test_few_values_are_averaged_and_more_have_a_median():
    assert middle(np.array([0.0, 0.0, 3.0])) == 1.0
    assert middle(np.array([0.0, 0.0, 0.0, 4.0])) == 0.0 and middle(np.empty(0)) == np.inf


def test_classify_looks_along_new_signs_at_every_reach():
    search = made(Classify, 3, p=40)
    signs = [np.sign(answer(search, 1.0)[0]) for _ in range(5)]
    for k in (0, 2):
        np.testing.assert_array_equal(signs[k], signs[k + 1])
    assert np.any(signs[0] != signs[2]) and np.any(signs[2] != signs[4])


def test_what_a_check_finds():
    walk, check = checking(n=8, deviation=2.0)
    found = check.finding()
    assert (found.value, found.error) == (3.0, 2.0 * np.sqrt(2 / 8))
    assert check.cost == 8 * (2 if walk.fits else 1)


def test_a_check_guards_and_keeps():
    """An error of sqrt(2 / 4): worse by three of them goes back, lower is kept."""
    error = np.sqrt(2 / 4)
    for value, x, best in ((3.0 + 3.1 * error, 0.0, 3.0), (3.0 + 2.9 * error, 1.0, 3.0),
                           (2.5, 1.0, 2.5), (np.nan, 0.0, 3.0)):  # fmt: skip
        walk, check = checking(noise=1.0)
        walk.point.put(np.ones(2))
        answer(check, value)
        np.testing.assert_array_equal(walk.point.x, x)
        assert walk.best_value == best and check.finished
        assert check.journal[0][1] == (value if value == value else 3.0)


def test_the_radius_of_a_walk_follows_what_pairs_show():
    """The root of the median square over .45; clear above 8 deviations, hidden below 1.5."""
    size = np.sqrt(0.45)
    for odd, levels, radius in (
        (16.0, [], 0.25), (10.0, [], 0.4), (80.0, [], 0.25), (5.0, [], 0.5), (1.0, [], 0.5),
        (1.0, [2.0], 0.5),
    ):  # fmt: skip
        walk, check = checking()
        walk.odds, walk.share, walk.levels = [odd * size] * 6, 1.0, levels
        check._set_radius(1.9)  # gained 1.1: a rise of .05 is worth a wider radius, .1 is not
        assert walk.radius == pytest.approx(radius), odd
        assert walk.signal == pytest.approx(odd)
    walk, check = checking()
    walk.odds, walk.share = [10.0 * size] * 6, 0.0
    check._set_radius(1.9)
    assert walk.radius == pytest.approx(0.4)  # no narrower than half the reach, .25
    walk, check = checking()
    walk.odds, walk.levels = [size] * 6, [1.95]
    check._set_radius(1.9)
    assert walk.radius == 1.0
    walk, check = checking(rough=True)
    walk.odds, walk.levels = [size] * 6, [1.95]
    check._set_radius(1.9)
    assert walk.radius == 0.5
    walk, check = checking()
    walk.odds = [99.0] * 5
    check._set_radius(1.9)
    assert walk.radius == 0.5


def test_trust_in_proposals_halves_and_doubles():
    walk, check = checking()
    for better, trust in ((True, 2.0), (True, 4.0), (True, 4.0), (False, 2.0)):
        check._trust(better)
        assert walk.trust == trust
    check.inner = True
    check._trust(True)
    assert walk.trust == 2.0
    walk.trust = 0.15
    check._trust(False)
    assert walk.trust == 0.1
