"""The recorded objective, computed in blocks, is the mean of the losses one by one."""

import numpy as np
import pytest

from scgd.linear.inputs import as_problem
from scgd.linear.losses import LOGISTIC, value
from scgd.linear.objective import log_losses, objective, quadratic


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
