"""One to fifteen evaluations: x0 is among them, the best point seen is returned, success is a lower value."""

import numpy as np
import pytest

import scgd
from scgd.history import Status

SIZES = (1, 2, 3, 5, 10)
BUDGETS = range(1, 16)
NAMED = [name for name, method in scgd.METHODS.items() if isinstance(method, scgd.SCGD)]
ITERATES = NAMED
"""What they return is an iterate: never worse than x0, but not always the best point seen."""
SEARCHES = [name for name in scgd.METHODS if name not in ITERATES]


def bowl(x, centre, shape):
    return float(np.sum((shape @ (x - centre)) ** 2))


def creases(x, centre, shape):
    return float(np.sum(np.abs(shape @ (x - centre))))


def stairs(x, centre, shape):
    return float(np.sum(np.floor(3 * np.abs(x - centre))))


def holes(x, centre, shape):
    """Not a number in a good part of space, but for x0 = 0."""
    return np.nan if (x - centre)[0] > 0.3 else bowl(x, centre, shape)


def flat(x, centre, shape):
    return 3.0


FUNCTIONS = (bowl, creases, stairs, holes, flat)


class Case:
    """A function, a start and bounds (for every other budget), with what was seen."""

    def __init__(self, fun, p, n):
        rng = np.random.default_rng([p, n, FUNCTIONS.index(fun)])
        self.x0 = rng.choice([0.0, 1.0]) * rng.standard_normal(p) * 10.0 ** rng.integers(-3, 4)
        self.centre = self.x0 + rng.standard_normal(p) * 10.0 ** rng.integers(-2, 3)
        self.centre[0] = self.x0[0] + abs(self.centre[0] - self.x0[0])  # holes: f(x0) is a number
        self.shape = rng.standard_normal((p, p))
        below, above = np.abs(rng.standard_normal((2, p))) * (rng.random((2, p)) < 0.8)
        self.bounds = list(zip(self.x0 - below, self.x0 + 0.1 + above, strict=True))
        self.bounds = self.bounds if n % 2 else None
        self.fun, self.points, self.values = fun, [], []

    def at(self, x):
        return self.fun(np.asarray(x), self.centre, self.shape)

    def __call__(self, x):
        self.points.append(np.array(x))
        self.values.append(self.at(x))
        return self.values[-1]

    def run(self, method, n):
        return scgd.minimize(
            self, self.x0, method=method, max_evals=n, bounds=self.bounds, seed=n,
            failures="skip")  # fmt: skip

    def inside(self, x):
        return self.bounds is None or all(
            low <= entry <= high for entry, (low, high) in zip(x, self.bounds, strict=True)
        )


def cases():
    return [(Case(fun, p, n), n) for fun in FUNCTIONS for p in SIZES for n in BUDGETS]


@pytest.mark.filterwarnings("ignore:nothing near x0 shows")
@pytest.mark.parametrize("method", [*SEARCHES, *ITERATES])
def test_no_method_returns_what_is_worse_than_x0(method):
    for case, n in cases():
        result = case.run(method, n)
        assert 1 <= result.nfev == len(case.points) <= n
        assert all(map(case.inside, [*case.points, result.x]))
        assert any(np.array_equal(x, case.x0) for x in case.points)
        assert result.success == (case.at(result.x) < case.at(case.x0)), (method, case.fun, n)
        assert not case.at(result.x) > case.at(case.x0)
        if case.fun is flat:
            np.testing.assert_array_equal(result.x, case.x0)
            assert "Nothing improved on x0" in result.message or n == 1


@pytest.mark.parametrize("method", SEARCHES)
def test_searches_return_the_best_point_seen_and_its_value(method):
    for case, n in cases():
        result = case.run(method, n)
        assert result.fun == case.at(result.x) == np.nanmin(case.values), (case.fun, n)
        assert not result.fun_error > 0.0


