"""Is there noise, and whose? And over what length does f bend?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scgd.problem import Problem
from scgd.strategies.drive import drive
from scgd.strategies.length_scale import length_scale
from scgd.strategies.noise_test import classify_noise


def classify(problem, budget, rng):
    return classify_noise(problem, problem.x0, rng)


def length(problem, budget, rng):
    return length_scale(problem, problem.x0, rng, repeat=True)


def test_kinds():
    problem, rng = Problem.check(np.ones(3)), np.random.default_rng(0)

    def f(x):
        return float(x @ x)

    def noisy(x):
        return f(x) + rng.normal()

    assert drive(classify, problem, f, 30).found.kind == "deterministic"
    assert drive(classify, problem, noisy, 30).found.kind == "independent"
    sampled = replace(problem, sampled=True)
    assert drive(classify, sampled, f, 30).found.kind == "common random numbers"
    assert drive(classify, sampled, noisy, 30).found.kind == "independent"


@pytest.mark.parametrize("seed", range(5))
def test_failures_compare_nothing_and_are_asked_again(seed):
    rng = np.random.default_rng(seed)

    def f(x):
        return float("nan") if rng.random() < 0.5 else float(x @ x)

    found = drive(classify, Problem.check(np.ones(3)), f, 60, seed).found
    assert found.kind == "deterministic"
    assert found.n_compared > 0

    def noisy(x):
        return float("nan") if rng.random() < 0.5 else float(rng.normal())

    assert drive(classify, Problem.check(np.ones(3)), noisy, 60, seed).found.kind == "independent"


def test_nothing_compared_is_said():
    found = drive(classify, Problem.check(np.ones(3)), lambda x: float("nan"), 60).found
    assert found.n_compared == 0


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
def test_length_scale_follows_the_unit(unit):
    problem = Problem.check(np.full(1, 3.0 * unit), scale=unit)
    found = drive(length, problem, lambda x: 7 * float(x @ x) / unit**2, 99).found
    assert found.length == pytest.approx(3, rel=1e-3)
    assert found.rough == 0
    assert found.repeats


def test_a_jumping_function_is_rough():
    problem = Problem.check(np.full(4, 3.3), scale=1.0)

    def f(x):
        return float(np.sum(np.floor(100 * x) / 100) ** 2)

    rounds = (4, 4, 4, 4, 4, 4)

    def one(problem, budget, rng):
        return length_scale(problem, problem.x0, rng, rounds)

    assert drive(one, problem, f, 99).found.rough > 0


def test_a_noisy_function_has_no_length_scale():
    rng = np.random.default_rng(0)
    found = drive(length, Problem.check([1.0]), lambda x: float(rng.normal()), 99).found
    assert found.length == 1
    assert not found.repeats
