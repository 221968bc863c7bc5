"""The ends of the scale: very many coordinates, very large and very small values, tiny budgets."""

import numpy as np
import pytest

import scgd
from registry import EVERY_METHOD

MANY = 10_000_000
LARGE = [
    "musketeer", "uniform", "random", "spsa", "sphere", "gaussian", "full", "auto",
]  # fmt: skip
"""Methods whose memory and time per step allow ten million coordinates."""


def corner(x):
    """A bowl in ten of all coordinates: what is measured is the method, not the function."""
    return float(np.sum((x[:10] - 1.0) ** 2))


@pytest.mark.faults
@pytest.mark.parametrize("method", LARGE)
def test_ten_million_coordinates(method):
    if method == "full":  # central differences of all coordinates: a direction instead
        method = scgd.SCGD("full", "spsa")
    result = scgd.minimize(corner, np.zeros(MANY), method=method, scale=1.0, max_evals=40, seed=0)
    assert result.x.shape == (MANY,) and 0 < result.nfev <= 40
    assert np.isfinite(result.fun) and np.all(np.isfinite(result.x))


STILL = ("musketeer", "uniform", "full", "sphere", "gaussian", "spsa")
"""Methods whose step rules keep squares of gradients: those vanish or overflow, and x stands still."""


@pytest.mark.parametrize("method", EVERY_METHOD)
@pytest.mark.parametrize("factor", [1e-300, 1e300], ids=["1e-300", "1e300"])
def test_values_at_the_ends_of_the_numbers(method, factor):
    """f times 1e-300 or 1e300 gets no method worse, and the others solve it as ever."""

    def fun(x):
        return factor * float(np.sum((x - 0.5) ** 2))

    start = np.zeros(5)
    result = scgd.minimize(fun, start, method=method, scale=1.0, max_evals=400, seed=0)
    assert np.all(np.isfinite(result.x)) and result.nfev <= 400
    assert fun(result.x) <= fun(start)
    if method not in STILL:
        assert fun(result.x) < 0.5 * fun(start)
    if np.array_equal(result.x, start):
        assert not result.success and "multiply f so that they are near 1" in result.message
    else:
        assert fun(result.x) < fun(start)


@pytest.mark.parametrize("max_evals", [400, 399])
def test_a_run_that_stood_still_says_so_whatever_is_left_of_its_budget(max_evals):
    """Values of a usual size: the remedy is another one, and stands there as well."""
    result = scgd.minimize(
        lambda x: 1.0, np.zeros(5), method="full", scale=1.0, max_evals=max_evals, seed=0
    )
    assert not result.success and "Nothing improved on x0; " in result.message


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_every_small_budget_is_kept(method):
    for budget in range(1, 51):
        calls = []

        def fun(x, calls=calls):
            calls.append(1)
            return float(np.sum((x - 0.5) ** 2))

        result = scgd.minimize(fun, np.zeros(3), method=method, scale=1.0, max_evals=budget, seed=0)
        assert len(calls) == result.nfev <= budget
        assert np.all(np.isfinite(result.x))
        assert np.isfinite(result.fun) or (result.status == 5 and not result.success)


def test_auto_does_not_advise_itself():
    result = scgd.minimize(lambda x: 1e304, np.ones(3), max_evals=200, seed=0)
    assert "they are near 1. " in result.message and "'auto'" not in result.message


def test_values_over_hundreds_of_decades():
    """Squares of differences of such values overflow; points that are asked stay finite."""

    def fun(x):
        assert np.all(np.isfinite(x))
        return float(np.exp(np.clip(50 * np.sum(x), -700, 700)))

    start = np.full(30, 0.3)
    result = scgd.minimize(fun, start, max_evals=700, seed=0)
    assert result.success and result.fun < fun(start)
