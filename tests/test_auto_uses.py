"""What `auto` makes of partial derivatives, vectorized functions and compiled ones."""

import numpy as np
import pytest
from numba import njit

import scgd
from asking import Recorded
from noises import Uncontrollable

P = 20


def rosenbrock(x):
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


START = np.full(P, -1.3)


def slopes(x, coords):
    full = np.zeros(x.size)
    full[:-1] = -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
    full[1:] += 200 * (x[1:] - x[:-1] ** 2)
    return full[coords]


def test_partial_derivatives_are_used_in_quasi_newton_steps():
    n = {}
    for name, more in (("values", {}), ("partials", {"jac": slopes})):
        fun, target = Recorded(rosenbrock), 1e-10
        result = scgd.minimize(fun, START, target=target, max_evals=9000, seed=1, **more)
        assert result.fun <= target
        n[name] = result.nfev
    assert n["partials"] < 0.25 * n["values"] and dict(result.members)["bfgs"] > 10


@pytest.mark.parametrize("bound", [0.5, 0.9])
def test_partial_derivatives_and_bounds_go_together(bound):
    bounds = [(-2, bound)] * P
    plain, exact = (
        scgd.minimize(rosenbrock, START, bounds=bounds, max_evals=n, seed=1, **more)
        for n, more in ((4000, {}), (1000, {"jac": slopes}))
    )
    slope = slopes(exact.x, np.arange(P))
    slope[(exact.x == bound) & (slope < 0)] = 0.0
    assert np.abs(slope).max() < 1e-3
    assert exact.fun <= plain.fun * (1 + 1e-8)  # with a quarter of the evaluations
    assert exact.x.max() <= bound


def test_each_coordinate_has_its_own_unit_in_partial_derivatives():
    unit = 10.0 ** np.arange(-4, 4)

    def fun(x):
        return float(np.sum(np.cosh(x / unit - 1)))

    def jac(x, coords):
        return np.sinh(x[coords] / unit[coords] - 1) / unit[coords]

    result = scgd.minimize(fun, np.zeros(8), jac=jac, scale=unit, max_evals=400, seed=2)
    assert np.allclose(result.x / unit, 1, atol=1e-4)


def test_partial_derivatives_under_noise_take_the_steps_of_musketeer():
    result = scgd.minimize(
        Uncontrollable(), np.zeros(30), jac=lambda x, coords: 2 * x[coords], max_evals=400, seed=1
    )
    assert dict(result.members)["SCGD"] > 300 and "bfgs" not in dict(result.members)


def test_vectorized_functions_are_given_whole_gradients_and_generations():
    sizes = []

    def fun(points):
        sizes.append(len(points))
        return np.array([rosenbrock(x) for x in points])

    result = scgd.minimize(
        fun, START, max_evals=1500, seed=1, workers=scgd.Workers(vectorized=True)
    )
    assert sum(sizes) == result.nfev and max(sizes) >= P and len(sizes) < 0.4 * result.nfev
    plain = scgd.minimize(rosenbrock, START, max_evals=1500, seed=1)
    assert np.array_equal(plain.x, result.x)


@njit
def compiled(x):
    total = 0.0
    for k in range(x.size - 1):
        total += 100 * (x[k + 1] - x[k] ** 2) ** 2 + (1 - x[k]) ** 2
    return total


def test_compiled_functions_are_called_like_others_by_auto():
    result = scgd.minimize(compiled, START, max_evals=6000, seed=1)
    assert result.fun < 1e-10 and result.fun == compiled(result.x)
