"""BFGS from values: differences, the coordinates it keeps to, its memory, where it goes."""

import numpy as np
import pytest

from by_hand import replies
from scgd.searches.arms.box import Box
from scgd.searches.arms.quasinewton import QuasiNewton, bends
from scgd.searches.arms.spread import Partials, Spread


def made(x, f=1.0, s=2.0, **more):
    return QuasiNewton(np.asarray(x, float), f, s, **more)


def slopes_of(newton, fun):
    """Answer one gradient; return its points and what it says."""
    arm = newton._differentiate()
    asked = next(arm)
    assert isinstance(asked, Spread)
    points = np.asarray(asked)
    with pytest.raises(StopIteration) as end:
        arm.send(np.array([fun(point) for point in points]))
    return points, end.value.value


# ---- differences ---------------------------------------------------------------------------------


def test_differences_are_as_wide_as_rounding_asks():
    """Forward 1e-8 s + 3e-12 |x|, central 1e-7 s + 3e-11 |x|; exact for a plane."""
    x = np.array([0.0, 4e3, -7e3])
    newton = made(x)
    points, found = slopes_of(newton, lambda y: 1.0 + float(np.array([3.0, 0.0, 0.0]) @ y))
    h = 1e-8 * 2.0 + 3e-12 * np.abs(x)
    np.testing.assert_allclose(points - x, np.diag(h), rtol=1e-3, atol=1e-30)
    np.testing.assert_allclose(found, [3.0, 0.0, 0.0], rtol=1e-6)
    newton = made(x)
    newton.central = True
    points, found = slopes_of(newton, lambda y: 1.0 + float(np.array([3.0, 0.0, 0.0]) @ y))
    h = 1e-7 * 2.0 + 3e-11 * np.abs(x)
    np.testing.assert_allclose(
        points - x, np.vstack([np.diag(h), -np.diag(h)]), rtol=1e-3, atol=1e-30
    )
    np.testing.assert_allclose(found, [3.0, 0.0, 0.0], rtol=1e-6)


def test_differences_stay_between_the_walls():
    """At the upper wall backwards; where there is no room there is no slope."""
    x = np.array([1.0, 1.0, 1.0])
    box = Box(x, np.array([0.0, 1.0, 1.0]), np.array([1.0, 2.0, 1.0]))
    h = 1e-8 * 2.0 + 3e-12
    points, found = slopes_of(made(x, box=box), lambda y: 1.0 + 5.0 * float(np.sum(y - 1.0)))
    np.testing.assert_allclose(points - x, np.diag([-h, h, 0.0]), rtol=1e-6, atol=1e-20)
    np.testing.assert_allclose(found, [5.0, 5.0, 0.0], rtol=1e-6)
    newton = made(x, box=box)
    newton.central = True
    h = 1e-7 * 2.0 + 3e-11
    points, found = slopes_of(newton, lambda y: 1.0 + 5.0 * float(np.sum(y - 1.0)))
    expected = np.vstack([np.diag([0.0, h, 0.0]), np.diag([-h, 0.0, 0.0])])
    np.testing.assert_allclose(points - x, expected, rtol=1e-6, atol=1e-20)
    np.testing.assert_allclose(found, [5.0, 5.0, 0.0], rtol=1e-6)


def test_slopes_that_are_lost_are_zero_and_own_slopes_are_asked_whole():
    newton = made(np.zeros(2))
    _, found = slopes_of(newton, lambda y: np.inf if y[0] > 0 else 1.0 + y[1])
    np.testing.assert_allclose(found, [0.0, 1.0], rtol=1e-6)
    own = made(np.zeros(2), partials=True)
    arm = own._differentiate()
    asked = next(arm)
    assert isinstance(asked, Partials) and asked.coords.tolist() == [0, 1]
    with pytest.raises(StopIteration) as end:
        arm.send(np.array([3.0, -1.0]))
    assert end.value.value.tolist() == [3.0, -1.0]
    assert own.shares[0].tolist() == [0.75, 0.25] and own.n_seen == 1


# ---- shares --------------------------------------------------------------------------------------


def test_shares_are_means_over_the_first_ten_places():
    newton = made(np.zeros(3))
    assert newton.relevance() is None
    newton._note_shares(np.zeros(3), np.arange(3))
    newton._note_shares(np.array([np.inf, 0.0, 0.0]), np.arange(3))
    assert newton.n_seen == 0
    newton._note_shares(np.array([1.0, -3.0, 0.0]), np.array([0, 1]))
    shares, errors = newton.relevance()
    np.testing.assert_allclose(shares, [0.25, 0.75, 0.0])
    assert np.isnan(errors).all()
    newton._note_shares(np.array([3.0, -1.0, 0.0]), np.array([0, 1]))
    newton._note_shares(np.array([2.0, 1.0, 1.0]), np.arange(3))
    seen = np.array([[0.25, 0.75], [0.75, 0.25], [0.5, 0.25]])
    mean = np.append(seen.mean(axis=0), 0.25)
    shares, errors = newton.relevance()
    np.testing.assert_allclose(shares, mean / mean.sum())
    np.testing.assert_allclose(errors[:2], seen.std(axis=0, ddof=1) / np.sqrt(3) / mean.sum())
    assert np.isnan(errors[2])
    for _ in range(9):
        newton._note_shares(np.ones(3), np.arange(3))
    assert newton.n_seen == 10 and newton.shares[2].tolist() == [10.0, 10.0, 8.0]


