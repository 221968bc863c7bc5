"""What ``solve`` refuses, and what it says."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer

from scgd_paper.linear import solve

X, Y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)


def test_divergence_is_an_error_that_names_the_remedy():
    with pytest.raises(FloatingPointError, match="learning_rate"):
        solve(X, Y, learning_rate=1e6, n_passes=2000)


BAD = [
    ({"loss": "absolute"}, "loss must be one of"),
    ({"l2": -1.0}, "l2 must be finite"),
    ({"batch_size": 0}, "batch_size must be"),
    ({"n_passes": 0}, "n_passes must be positive"),
    ({"loss": "logistic"}, "must be -1 or 1"),
    ({"loss": "hinge"}, "must be -1 or 1"),
    ({"path": "diagonals"}, "path must be one of"),
    ({"path": "rows", "batch_size": None}, "run by columns"),
    ({"estimator": "sphere", "path": "columns", "learning_rate": 1.0}, "path='columns'"),
    ({"estimator": "sphere"}, "give random directions one"),
    ({"learning_rate": "fast"}, "learning_rate must be 'auto'"),
    ({"l1": 0.1, "step": "adam", "learning_rate": 0.1}, "prox"),
    ({"sample_weight": np.zeros(len(X))}, "zero for all samples"),
    ({"sample_weight": [1.0]}, "finite numbers >= 0"),
    ({"start": [0.0]}, "start must be"),
    ({"policy": "gauss-southwell"}, "needs scgd.minimize"),
]


@pytest.mark.parametrize(("parts", "message"), BAD, ids=lambda part: str(part)[:40])
def test_bad_arguments_of_solve_are_named(parts, message):
    with pytest.raises(ValueError, match=message):
        solve(X, Y, **parts)


def test_plain_hinge_has_no_automatic_rate():
    with pytest.raises(ValueError, match="smooth loss"):
        solve(X, 2.0 * Y - 1, loss="hinge", batch_size=None)


PART, SIDES = X[:40, :4], 2.0 * Y[:40] - 1


@pytest.mark.parametrize("path", ["rows", "columns"])
def test_targets_of_the_other_sign_have_solutions_of_the_other_sign(path):
    parts = {"l1": 0.1, "batch_size": 4 if path == "rows" else None, "path": path, "n_passes": 9}
    one, other = (solve(PART, sides, **parts) for sides in (SIDES, -SIDES))
    assert np.any(one.coef)
    np.testing.assert_array_equal(one.coef, -other.coef)


def test_equal_weights_are_no_weights():
    matrix, parts = sparse.csc_array(PART), {"policy": "adaptive", "batch_size": None}
    plain, weighed = (
        solve(matrix, SIDES, n_passes=9, sample_weight=weight, **parts)
        for weight in (None, np.ones(40))
    )
    np.testing.assert_allclose(plain.coef, weighed.coef, rtol=1e-12)


def test_passes_count_coordinates():
    found = solve(PART, SIDES, block_size=2, policy="uniform", n_passes=6)
    assert found.history["pass"].tolist() == [0, 1, 2, 3, 4, 5, 6]