@pytest.mark.parametrize("method", list(scgd.METHODS))
def test_one_evaluation_is_that_of_x0(method):
    seen = []
    result = scgd.minimize(
        lambda x: seen.append(x.copy()) or float(x @ x), [3.0, 4.0], method=method, max_evals=1,
        seed=0,
    )  # fmt: skip
    np.testing.assert_array_equal([result.x, *seen], [[3.0, 4.0]] * 2)
    assert (result.fun, result.nfev, result.status) == (25.0, 1, Status.TOO_SMALL)
    assert not result.success and "does not pay for a single step" in result.message


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("bounds", [None, [(0, 3)], [(3, 9)]])
def test_two_or_three_evaluations_are_x0_and_points_beside_it(n, bounds):
    seen = []
    result = scgd.minimize(
        lambda x: seen.append(x[0]) or (x[0] - 1) ** 2, [3.0], max_evals=n, bounds=bounds, seed=1
    )
    assert seen[0] == 3.0 and seen[1] != 3.0 and len(seen) == n
    assert result.fun == min((x - 1) ** 2 for x in seen)


@pytest.mark.filterwarnings("ignore:nothing near x0 shows")
@pytest.mark.parametrize("n", range(1, 16))
@pytest.mark.parametrize("sample", [None, 20])
def test_under_noise_few_evaluations_return_what_is_known(n, sample):
    """Values at one point differ: what is returned is x0, or has been compared with it."""
    rng = np.random.default_rng(n)

    def fun(x, *rows):
        noise = rng.standard_normal() if sample is None else 0.1 * float(rows[0][0])
        return float(np.sum((x - 1) ** 2)) + noise

    result = scgd.minimize(fun, np.zeros(3), max_evals=n, sample=sample, seed=n)
    assert 1 <= result.nfev <= n and np.isfinite(result.fun)
    assert not (result.success and np.array_equal(result.x, np.zeros(3)))


def test_a_value_as_low_as_at_x0_is_no_success_with_more_evaluations_either():
    for n in (30, 99, 100, 400):
        for method in ("auto", "dds", "musketeer"):
            result = scgd.minimize(lambda x: 3.0, [0.1, 7.0], method=method, max_evals=n, seed=n)
            np.testing.assert_array_equal(result.x, [0.1, 7.0])
            assert not result.success and "Nothing improved on x0" in result.message


def test_a_saved_run_knows_what_f_was_at_x0(tmp_path):
    path = tmp_path / "run.npz"
    for n in (40, 80):
        result = scgd.minimize(lambda x: 3.0, [0.1, 7.0], max_evals=n, seed=0, checkpoint=path)
        np.testing.assert_array_equal(result.x, [0.1, 7.0])
        assert not result.success


# ---- derivatives ---------------------------------------------------------------------------------


def valley(x):
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def slopes(x, coords):
    out = np.zeros_like(x)
    out[:-1] = -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
    out[1:] += 200 * (x[1:] - x[:-1] ** 2)
    return out[coords]


@pytest.mark.parametrize("n, share", [(3, 0.95), (5, 0.25), (10, 0.1), (30, 0.01), (99, 0.005)])
@pytest.mark.parametrize("p", [2, 20, 100])
def test_few_derivatives_lead_down(p, n, share):
    """Steps of musketeer had left .3 to .9 of a valley of 20 after 99 to 5 evaluations."""
    x0 = np.tile([-1.2, 1.0], p)[:p]
    result = scgd.minimize(valley, x0, jac=slopes, max_evals=n, seed=0)
    assert result.success and result.fun == valley(result.x)
    assert valley(result.x) < (share if p > 2 else max(share, 0.2)) * valley(x0)


@pytest.mark.filterwarnings("ignore:jac is not the gradient")
@pytest.mark.parametrize("n", [3, 10, 30, 99])
def test_derivatives_that_lie_are_not_followed_blindly(n):
    """Where f does not fall nobody goes; slopes that promise too much are left to others."""
    rng = np.random.default_rng(n)
    result = scgd.minimize(
        lambda x: float(x @ x), np.ones(5), jac=lambda x, k: 2 * x[k] * 10 ** rng.random(len(k)),
        max_evals=n, seed=0,
    )  # fmt: skip
    assert result.fun == float(result.x @ result.x) <= 5.0
    assert n < 30 or result.success


@pytest.mark.parametrize("n", [10, 60])
def test_derivatives_under_noise_are_left_to_steps(n):
    rng = np.random.default_rng(n)
    result = scgd.minimize(
        lambda x: float(x @ x) + rng.standard_normal(), np.ones(5),
        jac=lambda x, k: 2 * x[k] + rng.standard_normal(len(k)), max_evals=n, seed=0,
    )  # fmt: skip
    assert "SCGD" in dict(result.members)
