"""Which coordinates matter and whether f is a sum: every question asked, and both sides of bounds."""

import numpy as np
import pytest

from by_hand import replies
from scgd.searches.arms.box import Box
from scgd.searches.arms.structure import SMOOTH, Groups, active_coordinates, is_additive

EPS = 2.0**-52


def groups(p=5, f=7.0, s=0.5, seed=3, box=None, grain=SMOOTH):
    x = np.arange(float(p))
    return x, Groups(x, f, s, np.random.default_rng(seed), box or Box.around(x), grain)


def moved(points, x):
    """Return which coordinates each point differs in."""
    return [frozenset(np.flatnonzero(point != x).tolist()) for point in points]


# ---- does a group move f? ------------------------------------------------------------------------


def test_a_group_is_moved_by_normal_steps_and_four_times_as_far_where_nothing_changed():
    x, looking = groups()
    points, found = replies(looking.moves(np.array([1, 3])), lambda y: 7.0)
    rng = np.random.default_rng(3)
    for point, reach in zip(points, (1.0, 4.0), strict=True):
        expected = x.copy()
        expected[[1, 3]] += reach * 0.5 * rng.standard_normal(2)
        np.testing.assert_allclose(point, expected, rtol=1e-15)
    assert found is False


def test_moves_are_mirrored_at_the_walls():
    x = np.full(4, 0.5)
    box = Box(x, np.zeros(4), np.ones(4))
    looking = Groups(x, 7.0, 2.0, np.random.default_rng(0), box, SMOOTH)
    points, _ = replies(looking.moves(np.arange(4)), lambda y: 7.0)
    rng = np.random.default_rng(0)
    for point, reach in zip(points, (2.0, 8.0), strict=True):
        np.testing.assert_allclose(point, box.reflect(x + reach * rng.standard_normal(4)))
        assert np.all((point >= 0) & (point <= 1))


@pytest.mark.parametrize("f", [-8.0, 8.0])
@pytest.mark.parametrize("n_ulps, n_asked", [(4, 2), (-4, 2), (5, 1), (-5, 1)])
def test_four_roundings_of_f_are_no_change(f, n_ulps, n_asked):
    _, looking = groups(f=f)
    points, found = replies(looking.moves(np.array([2])), lambda y: f + 8 * n_ulps * EPS)
    assert found is (n_asked == 1) and len(points) == n_asked


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_lost_value_is_a_change(value):
    _, looking = groups()
    points, found = replies(looking.moves(np.array([2])), lambda y: value)
    assert found is True and len(points) == 1
    values = iter([7.0, value])
    points, found = replies(looking.moves(np.array([2])), lambda y: next(values))
    assert found is True and len(points) == 2


@pytest.mark.parametrize("p, size", [(4, 1), (16, 2), (72, 9)])
def test_three_eighths_and_four_single_coordinates_are_asked_first(p, size):
    x, looking = groups(p)
    points, found = replies(looking.dense(), lambda y: 8.0)
    rng, expected = np.random.default_rng(3), []
    order = rng.permutation(p)[:4]
    for _ in range(3):
        expected.append(frozenset(rng.permutation(p)[:size].tolist()))
        rng.standard_normal(size)
    expected += [frozenset([int(k)]) for k in order]
    assert moved(points, x) == expected and found is True


@pytest.mark.parametrize("flat", range(7))
def test_one_group_that_does_nothing_is_enough(flat):
    x, looking = groups(16)
    seen = []

    def value(y):
        group = moved([y], x)[0]
        if not seen or seen[-1] != group:
            seen.append(group)
        return 7.0 if len(seen) == flat + 1 else 8.0

    points, found = replies(looking.dense(), value)
    assert found is False and len(points) == flat + 2


# ---- halving -------------------------------------------------------------------------------------


def halved(order, true, most):
    """Return the groups that halving asks about, in order, and what it takes for active."""
    asked, active = [], set()

    def look(group, known):
        if len(asked) >= most:
            active.update(group)
            return
        if not known:
            asked.append(frozenset(group))
            if not true & set(group):
                return
        if len(group) == 1:
            active.update(group)
            return
        middle = (len(group) + 1) // 2
        first, second = group[:middle], group[middle:]
        asked.append(frozenset(first))
        if true & set(first):
            look(second, False)
            look(first, True)
        else:  # then it must be the other one
            look(second, True)

    look([int(k) for k in order], False)
    return asked, active


def asked_of(p, true, most=None, s=1.0):
    """Return groups asked after the first look, the mask, and the order that was halved."""
    x = np.zeros(p)

    def fun(y):
        return 5.0 + float(np.sum(np.abs(y[sorted(true)])))

    for seed in range(99):  # one whose first look finds something that does nothing
        rng = np.random.default_rng(seed)
        first, dense = replies(Groups(x, 5.0, s, rng, Box.around(x), SMOOTH).dense(), fun)
        if not dense:
            break
    order = rng.permutation(p)
    arm = active_coordinates(x, 5.0, s, np.random.default_rng(seed), most=most)
    points, mask = replies(arm, fun)
    found = moved(points[len(first) :], x)
    flat = [group for group in found if not true & group]
    single = [group for k, group in enumerate(found) if k == 0 or group != found[k - 1]]
    assert len(found) == len(single) + len(flat) // 2  # what does nothing is asked twice
    return single, mask, order


