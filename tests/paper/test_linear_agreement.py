"""Independent paths take the same steps on the same draws."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import scgd
from scgd import FixedWeights, InverseTime, Musketeer
from scgd.linear import LOSSES
from scgd.policies import base as distributions
from scgd.random import below
from scgd.steps import STEPS
from scgd_paper.linear import solve
from scgd_paper.linear.inputs import as_problem
from scgd_paper.linear.solver import DEFAULT
from scgd_paper.linear.walks import Run, Timetable

TOLERANCE = {"rtol": 0, "atol": 1e-12}
ESTIMATORS = ("forward", "central", "first-order")


def data(loss, n_samples=40, n_coords=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_coords)) * (rng.random((n_samples, n_coords)) < 0.5)
    margins = X @ rng.normal(size=n_coords) + 0.3 * rng.normal(size=n_samples)
    if loss in ("squared", "huber"):
        return X, margins
    return X, np.where(margins > 0, 1.0, -1.0) if loss != "cross-entropy" else (margins > 0) * 0.9


def by_values(loss, z, y):
    """Return the loss as a textbook writes it."""
    short = np.maximum(0, 1 - y * z)
    r = np.abs(z - y)
    return {
        "squared": 0.5 * r**2,
        "logistic": np.log1p(np.exp(-y * z)),
        "cross-entropy": np.log1p(np.exp(z)) - y * z,
        "hinge": short,
        "squared-hinge": short**2,
        "huber": np.where(r <= 1.35, 0.5 * r**2, 1.35 * (r - 0.5 * 1.35)),
    }[loss]


def reference(X, y, loss, policy, estimator, *, l2, rate, h, n_steps, seed, importance=None):
    """Run the algorithm in plain Python: the policy's own functions, values of f, one step each."""
    n_samples, n_coords = X.shape
    run = Run(as_problem(X, y, loss=loss), replace(DEFAULT, policy=policy), 1, True,
              np.zeros(n_coords), seed)  # fmt: skip
    theta, walk = np.zeros(n_coords), run.walk
    length = policy.phase_length(n_coords)

    def f(point, i):
        return by_values(loss, X[i] @ point, y[i]) + 0.5 * l2 * point @ point

    for phase in range(n_steps // length):
        coords, probs = np.empty(length, np.int64), np.empty(length)
        policy.draw(run.state, walk.coord_stream, coords, probs, 1, True)
        rows = [below(walk.row_stream, n_samples) for _ in range(length)]
        grads = np.empty(length)
        for t, (k, i) in enumerate(zip(coords, rows, strict=True)):
            unit = np.eye(n_coords)[k]
            if estimator == "forward":
                grads[t] = (f(theta + h * unit, i) - f(theta, i)) / h
            else:
                grads[t] = (f(theta + h * unit, i) - f(theta - h * unit, i)) / (2 * h)
            factor = 1.0 if importance is None else 1 / (n_coords * probs[t])
            theta[k] -= rate * factor * grads[t]
        mixing = 0.0 if policy.mixing is None else float(policy.mixing(np.array([phase + 1]))[0])
        policy.update(run.state, coords, probs, grads, mixing)
    return theta


@pytest.mark.parametrize("estimator", ["forward", "central"])
@pytest.mark.parametrize("importance", [None, "relative"])
@pytest.mark.parametrize("path", ["rows", "columns"])
@pytest.mark.parametrize("loss", LOSSES)
def test_compiled_steps_are_those_of_the_textbook(loss, path, importance, estimator):
    X, y = data(loss)
    policy = Musketeer(gain="absolute", length=4)
    parts = {"l2": 0.1, "seed": 3, "importance": importance}
    slow = reference(X, y, loss, policy, estimator, rate=0.05, h=0.5, n_steps=240, **parts)
    fast = solve(
        X, y, loss=loss, policy=policy, estimator=estimator, learning_rate=0.05, radius=0.5,
        n_passes=20, path=path, **parts,
    )  # fmt: skip
    np.testing.assert_allclose(fast.coef, slow, **TOLERANCE)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("weights", [None, np.arange(1.0, 41.0)])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_step_of_all_samples_is_that_of_the_textbook(loss, weights, estimator):
    X, y = data(loss)
    share = np.ones(40) / 40 if weights is None else weights / weights.sum()
    values, h = (lambda w: float(share @ by_values(loss, X @ w, y))), 0.1
    for matrix in (X, sparse.csc_array(X)):
        step = solve(matrix, y, loss=loss, sample_weight=weights, estimator=estimator, radius=h,
                     learning_rate=1.0, batch_size=None, n_passes=1 / 12, seed=2).coef  # fmt: skip
        (k,) = np.flatnonzero(step)
        unit = np.eye(12)[k] * (h if estimator != "first-order" else 1e-6)
        low = 0.0 if estimator == "forward" else 1.0
        slope = (values(unit) - values(-low * unit)) / ((1 + low) * unit[k])
        assert step[k] == pytest.approx(-slope, abs=1e-12 if estimator != "first-order" else 1e-8)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("batch", [1, 3])
def test_dense_and_sparse_rows_and_columns_agree(loss, estimator, batch):
    X, y = data(loss)
    matrices = {"dense": X, "csr": sparse.csr_array(X), "csc": sparse.csc_matrix(X)}
    results = [
        solve(
            matrix, y, loss=loss, l2=0.01, l1=0.02, fit_intercept=True, estimator=estimator,
            sample_weight=np.arange(1.0, 41.0), learning_rate=InverseTime(0.3, 3.0, per="pass"),
            radius=0.1, batch_size=batch, n_passes=30, path=path, seed=5,
        )
        for matrix, path in itertools.product(matrices.values(), ("rows", "columns"))
    ]  # fmt: skip
    for other in results[1:]:
        np.testing.assert_allclose(other.coef, results[0].coef, **TOLERANCE)
        np.testing.assert_allclose(other.intercept, results[0].intercept, **TOLERANCE)
        np.testing.assert_allclose(other.weights, results[0].weights, rtol=1e-9)
        np.testing.assert_allclose(other.history["loss"], results[0].history["loss"], **TOLERANCE)


@pytest.mark.parametrize("path", ["rows", "columns"])
@pytest.mark.parametrize("step", STEPS)
def test_fused_and_phased_loops_agree(path, step):
    X, y = data("logistic")
    table = {"loss": "logistic", "l2": 0.01}
    problem = as_problem(X, y, **table)
    if path == "columns":
        problem = problem._replace(columns=as_problem(X.T, X[0], loss="squared").rows)
    method = replace(DEFAULT, policy=Musketeer(gain="average", length=5), step=step,
                             learning_rate=0.05, block_size=2)  # fmt: skip
    thetas = []
    for fused in (True, False):
        run = Run(problem, method, 2, True, np.zeros(12), 1)
        run.fused = fused
        for first in range(0, 60, 20):
            times = Timetable(method, 12, 60, 2)
            run.advance(times, first, 20, 20, np.empty((0, 12)))
        thetas.append(run.walk.theta)
    np.testing.assert_allclose(thetas[0], thetas[1], **TOLERANCE)


def test_cutting_a_run_does_not_change_a_bit():
    X, y = data("squared")
    parts = {"policy": Musketeer(), "learning_rate": 0.05, "n_passes": 12, "seed": 2}
    whole = solve(X, y, record_every=None, **parts)
    for every in (1, 5, 0.25):
        np.testing.assert_array_equal(solve(X, y, record_every=every, **parts).coef, whole.coef)


def test_runs_in_parallel_are_runs_alone():
    X, y = data("logistic")
    parts = {"loss": "logistic", "estimator": "forward", "learning_rate": 0.1, "n_passes": 9}
    together = solve(X, y, seed=[4, 7, 9], n_jobs=3, **parts)
    for row, seed in enumerate([4, 7, 9]):
        alone = solve(X, y, seed=seed, **parts)
        np.testing.assert_array_equal(together.coef[row], alone.coef)
        np.testing.assert_array_equal(together.weights[row], alone.weights)
        np.testing.assert_array_equal(together.history["loss"][row], alone.history["loss"])


def test_float32_rows_give_the_float64_run_of_the_same_numbers():
    X, y = data("squared")
    single = X.astype(np.float32)
    parts = {"learning_rate": 0.05, "n_passes": 10}
    for path in ("rows", "columns"):
        narrow = solve(single, y, path=path, **parts).coef
        wide = solve(single.astype(np.float64), y, path=path, **parts).coef
        np.testing.assert_allclose(narrow, wide, **TOLERANCE)


def test_margins_kept_by_increments_do_not_drift():
    X, y = data("squared")
    result = solve(X, y, batch_size=None, n_passes=5000, record_every=None, l2=0.01)
    gradient = X.T @ (X @ result.coef - y) / len(y) + 0.01 * result.coef
    assert np.abs(gradient).max() < 1e-13


@pytest.mark.parametrize("policy", ["full", "uniform", FixedWeights(np.arange(1.0, 13.0))])
def test_every_policy_reaches_the_minimum_with_full_batches(policy):
    X, y = data("squared")
    result = solve(X, y, policy=policy, batch_size=None, n_passes=1500, l2=0.05)
    expected = np.linalg.solve(X.T @ X / 40 + 0.05 * np.eye(12), X.T @ y / 40)
    np.testing.assert_allclose(result.coef, expected, atol=1e-9)


def test_weights_are_those_of_the_law():
    X, y = data("squared")
    result = solve(X, y, policy="uniform", n_passes=1)
    expected = np.empty(12)
    distributions.weights(scgd.Uniform().init(12), expected)
    np.testing.assert_array_equal(result.weights, expected)
