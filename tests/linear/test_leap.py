"""Steps on the products of columns: no sign changes, and no end before a Newton step."""

import numpy as np
import pytest

from scgd.linear.leap import bounded, settle

CORRELATED = np.full((6, 6), 0.999) + 0.001 * np.eye(6)


def model(gram, force, step):
    """The decrease of the model, its penalty linear while no sign changes."""
    return force @ step + 0.5 * step @ gram @ step


def test_a_step_without_a_change_of_sign_is_taken_whole():
    w, move = np.array([1.0, -2.0]), np.array([-0.9, 3.0e-1])
    np.testing.assert_array_equal(bounded(w, move, np.eye(2), -move, 0.1), w + move)


def test_all_that_would_change_their_sign_become_zero_where_that_is_better():
    """Along the identity the whole step minus its crossings is the minimum of the model."""
    w, move = np.array([1.0, -2.0, 0.5]), np.array([-3.0, 1.0, -0.75])
    found = bounded(w, move, np.eye(3), -move, 0.1)
    np.testing.assert_array_equal(found, [0.0, -1.0, 0.0])


def test_else_it_goes_to_the_first_crossing():
    """Here zeroing one coordinate and moving the other all the way would climb."""
    gram = np.array([[1.0, 0.99], [0.99, 1.0]])
    w = np.array([0.1, 1.0])
    move = np.array([-1.0, 1.02])
    force = -gram @ move
    found = bounded(w, move, gram, force, 0.1)
    np.testing.assert_allclose(found, w + 0.1 * move, atol=1e-15)
    assert found[0] == 0.0
    whole = np.array([0.0, 2.02]) - w
    assert model(gram, force, whole) > model(gram, force, found - w)


@pytest.mark.parametrize("seed", range(30))
def test_what_is_chosen_is_the_better_of_the_two_and_a_descent(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(5, 5))
    gram, w = root @ root.T + 0.1 * np.eye(5), rng.normal(size=5)
    force = rng.normal(size=5) * 3
    move = -np.linalg.solve(gram, force)
    found = bounded(w, move, gram, force, 0.1)
    assert np.all(found * w >= 0.0) and model(gram, force, found - w) < 0.0
    crossed = w * (w + move) < 0.0
    if crossed.any():
        cut = w + np.min(-w[crossed] / move[crossed]) * move
        zeroed = np.where(crossed, 0.0, w + move)
        least = min(model(gram, force, point - w) for point in (cut, zeroed))
        assert model(gram, force, found - w) == pytest.approx(least, rel=1e-9)


def test_slow_sweeps_do_not_end_it():
    """Sweeps along columns this alike gain less than enough long before the minimum."""
    target = np.array([3.0, -2.0, 1.0, 1.0, -1.0, 0.5])
    w, slope = np.full(6, 0.4), CORRELATED @ (np.full(6, 0.4) - target)
    settle(CORRELATED, slope, w, 0.0, 1e-3)
    np.testing.assert_allclose(w, target, atol=1e-6)
    np.testing.assert_allclose(slope, np.zeros(6), atol=1e-9)
