"""What a run returns at its end, whatever the method, the noise and the failures."""

import numpy as np
import pytest

from scgd import minimize


def least_squares(p, seed):
    """The squared residual of one sample, and the mean over all of them."""
    rng = np.random.default_rng([seed, p])
    features, truth = rng.standard_normal((1000, p)), rng.uniform(-1, 1, p)
    targets = features @ truth + 0.1 * rng.standard_normal(1000)
    fun = lambda x, rows: 0.5 * float(features[rows[0]] @ x - targets[rows[0]]) ** 2  # noqa: E731
    return fun, lambda x: 0.5 * float(np.mean((features @ x - targets) ** 2))


@pytest.mark.parametrize("seed", range(4))
def test_samples_that_vary_more_at_x0_than_at_the_end(seed):
    fun, mean = least_squares(6, seed)
    result = minimize(fun, np.zeros(6), sample=1000, max_evals=800, seed=seed)
    assert result.success and mean(result.x) < 0.2 * mean(np.zeros(6))
    assert abs(result.fun - mean(result.x)) < 4 * result.fun_error


def test_all_evaluations_on_samples_are_used():
    fun, _ = least_squares(20, 0)
    assert minimize(fun, np.zeros(20), sample=1000, max_evals=4000, seed=0).nfev > 3900


@pytest.mark.parametrize("p, n", [(6, 80), (20, 300)])
def test_few_evaluations_on_rough_samples_find_the_way(p, n):
    rng = np.random.default_rng(0)
    phases, turns = rng.uniform(0, 7, 100), rng.standard_normal((100, p))

    def fun(x, rows):
        wave = np.sin(phases[rows[0]] + 30 * float(turns[rows[0]] @ x))
        return float(np.sum((x - 0.5) ** 2)) + 0.01 * float(wave)

    ends = [minimize(fun, np.zeros(p), sample=100, max_evals=n, seed=s).x for s in range(4)]
    assert np.median([np.sum((x - 0.5) ** 2) for x in ends]) < 0.02 * p * 0.25


def measured_bowl(seed):
    """A cone over six inputs with errors of measurement, and without."""
    rng = np.random.default_rng(seed)
    best, weights = rng.uniform(-3, 3, 6), 10 ** rng.uniform(-1, 1, 6)
    value = lambda x: float(np.sqrt(weights @ (x - best) ** 2))  # noqa: E731
    return lambda x: value(x) + 0.3 * rng.standard_normal(), value


def test_few_noisy_measurements_within_bounds():
    ends = []
    for seed in range(4):
        fun, value = measured_bowl(seed)
        result = minimize(fun, np.zeros(6), bounds=[(-5, 5)] * 6, max_evals=80, seed=seed)
        ends.append(value(result.x) / value(np.zeros(6)))
    assert np.median(ends) < 0.2


@pytest.mark.parametrize("seed", range(4))
def test_a_noisy_run_of_scgd_ends_no_higher_than_it_began_or_says_so(seed):
    rng, truth = np.random.default_rng(seed), 0.6 * np.tile([1.0, -1.0], 3)
    value = lambda x: float(np.sum((x[::50] - truth) ** 2))  # noqa: E731
    fun = lambda x: value(x) + 0.5 * rng.standard_normal()  # noqa: E731
    bounds = [(-1, 1)] * 300
    result = minimize(
        fun, np.zeros(300), method="musketeer", bounds=bounds, max_evals=3000, seed=seed
    )
    assert value(result.x) <= value(np.zeros(300))
    assert result.success == (value(result.x) < value(np.zeros(300)))
    assert abs(result.fun - value(result.x)) < 4 * result.fun_error


@pytest.mark.parametrize("method", ["auto", "musketeer", "quadratic-model"])
def test_no_time_for_one_evaluation_is_no_success(method):
    result = minimize(lambda x: float(x @ x), np.ones(3), method=method, max_time=1e-9, seed=0)
    assert result.nfev == 0 and result.status == 2
    assert not result.success and "larger max_time" in result.message
