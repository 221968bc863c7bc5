"""The length scale and how rough f is on one sample: what SCGD's strategies measure first."""

from dataclasses import replace

import numpy as np
import pytest

from scgd.problem import Problem
from scgd.strategies.common_random_numbers import roughness
from scgd.strategies.drive import drive
from scgd.strategies.length_scale import length_scale


def measured(fun, x0, seed=0):
    def strategy(problem, budget, rng):
        return (yield from length_scale(problem, problem.x0, rng, repeat=True))

    return drive(strategy, Problem.check(x0), fun, 1000, seed).found


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e3])
def test_the_length_of_a_quadratic_is_its_newton_step(unit):
    found = measured(lambda x: 5 + float(np.sum((x / unit - 1) ** 2)), np.zeros(1))
    assert found.length == pytest.approx(unit, rel=1e-3)
    assert found.repeats and found.value == 6.0 and found.rough == 0.0


def test_the_length_does_not_change_with_f():
    lengths = [
        measured(lambda x, c=c: c * float(np.sum((x - 1) ** 2)), np.zeros(4)).length
        for c in (1e-9, 1.0, 1e9)
    ]
    assert lengths == pytest.approx([lengths[0]] * 3)


def test_a_rough_function_asks_for_wide_steps():
    found = measured(lambda x: float(np.sum((x - 1) ** 2 + 0.1 * np.sin(1e7 * x))), np.full(3, 0.3))
    assert found.rough > 1e-6


def test_noise_that_is_independent_is_noticed():
    rng = np.random.default_rng(0)
    found = measured(lambda x: float(x @ x) + rng.standard_normal(), np.zeros(3))
    assert not found.repeats and found.length == 1.0


def ratio(fun, n_coords=5):
    """Drive the measurement with a sample per group of points."""
    problem = replace(Problem.check(np.zeros(n_coords), scale=1.0), sampled=True)

    class Plenty:
        total = left = 2000

    asking = roughness(problem, Plenty(), np.random.default_rng(0), 1e-4)
    sample, points = 0, next(asking)
    while True:
        values = np.array([[fun(x, sample + i) for x in X] for i, X in enumerate(points)])
        sample += len(points)
        try:
            points = asking.send(values)
        except StopIteration as end:
            return end.value


def test_common_samples_help_where_f_is_smooth_on_each():
    def shifted(x, seed):
        return float(np.sum((x - np.random.default_rng(seed).standard_normal(x.size)) ** 2))

    assert ratio(shifted) < 1


def test_common_samples_do_not_help_where_each_point_has_noise_of_its_own():
    def scrambled(x, seed):
        key = [seed, *np.abs(x * 1e9).astype(np.int64).tolist()]
        return float(np.sum((x - 1) ** 2)) + np.random.default_rng(key).standard_normal()

    assert ratio(scrambled) > 100
