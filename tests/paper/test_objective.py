"""The recorded objective, computed in blocks, is the mean of the losses one by one."""

import numpy as np
import pytest

from scgd import blas
from scgd.linear.losses import LOGISTIC, SQUARED, value
from scgd_paper.linear import solver
from scgd_paper.linear.inputs import as_problem
from scgd_paper.linear.objective import log_losses, objective, quadratic
from scgd_paper.linear_extras import sampled_loss


def test_vector_logarithms_give_the_logistic_loss():
    margins = np.concatenate([np.linspace(-40, 40, 801), [-800.0, 800.0, 0.0]])[:, None]
    for label in (-1.0, 1.0):
        ours = log_losses(margins, np.full(len(margins), label))[:, 0]
        exact = [value(LOGISTIC, z, label, 0.0) for z in margins[:, 0]]
        np.testing.assert_allclose(ours, exact, rtol=1e-12, atol=3e-16)


@pytest.mark.parametrize("n_samples", [3, 700])
def test_gram_matrix_gives_the_squared_loss(n_samples):
    rng = np.random.default_rng(0)
    X, y, thetas = (
        rng.normal(size=(n_samples, 5)),
        rng.normal(size=n_samples),
        rng.normal(size=(4, 5)),
    )
    problem = as_problem(X, y, loss="squared", l2=0.0)
    direct = np.mean((thetas @ X.T - y) ** 2, axis=1) / 2
    np.testing.assert_allclose(quadratic(problem)(thetas), direct, rtol=1e-12)
    np.testing.assert_allclose(objective(problem, thetas), direct, rtol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("intercept", [0.0, 0.7])
def test_the_objective_at_zero_needs_no_products(loss, intercept):
    """Where all coefficients are zero the margins are the intercept, in any block of rows."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(700, 3)), np.sign(rng.normal(size=700))
    problem = as_problem(X, y, loss=loss, epsilon=1.0)
    theta = np.array([0.0, 0.0, 0.0, intercept])
    expected = np.mean([value(problem.loss, intercept, t, 1.0) for t in y])
    assert objective(problem, theta[None])[0] == pytest.approx(expected, rel=1e-12)
    nearly = theta + np.array([1e-9, 0.0, 0.0, 0.0])
    assert objective(problem, nearly[None])[0] == pytest.approx(expected, abs=1e-7)


def test_a_call_of_solve_does_not_look_for_libraries_again(monkeypatch):
    """Looking costs milliseconds, which every call of solve paid."""
    looks = []
    found = blas.ThreadpoolController

    def counting():
        looks.append(1)
        return found()

    monkeypatch.setattr(blas, "ThreadpoolController", counting)
    blas.libraries.cache_clear()
    X = np.eye(3)
    for _ in range(3):
        solver.solve(X, np.ones(3), learning_rate=0.1, n_passes=1, seed=0)
    assert len(looks) == 1


def test_the_loss_of_sampled_rows_is_their_mean_and_the_penalty():
    """Rows 0 and 2: residuals 1 and 3 - 1 = 2, so (0.5 + 2) / 2, and 3 / 2 times |theta|^2 = 5."""
    X, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([0.0, 9.0, 1.0])
    found = sampled_loss(np.array([1.0, 2.0]), np.array([0, 2]), X, y, SQUARED, 3.0)
    assert found == pytest.approx(1.25 + 7.5)