# ---- few coordinates -----------------------------------------------------------------------------


def wide(p=20, few=(3, 7), **more):
    gradient = np.zeros(p)
    gradient[list(few)] = 10.0
    newton = made(np.zeros(p), **more)
    return newton, gradient


def test_few_coordinates_are_kept_to_where_they_hold_nearly_all():
    newton, gradient = wide()
    gradient[0] = 0.1  # .01 of 200.01: below a ten-thousandth
    newton._choose_active(gradient, np.empty(0, np.int64))
    assert newton.n_active == 2 and np.flatnonzero(newton.active).tolist() == [3, 7]
    assert gradient[0] == 0.0 and newton.turn == 0
    newton, gradient = wide()
    gradient[0] = 0.2  # .04: above
    newton._choose_active(gradient, np.empty(0, np.int64))
    assert newton.n_active == 3 and np.flatnonzero(newton.active).tolist() == [0, 3, 7]
    newton, gradient = wide(few=range(10))
    newton._choose_active(gradient, np.empty(0, np.int64))
    assert newton.active.sum() == 10
    newton, gradient = wide(few=range(11))
    newton._choose_active(gradient, np.empty(0, np.int64))
    assert newton.n_active == 11 and newton.active is None and gradient[0] == 10.0


def test_coordinates_are_chosen_at_the_first_gradient_or_when_renewed():
    newton, gradient = wide()
    newton.first = False
    newton._choose_active(gradient, np.empty(0, np.int64))
    assert newton.active is None and newton.n_active == 0
    newton.renew, newton.was_active = True, np.zeros(20, bool)
    newton.was_active[:9] = True  # those known before, and the new ones: 3 is one of them, 7 too
    newton._choose_active(gradient, np.empty(0, np.int64))
    assert newton.active.sum() == 9 and not newton.renew
    newton, gradient = wide(few=(18, 19))
    newton.was_active = np.zeros(20, bool)
    newton.was_active[:9] = True
    newton._choose_active(gradient, np.empty(0, np.int64))
    assert newton.active is None  # eleven of twenty: more than half
    newton, gradient = wide(few=())
    newton._choose_active(gradient, np.empty(0, np.int64))
    assert newton.active is None and newton.n_active == 0


def test_others_join_when_they_hold_more_than_a_ten_thousandth():
    newton, gradient = wide()
    newton.active = np.zeros(20, bool)
    newton.active[[3, 7]] = True
    newton.gradient = np.zeros(20)
    gradient[0], gradient[1] = 0.15, 0.13  # squares .0225 and .0169 of 200.04
    newton._choose_active(gradient, np.array([0, 1, 2]))
    assert np.flatnonzero(newton.active).tolist() == [0, 3, 7]
    assert gradient[0] == 0.15 == newton.gradient[0] and gradient[1] == 0.0 == newton.gradient[1]
    newton.active[:] = True
    newton.active[0] = False
    newton._choose_active(gradient, np.array([0]))
    assert newton.active is None  # all of them again


def test_a_tenth_as_many_others_are_looked_at_in_turn():
    newton, _ = wide(p=60)
    newton.active = np.zeros(60, bool)
    newton.active[:25] = True
    for first in range(0, 40, 2):
        points, _ = slopes_of(newton, lambda y: 1.0 + float(np.sum(y[:25])))
        asked = [int(np.flatnonzero(point)[0]) for point in points]
        others = [25 + (first + k) % 35 for k in range(2)]
        assert asked == [*range(25), *others]
    newton.active[:] = True
    newton.active[1:] = False
    points, _ = slopes_of(newton, lambda y: 1.0 + y[0])
    assert len(points) == 2  # one at least
    few = made(np.zeros(15))
    slopes_of(few, lambda y: 1.0 + y[0])
    assert few.active is None and few.n_active == 0  # below sixteen all are looked at
    enough = made(np.zeros(16))
    slopes_of(enough, lambda y: 1.0 + y[0])
    assert enough.n_active == 1 and enough.active.sum() == 1


# ---- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("trust", [0.0, 0.3, 1.0])
def test_the_first_metric_lies_between_short_and_long(trust):
    newton = made(np.zeros(2))
    newton.trust = trust
    newton._learn(np.array([1.0, 1.0]))
    assert newton.steps == [] and newton.gamma == 1.0  # the first has none to be compared with
    newton.first, newton.moved = False, np.array([1.0, 2.0])
    newton._learn(np.array([4.0, 2.0]))
    step, change = np.array([1.0, 2.0]), np.array([3.0, 1.0])
    assert newton.steps[0].tolist() == [1.0, 2.0] and newton.changes[0].tolist() == [3.0, 1.0]
    short, long = step @ change / (change @ change), step @ step / (step @ change)
    assert newton.gamma == pytest.approx(short ** (1 - trust) * long**trust)
    newton._learn(np.array([-9.0, -9.0]))  # it fell along the step: not learnt
    assert len(newton.steps) == 1 and newton.gradient.tolist() == [-9.0, -9.0]


