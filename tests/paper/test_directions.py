"""Steps of the paper's engine along random directions, and what it records."""

from dataclasses import replace

import numpy as np
import pytest

from scgd.estimators import SPSA, GaussianSmoothing, SphereSmoothing
from scgd.steps import STEPS
from scgd_paper.linear import solve
from scgd_paper.linear.inputs import as_problem
from scgd_paper.linear.solver import DEFAULT
from scgd_paper.linear.walks import Run, Timetable

KINDS = {"gaussian": GaussianSmoothing(), "sphere": SphereSmoothing(), "spsa": SPSA()}
RADIUS, RATE, L2 = 0.3, 0.01, 0.2


def loss(X, y, theta):
    """Return the penalised loss; a coefficient beyond the columns is the intercept."""
    w, free = np.split(theta, [X.shape[1]])
    return float(0.5 * np.mean((X @ w + free.sum() - y) ** 2) + 0.5 * L2 * w @ w)


def walk_along(kind, n_coords, n_steps, step="sgd", intercept=0):
    """Yield, step by step, the point before, the direction and the point after; one sample."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(1, n_coords - intercept)), rng.normal(size=1)
    method = replace(
        DEFAULT, policy="full", estimator=KINDS[kind], step=step, learning_rate=RATE, radius=RADIUS
    )
    run = Run(as_problem(X, y, loss="squared", l2=L2), method, 1, True, np.zeros(n_coords), 3)
    table = Timetable(method, n_coords, n_steps, run.block)
    for t in range(n_steps):
        before, after = run.walk.theta.copy(), np.empty((1, n_coords))
        run.advance(table, t, 1, 1, after)
        yield (lambda theta: loss(X, y, theta)), before, run.walk.margins.copy(), after[0]


@pytest.mark.parametrize("intercept", [0, 1])
@pytest.mark.parametrize("step", ["sgd", STEPS["momentum"](0.5)])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_along_directions_are_those_of_the_textbook(kind, step, intercept):
    velocity = 0.0
    for f, before, u, after in walk_along(kind, 6, 20, step, intercept):
        if kind == "spsa":
            slope = (f(before + RADIUS * u) - f(before - RADIUS * u)) / (2 * RADIUS)
        else:
            slope = (f(before + RADIUS * u) - f(before)) / RADIUS
        grad = slope * u * (6 if kind == "sphere" else 1)
        velocity = grad if step == "sgd" else 0.5 * velocity + grad
        np.testing.assert_allclose(after, before - RATE * velocity, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_directions_have_their_law(kind):
    n_coords = 40
    u = np.array([u for _, _, u, _ in walk_along(kind, n_coords, 500)])
    if kind == "spsa":
        assert set(np.unique(u)) == {-1.0, 1.0}
    elif kind == "sphere":
        np.testing.assert_allclose((u**2).sum(axis=1), 1.0, atol=1e-12)
        u *= np.sqrt(n_coords)
    fourth = {"gaussian": 3.0, "sphere": 3.0 * n_coords / (n_coords + 2), "spsa": 1.0}[kind]
    assert abs(u.mean()) < 4 / np.sqrt(u.size)
    assert np.mean(u**2) == pytest.approx(1, abs=0.05)
    assert np.mean(u**4) == pytest.approx(fourth, rel=0.08)
    assert abs(np.mean(u[:, 1:] * u[:, :-1])) < 4 / np.sqrt(u.size)


def test_another_loss_may_be_recorded():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), np.where(rng.random(30) < 0.5, -1.0, 1.0)
    parts = {"loss": "hinge", "n_passes": 3, "seed": 0, "record_loss": "logistic", "l2": L2}
    result = solve(X, y, learning_rate=0.1, **parts)
    start, end = result.history["loss"][[0, -1]]
    assert len(result.history["loss"]) == 4 and start == pytest.approx(np.log(2))
    margins = y * (X @ result.coef)
    penalty = 0.5 * L2 * result.coef @ result.coef
    assert end == pytest.approx(np.mean(np.log1p(np.exp(-margins))) + penalty)