@pytest.mark.parametrize("most", [*range(1, 12), 25, None])
def test_groups_are_halved_until_questions_run_out(most):
    true = {2, 3, 11}
    asked, mask, order = asked_of(17, true, most)
    expected, active = halved(order, true, most or 34)
    assert asked == expected
    if len(active) > 0.75 * 17:
        active = set(range(17))
    assert set(np.flatnonzero(mask).tolist()) == active


def test_two_questions_per_coordinate_tell_all():
    """A tree of halves has fewer than two groups per leaf."""
    true = set(range(0, 32, 2))
    asked, mask, order = asked_of(32, true)
    expected, active = halved(order, true, 64)
    assert asked == expected and len(asked) < 64
    assert set(np.flatnonzero(mask).tolist()) == active == true


@pytest.mark.parametrize("n_active, told", [(12, True), (13, False), (0, False)])
def test_three_quarters_are_left_out_of_at_most(n_active, told):
    """Of sixteen; and where nothing changed f at all, all may."""
    true = set(range(16 - n_active, 16))
    _, mask, _ = asked_of(16, true, most=99)
    assert np.flatnonzero(mask).tolist() == (sorted(true) if told else list(range(16)))


def test_below_eight_coordinates_nothing_is_asked():
    points, mask = replies(
        active_coordinates(np.zeros(7), 1.0, 1.0, np.random.default_rng(0)), lambda y: 1.0
    )
    assert points == [] and mask.dtype == bool and mask.tolist() == [True] * 7
    points, mask = replies(
        active_coordinates(np.zeros(8), 1.0, 1.0, np.random.default_rng(0)), lambda y: y[5]
    )
    assert len(points) > 0
    everything = replies(
        active_coordinates(np.zeros(8), 1.0, 1.0, np.random.default_rng(0)), lambda y: y.sum()
    )
    assert len(everything[0]) == 7 and everything[1].all()  # all that was asked matters


# ---- is it a sum? --------------------------------------------------------------------------------


def test_moves_of_halves_are_asked_alone_and_together():
    x, seen = np.arange(5.0), np.random.default_rng(4)
    points, found = replies(
        is_additive(x, float(x.sum()), 0.3, np.random.default_rng(4)), lambda y: float(y.sum())
    )
    assert found is True and len(points) == 9
    for k in range(3):
        half = seen.permutation(5) < 2
        u = np.where(half, 0.3 * seen.standard_normal(5), 0.0)
        v = np.where(half, 0.0, 0.3 * seen.standard_normal(5))
        assert np.count_nonzero(u) == 2 and np.count_nonzero(v) == 3
        np.testing.assert_allclose(points[3 * k : 3 * k + 3], [x + u, x + v, x + u + v])


def test_one_coordinate_is_a_sum_without_a_question():
    points, found = replies(
        is_additive(np.zeros(1), 1.0, 1.0, np.random.default_rng(0)), lambda y: 1.0
    )
    assert points == [] and found is True
    points, _ = replies(
        is_additive(np.zeros(2), 0.0, 1.0, np.random.default_rng(0)), lambda y: float(y.sum())
    )
    assert len(points) == 9


def test_halves_are_mirrored_at_the_walls():
    x = np.full(4, 0.5)
    box = Box(x, np.zeros(4), np.ones(4))
    arm = is_additive(x, 2.0, 3.0, np.random.default_rng(0), box)
    points, found = replies(arm, lambda y: float(y.sum()))
    assert found is True and all(np.all((point >= 0) & (point <= 1)) for point in points)


def told(f, one, other, both):
    """Answer three rounds of questions with the same values."""
    values = iter([one, other, both] * 3)
    arm = is_additive(np.zeros(4), f, 1.0, np.random.default_rng(0))
    points, found = replies(arm, lambda y: next(values))
    assert len(points) == (9 if found else 3)
    return found


@pytest.mark.parametrize(
    "error, additive", [(0.9, True), (1.1, False), (-0.9, True), (-1.1, False)]
)
@pytest.mark.parametrize("one, other", [(4.0, 0.5), (-0.5, 4.0), (0.5, -4.0), (-4.0, -0.25)])
def test_a_billionth_of_the_larger_change_is_no_error(one, other, error, additive):
    assert told(0.0, one, other, one + other + error * 4e-9) is additive


@pytest.mark.parametrize("f", [2.0**20, -(2.0**20)])
@pytest.mark.parametrize("n_ulps, additive", [(64, True), (65, False), (-64, True), (-65, False)])
def test_sixty_four_roundings_are_no_error(f, n_ulps, additive):
    change = 2.0**-12
    assert told(f, f + change, f - change, f + n_ulps * 2.0**-32) is additive


@pytest.mark.parametrize(
    "fun, additive",
    [(lambda x: float(np.sum(x**2)), True), (lambda x: float(np.sum(x) ** 2), False),
     (lambda x: 1.0, False), (lambda x: float(np.sum(x**2) + 1e-6 * x[0] * x[1] * x[2]), False)],
)  # fmt: skip
def test_what_is_a_sum_over_coordinates(fun, additive):
    arm = is_additive(np.ones(3), fun(np.ones(3)), 1.0, np.random.default_rng(0))
    assert replies(arm, fun)[1] is additive


def test_a_change_of_the_smallest_numbers_is_one():
    """Errors and bounds are zero both: level, not above."""
    tiny = 5e-324
    assert told(0.0, tiny, 0.0, tiny) is True
    assert told(3.0, 3.0, 3.0, 3.0) is False  # nothing changed: nothing is known
    assert told(3.0, 3.0, 4.0, 4.0) is True
    assert told(0.0, np.inf, 1.0, np.inf) is False and told(0.0, 1.0, np.nan, 1.0) is False
