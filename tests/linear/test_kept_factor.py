"""Newton steps whose factor serves several times."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from scgd.linear import LOSSES, newton
from scgd.linear.task import Design, Task

RNG = np.random.default_rng(5)


def task(n=600, p=256, loss="logistic", l2=1e-3, tol=1e-9):
    X = RNG.normal(size=(n, p)) * np.arange(1.0, p + 1) ** -0.5
    y = np.where(X @ RNG.normal(size=p) > 0, 1.0, -1.0)
    parts = {"epsilon": 0.0, "l2": l2, "l1": 0.0, "intercept": False}
    return Task(
        Design(X), y, np.full(n, 1 / n), LOSSES.index(loss), **parts, tol=tol, max_passes=99, seed=0
    )


def test_corrections_are_the_updates_of_bfgs():
    """Nocedal and Wright, (6.17): H <- (I - s y'/s'y) H (I - y s'/s'y) + s s'/s'y, pair by pair."""
    descent = newton.Descent(task(n=30, p=6), None, 0.0)
    factor = RNG.normal(size=(6, 6))
    hessian = factor @ factor.T + np.eye(6)
    descent.factor = newton.factored(hessian.copy())
    H = np.linalg.inv(hessian)
    for k in range(4):
        s, y = RNG.normal(size=6), RNG.normal(size=6)
        y = y if (s @ y > 0) == (k != 2) else -y
        descent.pairs.append((s, y))
        if k != 2:  # a pair of the wrong sign says nothing
            left = np.eye(6) - np.outer(s, y) / (s @ y)
            H = left @ H @ left.T + np.outer(s, s) / (s @ y)
    gradient = RNG.normal(size=6)
    np.testing.assert_allclose(descent.corrected(gradient), H @ gradient, rtol=1e-9)


@pytest.mark.parametrize("p, kept", [(199, 0), (200, 3), (256, 4)])
def test_a_factor_serves_as_many_steps_as_it_costs_passes(p, kept, monkeypatch):
    problem, made = task(p=p), []
    factored = newton.factored
    monkeypatch.setattr(newton, "factored", lambda h: made.append(1) or factored(h))
    found = newton.newton(problem)
    assert found.converged and newton.Descent(problem, None, 0.0).kept == kept
    assert len(made) == -(-found.n_passes // (kept + 1))
    rival = LogisticRegression(C=1 / (600 * 1e-3), fit_intercept=False, tol=1e-10, max_iter=9999)
    np.testing.assert_allclose(found.w, rival.fit(problem.design.X, problem.y).coef_[0], atol=1e-4)


def test_other_losses_and_no_penalty_have_a_factor_for_every_step():
    for parts in ({"loss": "squared-hinge"}, {"loss": "huber"}, {"l2": 0.0}):
        assert newton.Descent(task(p=256, **parts), None, 0.0).kept == 0
