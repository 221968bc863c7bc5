"""Schedules are functions of an index; these are their values."""

import numpy as np
import pytest

import scgd
from asking import steps_of
from scgd.schedules import as_schedule, values_at

T = np.arange(1, 6)


@pytest.mark.parametrize(
    "schedule, values",
    [
        (scgd.Constant(0.5), [0.5] * 5),
        (scgd.InverseTime(2.0, 1.0), [1, 2 / 3, 1 / 2, 2 / 5, 1 / 3]),
        (scgd.InverseTime(1.0, 0.0, 0.5), 1 / np.sqrt(T)),
        (scgd.InverseLog(3.0), 1 / np.log(T + 3)),
        (scgd.InverseLog(), 1 / np.log(T + 3)),
        (scgd.InverseTime(), 1 / T),
        (scgd.Linear(start=2, total=4), [1, 1, 0.5, 0, 0]),
        (scgd.Linear(3.0, power=2.0, start=3, total=4), [3, 3, 3, 0, 0]),
        (scgd.Linear(3.0, start=4, total=4), [3, 3, 3, 3, 0]),
        (scgd.InverseLog(0.0), np.minimum(1, 1 / np.maximum(np.log(T), 1e-300))),
        (scgd.Linear(10.0, total=5), [8, 6, 4, 2, 0]),
        (scgd.Linear(10.0, end=0.5, total=5), [8, 6, 5, 5, 5]),
        (scgd.SqrtOf(scgd.Constant(4.0)), [2.0] * 5),
    ],
)
def test_values(schedule, values):
    np.testing.assert_allclose(schedule(T), values)


def test_any_callable_works():
    rate = as_schedule(lambda t: 1 / t, "learning_rate")
    result = scgd.minimize(
        lambda x: float(x @ x),
        np.ones(3),
        max_evals=500,
        seed=0,
        method=scgd.SCGD(learning_rate=rate, radius=0.1),
    )
    assert result.fun < 0.1


def rates_of(opt):
    """Return the learning rates of the first chunk of steps."""
    steps_of(opt).prepare()
    return steps_of(opt).timetable.rates


def test_passes_count_completed_passes():
    """per='pass': gamma / (i // p + k0) for step i = 1, 2, ... as in the published experiments."""
    rate = scgd.InverseTime(1.0, 10.0, per="pass")
    opt = scgd.Optimizer(np.ones(4), scgd.SCGD(policy="uniform", learning_rate=rate, radius=0.1))
    rates = rates_of(opt)
    np.testing.assert_allclose(rates[:9], 1 / (np.arange(1, 10) // 4 + 10))
    assert rates[2] == 1 / 10 and rates[3] == 1 / 11


def test_linear_decay_spans_the_budget():
    method = scgd.SCGD("uniform", step="rms", learning_rate=scgd.Linear(0.3), radius=0.1)
    opt = scgd.Optimizer(np.ones(4), method, max_evals=2 * 512)
    np.testing.assert_allclose(rates_of(opt), 0.3 * (1 - np.arange(1, 513) / 512), atol=1e-15)


def test_a_schedule_that_misbehaves_is_named():
    with pytest.raises(ValueError, match=r"learning_rate must not be negative, got -1"):
        scgd.minimize(
            lambda x: 0.0,
            np.ones(3),
            method=scgd.SCGD(learning_rate=lambda t: -1.0 + 0 * t, radius=0.1),
        )


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, -np.inf, np.nan])
def test_a_constant_is_positive_and_finite(value):
    with pytest.raises(ValueError, match="radius must be positive and finite, got"):
        as_schedule(value, "radius")


def test_a_linear_fall_without_an_end_says_so():
    with pytest.raises(ValueError, match="Linear has no total; give total="):
        scgd.Linear()(T)


@pytest.mark.parametrize(
    "answer, word", [([1.0, 2.0], "one per index: got shape"), ([1, 2, np.inf], "finite")]
)
def test_values_that_do_not_fit_are_named(answer, word):
    with pytest.raises(ValueError, match=f"^rate must .*{word}"):
        values_at(lambda t: np.array(answer), np.arange(3), "rate")


@pytest.mark.parametrize(
    "make",
    [
        lambda: scgd.Constant(-1.0),
        lambda: scgd.InverseTime(-1.0),
        lambda: scgd.InverseTime(1.0, -1.0),
        lambda: scgd.InverseTime(1.0, 0.0, "1"),
        lambda: scgd.InverseLog(-1.0),
        lambda: scgd.Linear(-1.0),
        lambda: scgd.Linear(end=1.5),
        lambda: scgd.Linear(power=-1.0),
        lambda: scgd.Linear(start=-1),
        lambda: scgd.Linear(total=1.5),
        lambda: scgd.SqrtOf(-1.0),
    ],
)
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises((TypeError, ValueError), match="must"):
        make()


def test_a_number_under_a_root_is_constant():
    np.testing.assert_allclose(scgd.SqrtOf(0.25)(T), [0.5] * 5)
    assert scgd.SqrtOf(0.0)(T).tolist() == [0.0] * 5


def test_a_schedule_of_the_phase_is_an_importance_like_any_function():
    """Schedules count from 1, phases from 0; a constant weight of 1 is no weight."""

    def run(importance):
        method = scgd.SCGD(importance=importance, learning_rate=0.1, radius=1e-3)
        return scgd.minimize(
            lambda x: float(x @ x), np.ones(4), method=method, max_evals=200, seed=0
        )

    halving = scgd.schedules.InverseTime(1.0, power=0.5)
    by_hand = run(lambda phase: 1.0 / np.sqrt(phase + 1))
    assert np.array_equal(run(halving).x, by_hand.x)
    assert np.array_equal(run(scgd.schedules.Constant(1.0)).x, run(None).x)
