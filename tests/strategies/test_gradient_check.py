"""A gradient is compared with the function: a wrong one is refused, a right one never."""

import warnings

import numpy as np
import pytest

import scgd
from scgd.problem import Problem
from scgd.strategies.asks import Gradient
from scgd.strategies.budget import Budget
from scgd.strategies.gradient_check import check_gradient


def rosenbrock(x):
    return float(np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def slopes(x):
    g = np.zeros(x.size)
    g[1:] += 200.0 * (x[1:] - x[:-1] ** 2)
    g[:-1] += -400.0 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2.0 * (1 - x[:-1])
    return g


def check(fun, gradient, x, **more):
    """Check with a function; return the number of evaluations of it."""
    problem, n = Problem.check(x, **more), 0
    asking = check_gradient(problem, problem.x0, Budget(10**6, x.size))
    try:
        asked = next(asking)
        while True:
            if isinstance(asked, Gradient):
                asked = asking.send(gradient(asked.x)[asked.coords])
                continue
            n += np.prod(asked.shape[:-1])
            asked = asking.send(np.apply_along_axis(fun, -1, asked))
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
    "fun, gradient",
    [
        (lambda x: float(np.abs(x).sum()), np.sign),  # beside its kinks
        (lambda x: 1e16 + float(x @ x), lambda x: 2 * x),  # rounding hides it
        (lambda x: float("nan"), lambda x: 2 * x),
        (lambda x: 0.0, np.zeros_like),
        (lambda x: float(x @ x), lambda x: np.full(x.size, np.nan)),
    ],
)
def test_nothing_is_said_where_nothing_can_be_seen(fun, gradient):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(fun, gradient, np.array([0.3, -0.2]))


def test_points_lie_inside_the_bounds():
    def fun(x):
        assert np.all((x >= 0) & (x <= 1))
        return float(x @ x)

    assert check(fun, lambda x: 2 * x, np.ones(3), bounds=[(0, 1)]) == 2


def least_squares(n_rows=200, p=5, sign=1.0):
    """Return f and its gradient over rows; single rows disagree about the sign."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((n_rows, p))
    y = a @ np.ones(p) + 3 * rng.standard_normal(n_rows)

    def fun(x, rows):
        return float(np.mean((a[rows] @ x - y[rows]) ** 2))

    def jac(x, coords, rows):
        return sign * (2 * a[rows].T @ (a[rows] @ x - y[rows]) / len(rows))[coords]

    return fun, jac


@pytest.mark.parametrize("method", ["auto", "musketeer"])
@pytest.mark.parametrize("seed", range(10))
def test_samples_that_disagree_are_no_wrong_gradient(method, seed):
    fun, jac = least_squares()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scgd.minimize(
            fun, np.zeros(5), jac=jac, sample=scgd.Rows(200, 1), seed=seed, method=method,
            max_evals=1000,
        )  # fmt: skip


@pytest.mark.parametrize("method, batch", [("auto", 20), ("auto", 200), ("musketeer", 200)])
def test_a_wrong_sign_shows_through_samples(method, batch):
    fun, jac = least_squares(sign=-1.0)
    with pytest.raises(ValueError, match="jac has the wrong sign"):
        scgd.minimize(
            fun, 3 * np.ones(5), jac=jac, sample=scgd.Rows(200, batch), seed=0, method=method,
            max_evals=2000,
        )  # fmt: skip


@pytest.mark.parametrize("method", ["auto", "musketeer", "uniform"])
def test_a_wrong_sign_is_no_success(method):
    """SCGD that saw derivatives only had ended at 120 times f(x0), with success."""
    with pytest.raises(ValueError, match="jac has the wrong sign"):
        scgd.minimize(
            lambda x: float((x - 1) @ (x - 1)), np.zeros(4), jac=lambda x, k: -2 * (x - 1)[k],
            max_evals=200, seed=0, method=method,
        )  # fmt: skip
    noise = np.random.default_rng(0)
    result = scgd.minimize(
        lambda x: float((x - 1) @ (x - 1)) + 1e-3 * noise.standard_normal(), np.zeros(4),
        jac=lambda x, k: -2 * (x - 1)[k], max_evals=400, seed=0, method=method,
    )  # fmt: skip
    assert not result.success or (result.x - 1) @ (result.x - 1) < 4
