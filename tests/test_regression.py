"""The quadratic regression against a slow one written from the priors, coefficient by coefficient."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scgd.searches.regression import Quadratic, Regression, fit


def features(u):
    """Return what the model is linear in: constant, slopes, common, own and mixed curvatures."""
    return np.concatenate([[1.0], u, [u @ u], u**2, np.outer(u, u).ravel()])


def priors(sizes, n):
    """Return the prior variance of each coefficient, in units of the profiled variance."""
    slope, common, own, mixed = 10.0 ** np.asarray(sizes)[:4]
    level = 100 * max(1.0, slope, common, own, mixed)
    return np.concatenate(
        [[level], np.full(n, slope / n), [common / n**2], np.full(n, own / n),
         np.full(n * n, mixed / n**2)]
    )  # fmt: skip


def posterior(points, y, noise, sizes):
    """Return level, slope, bend and log likelihood from the normal equations in the primal."""
    n = points.shape[1]
    phi, variance = np.array([features(u) for u in points]), priors(sizes, n)
    weight = 1 / (10.0 ** sizes[4] * noise)
    precision = np.diag(1 / variance) + phi.T @ (weight[:, None] * phi)
    mean = np.linalg.solve(precision, phi.T @ (weight * y))
    covariance = phi @ np.diag(variance) @ phi.T + np.diag(1 / weight)
    scale = y @ np.linalg.solve(covariance, y) / len(y)
    likelihood = -0.5 * (len(y) * np.log(scale) + np.linalg.slogdet(covariance)[1])
    slope, common, own = mean[1 : 1 + n], mean[1 + n], mean[2 + n : 2 + 2 * n]
    mixed = mean[2 + 2 * n :].reshape(n, n)
    return mean[0], slope, 2 * common * np.eye(n) + 2 * np.diag(own) + mixed + mixed.T, likelihood


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), n=st.integers(1, 4))
def test_the_dual_form_is_the_primal_one(seed, n):
    rng = np.random.default_rng(seed)
    points, values = rng.standard_normal((9, n)), 50 + 7 * rng.standard_normal(9)
    sizes = np.append(rng.uniform(-2, 1, 4), rng.uniform(-2, 0))
    data = Regression(points, values)
    data.noise = rng.uniform(1, 5, 9)
    level, slope, bend, likelihood = posterior(points, data.y, data.noise, sizes)
    model = data.quadratic(sizes)
    assert data.likelihood(sizes)[0] == pytest.approx(likelihood, rel=1e-7)
    middle, spread = np.median(values), 1.4826 * np.median(np.abs(values - np.median(values)))
    np.testing.assert_allclose(data.y * spread + middle, values)
    np.testing.assert_allclose(model.level, middle + spread * level, rtol=1e-6)
    np.testing.assert_allclose(model.slope, spread * slope, rtol=1e-6, atol=1e-6 * spread)
    np.testing.assert_allclose(model.bend, spread * bend, rtol=1e-6, atol=1e-6 * spread)
    u = rng.standard_normal(n)
    assert model(u) == pytest.approx(model.level + model.slope @ u + u @ model.bend @ u / 2)


def test_a_climb_ends_where_no_step_helps():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((40, 3))
    data = Regression(
        points, points @ [1, 2, 3] + points[:, 0] ** 2 + 0.1 * rng.standard_normal(40)
    )
    start = np.array([0.0, 0.0, -2.0, -1.0, -1.0])
    best, sizes = data.climb(start, (1.0, 0.5))
    assert best == data.likelihood(sizes)[0] > data.likelihood(start)[0]
    for step in (0.5, -0.5):
        other = sizes.copy()
        other[2] += step  # the last one tried
        assert data.likelihood(other)[0] <= best + 0.05


def quadratic_values(rng, n, count, noise):
    turn = np.linalg.qr(rng.standard_normal((n, n)))[0]
    bend = turn.T @ np.diag(np.logspace(0, 1, n)) @ turn
    centre, points = rng.uniform(-0.5, 0.5, n), rng.standard_normal((count, n))
    values = [0.5 * (u - centre) @ bend @ (u - centre) for u in points]
    return points, np.array(values) + noise * rng.standard_normal(count), centre, bend


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_quadratic_is_found_through_noise_and_outliers(scale):
    rng = np.random.default_rng(1)
    points, values, centre, bend = quadratic_values(rng, 4, 120, 0.05)
    values[::15] += 1000 * rng.standard_normal(8)
    model = fit(points, scale * values, 0.05 * scale)
    np.testing.assert_allclose(model.minimiser(5.0), centre, atol=0.05)
    np.testing.assert_allclose(model.bend / scale, bend, atol=0.5)
    again = fit(points, scale * values, 0.05 * scale, model.sizes)
    np.testing.assert_allclose(again.minimiser(5.0), centre, atol=0.05)


def test_outliers_are_those_that_the_others_do_not_expect():
    rng = np.random.default_rng(2)
    points, values, _, _ = quadratic_values(rng, 2, 40, 0.01)
    data = Regression(points, values)
    sizes = data.climb(np.array([0.0, 0.0, -2.0, -1.0, -4.0]), (1.0,))[1]
    assert not data.find_outliers(sizes) or data.noise.max() < 50
    values[7] += 100
    data = Regression(points, values)
    assert data.find_outliers(np.array([0.0, 0.0, -2.0, -1.0, -4.0]))
    assert int(np.argmax(data.noise)) == 7 and data.noise[7] > 25


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**31), radius=st.floats(0.01, 10), scale=st.sampled_from([1e-8, 1.0, 1e8])
)
def test_the_minimiser_in_a_ball_meets_its_conditions(seed, radius, scale):
    """(H + m I) u = -g with m >= 0, H + m I >= 0, and m = 0 or u on the boundary."""
    rng = np.random.default_rng(seed)
    bend = rng.standard_normal((3, 3))
    model = Quadratic(0.0, scale * rng.standard_normal(3), scale * (bend + bend.T), np.zeros(5))
    u = model.minimiser(radius)
    length = np.linalg.norm(u)
    assert length <= radius * (1 + 1e-6)
    multiplier = -u @ (model.slope + model.bend @ u) / length**2
    assert multiplier >= -1e-6 * scale
    assert np.linalg.eigvalsh(model.bend)[0] + multiplier >= -1e-6 * scale
    np.testing.assert_allclose(
        model.bend @ u + multiplier * u, -model.slope, atol=1e-4 * scale * max(1, radius)
    )
    assert multiplier < 1e-5 * scale or length == pytest.approx(radius, rel=1e-5)
