"""The paper's conditions and bounds against direct computation."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scgd import (
    Constant,
    InverseLog,
    InverseTime,
    Linear,
    Musketeer,
    Optimizer,
    SqrtOf,
    minimize,
    theory,
)


def quadratic(x):
    return float(x @ x)


@pytest.mark.parametrize(
    ("rate", "mixing", "radius", "expected"),
    [
        (InverseTime(), 0.5, SqrtOf(InverseTime()), (True, True, True, True)),
        (InverseTime(), InverseLog(), None, (True, True, True, False)),
        (InverseTime(power=0.5), 0.5, None, (False, False, True, True)),
        (InverseTime(power=1.5), 0.5, None, (False, False, True, True)),
        (InverseTime(power=0.8), InverseTime(power=0.3), None, (True, False, True, False)),
        (InverseTime(), 0.5, Constant(0.1), (True, True, False, True)),
        (InverseTime(), 0.0, None, (True, False, True, False)),
        (InverseTime(), Constant(0.0), None, (True, False, True, False)),
        (InverseTime(), InverseTime(0.0), None, (True, False, True, False)),
        (lambda t: 1 / t, Constant(0.0), None, (None, False, True, False)),
        (InverseTime(0.0), 0.5, None, (False, False, True, True)),
        (InverseTime(), Constant(0.5), None, (True, True, True, True)),
        (Constant(0.1), 0.5, 0.1, (False, False, True, True)),
        (lambda t: 1 / t, 0.5, None, (None, None, True, True)),
        (Linear(1.0), InverseLog(), None, (None, None, True, False)),
    ],
)
def test_conditions_one_by_one(rate, mixing, radius, expected):
    found = theory.check(rate, mixing, radius)
    assert (
        found.robbins_monro,
        found.extended_robbins_monro,
        found.radius,
        found.bounded_weights,
    ) == expected


@given(power=st.floats(0.05, 2.0), log_power=st.floats(0, 3))
def test_divergence_agrees_with_the_integral(power, log_power):
    # Integral test in s = log t: the integrand is exp((1 - a) s) s^-b, checked over decades of s.
    if abs(power - 1) < 0.02 or abs(log_power - 1) < 0.02:
        return
    s = np.geomspace(2.0, 1e4, 4001)
    log_density = (1 - power) * s - log_power * np.log(s)
    parts = np.exp(np.minimum(log_density, 600)) * np.gradient(s)
    growing = parts[-1000:].sum() > parts[-2000:-1000].sum()
    if power < 1 or power > 1:
        assert theory.Tail(power, log_power).diverges == growing


@pytest.mark.parametrize(("alpha", "gamma"), [(0.5, 0.3), (0.75, 0.5), (1.0, 3.0)])
def test_bound_covers_the_recursion_it_solves(alpha, gamma):
    constants = theory.Constants(1.0, 1.0, 1.0, 0.3, bias=0.5)
    t = np.arange(1, 20_001)
    bound = theory.gap_bound(t, constants, gamma, alpha, beta=1.0, gap=2.0)
    solved = theory.gap_recursion(t[-1], constants, gamma, alpha, beta=1.0, gap=2.0)[1:]
    assert np.all(solved <= bound)
    rate = theory.gap_rate(alpha, speed=gamma)
    slope = np.log(solved[-1] / solved[1999]) / np.log(10)
    assert slope == pytest.approx(-rate, abs=0.05)


def test_rate_is_best_above_two():
    assert theory.gap_rate(1.0, 2.0) == 1.0
    assert theory.gap_rate(1.0, 1.0) == 0.5


def test_bias_constant_holds_in_sup_norm_and_fails_in_the_euclidean_one():
    p, h = 100, 0.1
    x = np.linspace(-1, 1, p)
    estimate = [(quadratic_half(x + h * e) - quadratic_half(x)) / h for e in np.eye(p)]
    bias = np.array(estimate) - x
    assert np.max(np.abs(bias)) <= theory.bias_constant(1.0, p) * h * (1 + 1e-9)
    euclidean = np.linalg.norm(bias)
    assert euclidean > theory.bias_constant(1.0, p) * h
    assert euclidean <= theory.bias_constant(1.0, p, norm="euclidean") * h * (1 + 1e-9)


def quadratic_half(x):
    return float(x @ x) / 2


@given(st.lists(st.floats(0.01, 10), min_size=2, max_size=8))
def test_regret_term_is_least_for_weights_like_the_gradient(values):
    gradient = np.array(values)
    p = len(gradient)
    best = theory.regret_terms(gradient, gradient / gradient.sum())
    assert best <= theory.regret_terms(gradient, np.full(p, 1 / p)) * (1 + 1e-12)
    assert best == pytest.approx(gradient.sum() ** 2)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"learning_rate": Constant(0.01)}, ["Robbins-Monro"]),
        ({"learning_rate": InverseTime(), "radius": Constant(0.1)}, ["radius"]),
        (
            {"learning_rate": InverseTime(), "policy": Musketeer(mixing=InverseLog(5.0))},
            ["mixing must stay above"],
        ),
        (
            {"learning_rate": InverseTime(power=0.4), "radius": Constant(0.1)},
            ["Robbins-Monro", "radius"],
        ),
    ],
)
def test_minimize_warns_once_of_what_the_user_passed(keywords, words):
    with pytest.warns(theory.TheoryWarning) as caught:
        minimize(quadratic, np.ones(3), max_evals=50, seed=0, **keywords)
    assert len(caught) == 1
    for word in words:
        assert word in str(caught[0].message)
    assert caught[0].filename == __file__
    with pytest.warns(theory.TheoryWarning, match=words[0]) as caught:
        Optimizer(np.ones(3), max_evals=50, seed=0, **keywords)
    assert len(caught) == 1 and caught[0].filename == __file__


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"method": "uniform"},
        {"policy": Musketeer(gain="square")},
        {"learning_rate": 0.01, "radius": 0.1},
        {"learning_rate": lambda t: 0.01 + 0 * t},
        {"learning_rate": InverseTime(0.1), "radius": SqrtOf(InverseTime(0.1))},
        {"learning_rate": Constant(0.01), "step": "adam"},
        {"learning_rate": Linear(0.1)},
    ],
)
def test_minimize_is_silent_otherwise(keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        minimize(quadratic, np.ones(3), max_evals=50, seed=0, **keywords)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"estimator must be .* got 'magic'"):
        theory.bias_constant(1.0, 3, "magic")
    with pytest.raises(ValueError, match=r"norm must be .* got 'l7'"):
        theory.bias_constant(1.0, 3, norm="l7")
