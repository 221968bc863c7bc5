"""The numbers that plans decide by, each as a table worked out by hand from its sentence."""

from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

import scgd
from scgd.problem import Problem
from scgd.questions import Point
from scgd.searches import Length, Repeat, Rounding
from scgd.searches.leash import Leash

auto, descent, guard, joint, members, noisy, steps = (
    import_module(f"scgd.plans.{name}")  # some of them are also functions of the package
    for name in ("auto", "descent", "guard", "joint", "members", "noisy", "steps")
)


@pytest.mark.parametrize(
    "budget, expected",
    [(20, 4), (100, 4), (124, 4), (125, 5), (300, 12), (400, 16), (10_000, 16), (32_000, 16),
     (34_000, 17), (200_000, 100)],
)  # fmt: skip
def test_samples_of_a_guard(budget, expected):
    """A 25th of the budget, at least 4, at most 16 or a 2,000th."""
    assert auto.guard_samples(budget) == expected
    assert auto.final_samples(budget) == max(expected, budget // 150)


def test_patience_cuts_the_rest_into_parts():
    ground = SimpleNamespace(patience=None, spent=0, converged=False)
    patience = guard.Patience(ground)
    assert patience.parts(10**6, 4) == 4
    ground.patience = 100
    assert [patience.parts(n, 4) for n in (200, 499, 500, 10**6)] == [4, 4, 5, 40]
    assert patience.parts(50) == 1 and patience.parts(1000) == 10


def test_patience_ends_after_so_many_evaluations_without_a_gain_of_two_errors():
    ground = SimpleNamespace(patience=100, spent=10, converged=False)
    patience = guard.Patience(ground, value=1.0)
    ground.spent = 60
    assert not patience.see(0.7, 0.1) and patience.since == 60  # three errors: a gain
    ground.spent = 159
    assert not patience.see(0.55, 0.1) and patience.since == 60 and patience.value == 0.7
    ground.spent = 160
    assert patience.see(0.55, 0.1) and ground.converged
    ground.patience, ground.converged = None, False
    assert not patience.note(False) and not ground.converged


def test_rounds_of_the_length_search():
    """Five per cent of the budget in questions of three, 3 to 60 directions, a third of them last."""
    assert descent.scale_rounds(99, few=True) == (1, 1)
    assert descent.scale_rounds(100, few=True) == (1, 1, 1, 1, 1)
    assert descent.scale_rounds(100, few=False) == (1, 1, 1, 1, 1)
    assert descent.scale_rounds(1200, few=False) == (1, 1, 1, 1, 16)
    assert descent.scale_rounds(3600, few=False) == (5, 5, 5, 5, 40)
    assert descent.scale_rounds(10**6, few=False) == (5, 5, 5, 5, 40)
    assert descent.scale_rounds(10**6, few=True) == (5, 5, 5, 5, 5)


@pytest.mark.parametrize(
    "budget, checks, pairs, final",
    [(20, 2, 2, 2), (100, 2, 2, 2), (200, 5, 2, 2), (400, 10, 2, 4), (1000, 10, 2, 10),
     (3000, 10, 3, 30), (8000, 16, 8, 40), (50_000, 100, 8, 40)],
)  # fmt: skip
def test_pairs_under_noise(budget, checks, pairs, final):
    assert joint.n_checks(budget) == checks
    assert joint.n_pairs(budget) == pairs
    assert noisy.n_final(budget) == final


@pytest.mark.parametrize(
    "n_steps, gain",
    [(0, 0.05), (10, 0.05), (300, 0.05), (500, 0.03), (1500, 0.01), (3500, 0.01), (7000, 0.005)],
)
def test_a_short_leg_learns_fast(n_steps, gain):
    assert members.learning_gain(n_steps) == pytest.approx(gain)


def test_members_are_as_they_say():
    block = members.block_member(100, 4000, 0.0, 1.0)
    assert block.block_size == 16 and not block.replace
    assert block.learning_rate == scgd.Linear(0.25, power=1.0)
    assert block.radius == scgd.Constant(1e-4)
    assert isinstance(block.policy, scgd.RecentGains) and isinstance(block.step, scgd.Learned)
    assert members.block_member(5, 40 * 50, 0.02, 0.5).learning_rate == scgd.Linear(
        0.125, power=2.0
    )
    assert members.block_member(5, 4000, 0.02, 1.0).radius == scgd.Constant(0.02)
    assert members.block_member(5, 4000, 0.02, 1.0).block_size == 5
    assert members.block_member(10, 10**9, 0.0, 1.0).learning_rate.power == 2.0
    assert members.block_member(100, 100, 0.0, 1.0).learning_rate.power == 1.0
    short = members.short_member(0.0, 0.5)
    assert short.learning_rate == scgd.Linear(0.04) and short.radius == scgd.Constant(1e-3)
    assert (
        short.step == scgd.Adam(beta2=0.99) and members.short_member(0.5, 1.0).radius.value == 0.5
    )
    both = members.joint_member(400, 2.0, 3.0)
    assert both.learning_rate == scgd.Linear(0.1, power=2) and both.radius == scgd.Constant(3.0)
    assert both.step.shared_gain == pytest.approx(15 / 400)


def test_the_member_of_a_leg_sees_above_rounding():
    """Radii: twice the root of error * p / bend, or where f is rough, in units of the length."""

    class Land:
        problem = Problem.check(np.zeros(4), None, 1.0)

    found = auto.member(Land(), Length(2.0, 8.0, 0.0), 1e-4, 1000, 1.0)
    assert found.radius.value == pytest.approx(2 * np.sqrt(1e-4 * 4 / 8.0) / 2.0)
    assert auto.member(Land(), Length(2.0, 8.0, 3.0), 1e-4, 1000, 1.0).radius.value == 1.5
    assert auto.member(Land(), Length(2.0, 0.0, 0.0), 1e-4, 1000, 1.0).radius.value == 1e-4
    assert auto.member(Land(), Length(2.0, 8.0, 0.0), 0.0, 23, 1.0).radius.value == 1e-3
    assert auto.member(Land(), Length(2.0, 8.0, 0.0), 0.0, 24, 1.0).radius.value == 1e-4


def test_constants_of_stories():
    assert (steps.MONITOR, steps.AFFORDABLE) == (16, 20)
    assert (noisy.LARGE, noisy.WIDE, noisy.OPENING, noisy.SHARE) == (4000, 100, 1500, 0.15)
    assert (joint.FIRST, joint.SECOND, joint.BACK, joint.MOST_TRIES) == (2.0, 0.75, 0.25, 4)


# ---- small searches ------------------------------------------------------------------------------


def searched(cls, *more):
    problem = Problem.check(np.zeros(3), None, 2.0)
    return cls(problem, Point(problem.x0), np.random.default_rng(0), *more)


@pytest.mark.parametrize(
    "values, same",
    [([1.0, 1.0, 2.0, 2.0], True), ([1.0, 1.1, 2.0, 2.0], False), ([1.0, 1.0, 2.0, 2.1], False),
     ([1.0, np.nan, 2.0, 2.0], False), ([1.0, 1.0, np.nan, np.nan], True), ([1.0, 1.0, np.nan, 2.0], False)],
)  # fmt: skip
def test_four_values_tell_whether_f_repeats_itself(values, same):
    search = searched(Repeat)
    question = search.pose()
    assert search.cost == 4 == len(question)
    points = question.points()
    np.testing.assert_array_equal(points[:2], 0.0)
    np.testing.assert_array_equal(points[2], points[3])
    np.testing.assert_allclose(np.abs(points[2]), 0.2)
    search.take(question, np.array(values))
    assert search.finished and search.finding().same is same and search.finding().value == 1.0


def test_rounding_is_what_third_differences_see():
    search = searched(Rounding, np.full(3, 2.0))
    question = search.pose()
    steps = np.abs(question.points()) / 2.0
    np.testing.assert_allclose(steps[:, 0], 0.1 + 1e-9 * np.arange(8), rtol=1e-12)
    values = 1.0 + 1e-6 * np.array([1.0, -1, 1, -1, 1, -1, 1, -1])  # third differences: 8e-6
    search.take(question, values)
    assert search.finding().error == pytest.approx(8e-6 / np.sqrt(20), rel=1e-6)
    single = searched(Rounding, np.ones(3))
    single.take(single.pose(), np.full(8, 4.0))
    assert single.finding().error == pytest.approx(4 * 3e-8)
    double = searched(Rounding, np.ones(3))
    double.take(double.pose(), np.full(8, 4.1))
    assert double.finding().error == pytest.approx(4.1e-16)
    lost = searched(Rounding, np.ones(3))
    lost.take(lost.pose(), np.full(8, np.nan))
    assert lost.finished and lost.finding().error == 0.0


def test_a_leash_doubles_beyond_its_half():
    leash = Leash(Problem.check(np.zeros(3), [(-1, 30)] * 3, 2.0))
    np.testing.assert_array_equal(
        leash.clip(np.array([0, 2]), np.array([-50.0, 50.0])), [-1.0, 20.0]
    )
    assert leash.farthest == 10.0
    leash.moved(np.array([0]), np.array([10.0]))
    assert leash.reach == 10.0
    leash.moved(np.array([0]), np.array([10.1]))
    assert leash.reach == 20.0 and leash.inside(1, 50.0) == 30.0 and leash.farthest == 15.0
    other = Leash(leash.problem)
    other.load_state_dict(leash.state_dict())
    assert (other.reach, other.farthest) == (20.0, 15.0)


# ---- the comparison with x0 ----------------------------------------------------------------------


class Ground:
    """What a comparison looks at."""

    def __init__(self, total=1000, room=500, converged=False):
        self.problem = Problem.check(np.zeros(2), None, 1.0)
        self.point = Point(np.ones(2))
        self.total, self.room, self.budget, self.nominal = total, room, 1000, 64
        self.converged, self.guarded = converged, True


def compared(ground, here, there, **more):
    """Answer a comparison; return what the story asks next, None where it ends."""
    guard = import_module("scgd.plans.guard")
    story = guard.settle_with_start(ground, len(here), **more)
    judge = next(story)
    np.testing.assert_array_equal(judge.reference, 0.0)
    for pair in zip(here, there, strict=True):
        judge.take(judge.pose(), np.array(pair))
    try:
        return story.send(judge.finding())
    except StopIteration:
        return None


UP, DOWN = ([2.0, 2.1, 1.9], [1.0, 1.0, 1.0]), ([1.0, 1.1, 0.9], [2.0, 2.0, 2.0])


def test_a_worse_end_is_given_up_and_a_better_one_kept():
    for (here, there), x in ((UP, 0.0), (DOWN, 1.0)):
        ground = Ground()
        assert compared(ground, here, there) is None and not ground.guarded
        np.testing.assert_array_equal(ground.point.x, x)


def test_an_end_that_loses_most_pairs_is_given_up_where_tails_hide_the_mean():
    """Seven of ten pairs against it; one huge value at x0 leaves the mean's error as large."""
    here, there = [2.0] * 7 + [1.0] * 3, [1.0] * 7 + [2.0, 2.0, 12.0]
    ground = Ground()
    compared(ground, here, there)
    np.testing.assert_array_equal(ground.point.x, 0.0)
    ground = Ground()
    compared(ground, [2.0] * 6 + [1.0] * 4, [1.0] * 6 + [2.0, 2.0, 2.0, 12.0])
    np.testing.assert_array_equal(ground.point.x, 1.0)


def test_one_standard_error_is_enough():
    for shift, x in ((0.0, 1.0), (0.9, 1.0), (1.1, 0.0)):  # in standard errors
        here = shift * np.sqrt(1 / 3) + np.array([-1.0, 0.0, 1.0])
        ground = Ground()
        compared(ground, here.tolist(), [0.0, 0.0, 0.0])
        np.testing.assert_array_equal(ground.point.x, x)


def test_without_proof_of_a_gain_the_start_is_kept():
    for shift, x in ((0.0, 0.0), (-1.9, 0.0), (-2.1, 1.0)):  # in standard errors
        here = shift * np.sqrt(1 / 3) + np.array([-1.0, 0.0, 1.0])
        ground = Ground()
        compared(ground, here.tolist(), [0.0, 0.0, 0.0], proof=True)
        np.testing.assert_array_equal(ground.point.x, x)


def test_by_ranks_an_outlier_does_not_count():
    here, there = [1.0, 1.0, 1.0, 99.0], [2.0, 2.0, 2.0, 2.0]
    for ranks, x in ((False, 1.0), (True, 1.0)):
        ground = Ground()
        compared(ground, here, there, ranks=ranks)
        np.testing.assert_array_equal(ground.point.x, x)
    ground = Ground()
    compared(ground, [3.0, 3.0, 3.0, -99.0], there, ranks=True)
    np.testing.assert_array_equal(ground.point.x, 0.0)


@pytest.mark.parametrize("room, rests", [(0, True), (20, True), (21, False), (500, False)])
def test_where_hardly_any_budget_is_left_it_waits(room, rests):
    """A 50th of the budget is too little to begin again."""
    asked = compared(Ground(room=room), *UP)
    assert (asked is not None) == rests
    if rests:
        np.testing.assert_array_equal(asked.standing.values, UP[1])
        np.testing.assert_array_equal(compared(Ground(room=0), *DOWN).standing.values, DOWN[0])


def test_without_a_budget_the_next_part_is_twice_as_long():
    ground = Ground(total=None, room=0)
    assert compared(ground, *DOWN) is None and ground.nominal == 128
    over = Ground(total=None, converged=True)
    assert compared(over, *UP) is None and over.nominal == 64
    np.testing.assert_array_equal(over.point.x, 0.0)
