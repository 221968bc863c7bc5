"""Wrappers that re-evaluate: a value that does not come again, and votes."""

from __future__ import annotations

import numpy as np
import pytest

from scgd.problem import Problem
from scgd.strategies.drive import drive
from scgd.strategies.portfolio import portfolio
from scgd.strategies.verification import share_that_agrees, verified, voted


def sphere(x):
    return float(np.sum((x - 0.3) ** 2))


def checked(problem, budget, rng):
    return verified(portfolio(problem, budget, rng), budget, 50)


def counted(problem, budget, rng):
    return voted(portfolio, problem, budget, rng)


def test_an_exact_function_is_left_alone():
    done = drive(checked, Problem.check(np.ones(5)), sphere, 2000)
    assert done.found.converged
    assert done.fun < 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_rare_noise_is_noticed(seed):
    rng = np.random.default_rng(seed)

    def f(x):
        return sphere(x) - (rng.exponential() if rng.random() < 0.05 else 0.0)

    done = drive(checked, Problem.check(np.ones(5)), f, 2000, seed)
    assert done.found is None
    assert done.n_evals < 400


def test_failed_evaluations_are_no_difference():
    rng = np.random.default_rng(0)

    def f(x):
        return float("nan") if rng.random() < 0.2 else sphere(x)

    done = drive(checked, Problem.check(np.ones(5)), f, 3000)
    assert done.found is not None or done.n_evals == 3000


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("crash", [False, True])
def test_votes_find_the_minimum_among_outliers(seed, crash):
    rng = np.random.default_rng(seed)

    def f(x):
        off = -5.0 if crash else 10 * rng.standard_cauchy()
        return sphere(x) + 1 if rng.random() > 0.1 else off

    outliers: list[float] = [-5.0] if crash else []

    def strategy(problem, budget, rng):
        return voted(portfolio, problem, budget, rng, outliers)

    done = drive(strategy, Problem.check(np.ones(4)), f, 3000, seed)
    exact = [sphere(x) for x in done.points]
    assert min(exact) < 1e-6


def test_votes_give_up_where_nothing_agrees():
    rng = np.random.default_rng(0)
    done = drive(counted, Problem.check(np.ones(4)), lambda x: sphere(x) + rng.normal(), 3000)
    assert not done.found.agrees
    assert done.n_evals < 600


def test_votes_on_an_exact_function_cost_two_each():
    done = drive(counted, Problem.check(np.ones(4)), sphere, 3000)
    assert done.found.agrees
    assert done.found.found.converged
    assert done.fun < 1e-12


def test_share_that_agrees():
    assert share_that_agrees([]) == 0
    assert share_that_agrees([1.0, 1.0, 2.0, 3.0]) == 0.5
