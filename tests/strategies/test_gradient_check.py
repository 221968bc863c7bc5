"""A gradient is compared with the function: a wrong one is refused, a right one never."""

import warnings

import numpy as np
import pytest

from scgd.problem import Problem
from scgd.strategies.gradient_check import check_gradient


def rosenbrock(x):
    return float(np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def slopes(x):
    g = np.zeros(x.size)
    g[1:] += 200.0 * (x[1:] - x[:-1] ** 2)
    g[:-1] += -400.0 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2.0 * (1 - x[:-1])
    return g


def check(fun, gradient, x, noise=0.0, **more):
    """Check with a function; return the number of evaluations."""
    problem, n = Problem.check(x, **more), 0
    asking = check_gradient(problem, problem.x0, np.arange(x.size), gradient(problem.x0), noise)
    try:
        points = next(asking)
        while True:
            n += len(points)
            points = asking.send(np.array([fun(point) for point in points]))
    except StopIteration:
        return n


@pytest.mark.parametrize("seed", range(20))
def test_a_right_gradient_costs_two_evaluations(seed):
    x = np.random.default_rng(seed).normal(size=7) * 10.0 ** (seed % 5 - 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check(rosenbrock, slopes, x) == 2


@pytest.mark.parametrize("factor", [1e-150, 1e-8, 1.0, 1e8, 1e150])
def test_a_wrong_sign_is_refused_in_any_unit(factor):
    x = np.array([3.0, -2.0, 5.0])
    with pytest.raises(ValueError, match=r"jac has the wrong sign: .* return the gradient of fun"):
        check(lambda z: factor * rosenbrock(z), lambda z: -factor * slopes(z), x)


@pytest.mark.parametrize("wrong", [lambda g: 3 * g, lambda g: g[::-1], lambda g: np.ones_like(g)])
def test_another_size_is_said(wrong):
    with pytest.warns(RuntimeWarning, match="jac is not the gradient of fun"):
        check(rosenbrock, lambda z: wrong(slopes(z)), np.array([3.0, -2.0, 5.0]))


@pytest.mark.parametrize(
    "fun, gradient, noise",
    [
        (lambda x: float(np.abs(x).sum()), np.sign, 0.0),  # beside its kinks
        (lambda x: 1e16 + float(x @ x), lambda x: 2 * x, 0.0),  # rounding hides it
        (lambda x: float("nan"), lambda x: 2 * x, 0.0),
        (lambda x: 0.0, np.zeros_like, 0.0),
        (lambda x: float(x @ x) + np.sin(1e9 * x[0]), lambda x: 2 * x, 1.0),
        (lambda x: float(x @ x), lambda x: np.full(x.size, np.nan), 0.0),
    ],
)
def test_nothing_is_said_where_nothing_can_be_seen(fun, gradient, noise):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(fun, gradient, np.array([0.3, -0.2]), noise)


def test_points_lie_inside_the_bounds():
    def fun(x):
        assert np.all((x >= 0) & (x <= 1))
        return float(x @ x)

    assert check(fun, lambda x: 2 * x, np.ones(3), bounds=[(0, 1)]) == 2