def test_two_hundred_steps_are_remembered_and_the_longest_memory_is_kept():
    newton = made(np.zeros(1))
    newton.first, newton.gradient = False, np.zeros(1)
    for k in range(1, 203):
        newton.moved = np.full(1, float(k))
        newton._learn(newton.gradient + k)
    assert len(newton.steps) == len(newton.changes) == 200 and newton.steps[0][0] == 3.0
    newton._forget()
    newton._learn(newton.gradient + 1.0)
    assert len(newton.steps) == 1 and len(newton.longest[0]) == 200


def test_a_step_bends_by_more_than_rounding():
    step = np.array([1.0, 0.0])
    assert bends(step, np.array([1.1e-10, 1.0])) and not bends(step, np.array([0.9e-10, 1.0]))
    assert not bends(step, np.array([-1.0, 0.0])) and not bends(step, np.zeros(2))


# ---- where it goes -------------------------------------------------------------------------------


def test_the_first_direction_is_the_steepest_one_with_the_last_length():
    newton = made(np.zeros(2))
    newton.step_length = 3.0
    none = np.zeros(2, bool)
    direction, slope = newton._direction(np.array([3.0, 4.0]), 5.0, none)
    np.testing.assert_allclose(direction, [-1.8, -2.4])
    assert slope == pytest.approx(-15.0)
    newton.step_length = 1e9  # no farther than a hundred lengths of every coordinate
    direction, slope = newton._direction(np.array([3.0, 4.0]), 5.0, none)
    np.testing.assert_allclose(np.linalg.norm(direction), 100 * 2.0 * np.sqrt(2))
    assert slope == pytest.approx(-5.0 * 200 * np.sqrt(2))


def test_a_metric_leads_downhill_or_is_forgotten():
    newton = made(np.zeros(2))
    newton.steps, newton.changes, newton.gamma = [np.array([1.0, 0.0])], [np.array([4.0, 0.0])], 0.5
    none = np.zeros(2, bool)
    direction, _ = newton._direction(np.array([8.0, 2.0]), 1.0, none)
    np.testing.assert_allclose(direction, [-2.0, -1.0])  # a bend of 4, and gamma for the rest
    held = np.array([True, False])
    direction, slope = newton._direction(np.array([8.0, 2.0]), 2.0, held)
    np.testing.assert_allclose(direction, [0.0, -2.0])  # nothing of the memory is left
    assert slope == -4.0 and len(newton.steps) == 1
    newton.gamma = -1.0  # uphill
    newton._direction(np.array([0.0, 2.0]), 2.0, none)
    assert newton.steps == []


def test_walls_hold_what_would_leave():
    x = np.array([0.0, 0.0, 1.0, 1.0, 0.5])
    newton = made(x, box=Box(np.full(5, 0.5), np.zeros(5), np.ones(5)))
    held = newton._held(np.array([1.0, -1.0, 1.0, -1.0, 1.0]))
    assert held.tolist() == [True, False, False, True, False]
    assert not newton._held(np.zeros(5)).any()
    newton.steps, newton.changes = [np.ones(5), np.eye(5)[0]], [np.ones(5), np.eye(5)[0]]
    steps, changes = newton._pairs(held)
    assert len(steps) == len(changes) == 1 and steps[0].tolist() == [0.0, 1.0, 1.0, 0.0, 1.0]
    assert newton._pairs(np.zeros(5, bool)) == (newton.steps, newton.changes)


def test_a_metric_is_the_inverse_of_what_the_memory_saw():
    newton = made(np.zeros(2))
    steps, changes = list(np.eye(2)), [np.array([4.0, 1.0]), np.array([1.0, 3.0])]
    newton.longest = (steps, changes, 0.5)
    metric = newton.metric()
    np.testing.assert_allclose(metric, metric.T)
    np.testing.assert_allclose(metric @ changes[1], steps[1], atol=1e-12)


def test_a_bowl_is_descended_and_what_was_told_is_compared_with_what_came():
    centre = np.array([1.0, -2.0])

    def fun(y):
        y = np.atleast_2d(np.asarray(y, float))
        values = np.sum((y - centre) ** 2, axis=1)
        return values

    newton = made(np.zeros(2), f=5.0, s=1.0)

    def reply(asked):
        values = fun(asked)
        return values if isinstance(asked, Spread) else float(values[0])

    replies(newton.run(), reply)
    np.testing.assert_allclose(newton.x, centre, atol=1e-6)
    assert newton.central and newton.f < 1e-10
    # the whole of 5 is gained along a slope that told twice as much
    assert newton.agreement[0] == pytest.approx(0.5, rel=1e-6)
    assert newton.gains[0] == pytest.approx(5.0)


def test_a_flat_place_is_looked_at_from_both_sides_and_then_left():
    newton = made(np.zeros(2), f=1.0)
    points, _ = replies(newton.run(), lambda asked: np.ones(len(asked)))
    assert [len(point) for point in points] == [2, 4] and newton.agreement == []
