"""What the estimators say about gradients of functions whose gradients are known."""

import numpy as np
import pytest

from registry import CURVATURES, ESTIMATORS, MINIMUM, P, quadratic, quadratic_gradient
from scgd.questions import Point

NONE = np.empty(0)
COORDS = np.array([0, 3, 3, 7])


def estimate(estimator, fun, theta, coords, radius, rng=None, lower=NONE, upper=NONE):
    radii, point = np.full(len(coords), radius), Point(theta)
    question = estimator.probe(point, coords, radii, lower, upper, rng)
    assert len(question) == estimator.n_evals(len(coords))
    values = np.array([fun(x) for x in question.points()])
    assert np.array_equal(point.x, theta) and np.array_equal(point.buffer, theta)
    return estimator.gradient(question, values), question


def test_central_differences_are_exact_on_quadratics():
    theta = np.linspace(-2, 3, P)
    (grads, seen), _ = estimate(ESTIMATORS["central"], quadratic, theta, COORDS, 0.7)
    np.testing.assert_allclose(grads, quadratic_gradient(theta, COORDS), rtol=1e-10)
    assert seen >= quadratic(theta)


@pytest.mark.parametrize("radius", [1.0, 0.1, 1e-3])
def test_forward_bias_is_at_most_half_l_h(radius):
    """Proposition 1 in the sup norm, reached by quadratics: bias L_k h / 2."""
    theta = np.linspace(-2, 3, P)
    (grads, seen), _ = estimate(ESTIMATORS["forward"], quadratic, theta, np.arange(P), radius)
    bias = grads - quadratic_gradient(theta, np.arange(P))
    np.testing.assert_allclose(bias, CURVATURES * radius / 2, rtol=1e-5, atol=1e-11)
    assert seen == quadratic(theta)


@pytest.mark.parametrize("name", ["gaussian", "sphere", "spsa"])
def test_directions_average_to_the_gradient(name):
    theta, coords, rng = np.zeros(P), np.arange(P), np.random.default_rng(0)
    radii = np.geomspace(1e-5, 1e-4, P)
    grads = []
    for _ in range(20_000):
        probes = ESTIMATORS[name].probe(Point(theta), coords, radii, NONE, NONE, rng)
        values = np.array([quadratic(x) for x in probes.points()])
        grads.append(ESTIMATORS[name].gradient(probes, values)[0])
    mean, error = np.mean(grads, axis=0), np.std(grads, axis=0) / np.sqrt(len(grads))
    assert np.all(np.abs(mean - quadratic_gradient(theta, coords)) < 5 * error + 1e-4)


def test_sphere_as_published_lacks_the_factor_p():
    from scgd import SphereSmoothing

    theta, coords = np.zeros(P), np.arange(P)
    (unbiased, _), _ = estimate(
        SphereSmoothing(), quadratic, theta, coords, 0.1, np.random.default_rng(3)
    )
    (published, _), _ = estimate(
        SphereSmoothing(unbiased=False), quadratic, theta, coords, 0.1, np.random.default_rng(3)
    )
    np.testing.assert_allclose(unbiased, P * published, rtol=1e-12)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("where", [-1.0, 1.0, 0.9, 0.0])
def test_probes_stay_inside_bounds(name, where):
    lower, upper, theta = np.full(P, -1.0), np.full(P, 1.0), np.full(P, where)
    _, probes = estimate(
        ESTIMATORS[name],
        quadratic,
        theta,
        np.arange(P),
        0.3,
        np.random.default_rng(0),
        lower,
        upper,
    )
    points = probes.points()
    assert points.min() >= -1.0 and points.max() <= 1.0


def test_pinned_coordinates_have_no_gradient():
    lower, upper = MINIMUM - 1.0, MINIMUM + 1.0
    lower[2] = upper[2] = 0.5
    theta = np.clip(np.zeros(P), lower, upper)
    for name in ("forward", "central"):
        (grads, _), _ = estimate(
            ESTIMATORS[name], quadratic, theta, np.array([2]), 0.1, None, lower, upper
        )
        assert grads[0] == 0.0


def test_subset_directions_move_the_subset_only():
    theta = np.zeros(P)
    _, probes = estimate(
        ESTIMATORS["spsa"], quadratic, theta, np.array([1, 5]), 0.1, np.random.default_rng(0)
    )
    moved = np.flatnonzero(np.any(probes.points() != theta, axis=0))
    assert moved.tolist() == [1, 5]


DIFFERENCES = {"forward": 1, "central": 2}


@pytest.mark.parametrize("name", DIFFERENCES)
@pytest.mark.parametrize("lost", range(8))
def test_a_lost_value_is_lost_at_its_own_coordinate_only(name, lost):
    """NaN stands where the value would have told something; the rest holds."""
    theta, coords = np.linspace(-2, 3, P), np.array([0, 3, 7, 9])
    radii, point = np.full(4, 0.1), Point(theta)
    question = ESTIMATORS[name].probe(point, coords, radii, NONE, NONE, None)
    values = np.array([quadratic(x) for x in question.points()])
    whole, _ = ESTIMATORS[name].gradient(question, values)
    if lost >= len(values):
        assert np.all(np.isfinite(whole))
        return
    values[lost] = np.nan
    grads, seen = ESTIMATORS[name].gradient(question, values)
    gone = [lost // 2] if name == "central" else [lost - 1] if lost else [0, 1, 2, 3]
    expected = whole.copy()
    expected[gone] = np.nan
    np.testing.assert_array_equal(grads, expected)
    assert np.isnan(seen) == (name == "forward" and lost == 0)


def test_the_value_seen_by_central_differences_is_that_of_whole_pairs():
    coords, point = np.array([0, 3]), Point(np.zeros(P))
    question = ESTIMATORS["central"].probe(point, coords, np.full(2, 0.1), NONE, NONE, None)
    assert ESTIMATORS["central"].gradient(question, np.array([1.0, 3.0, 5.0, 9.0]))[1] == 4.5
    assert ESTIMATORS["central"].gradient(question, np.array([1.0, 3.0, 5.0, np.nan]))[1] == 2.0
    assert np.isnan(ESTIMATORS["central"].gradient(question, np.full(4, np.nan))[1])
    far = np.array([1.0, 3.0, -1.7e308, 1.7e308])  # whole, but their difference overflows
    with np.errstate(over="ignore"):
        assert ESTIMATORS["central"].gradient(question, far)[1] == 2.0


@pytest.mark.parametrize("name", ["gaussian", "sphere", "spsa"])
def test_a_lost_value_of_a_direction_tells_nothing(name):
    question = ESTIMATORS[name].probe(
        Point(np.zeros(P)), np.arange(P), np.full(P, 0.1), NONE, NONE, np.random.default_rng(0)
    )
    grads, _ = ESTIMATORS[name].gradient(question, np.array([1.0, np.nan]))
    assert np.all(np.isnan(grads))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_a_step_counts_for_in_a_pass(name):
    """Coordinates where each has a difference of its own, one where all share a direction."""
    joint = name in ("gaussian", "sphere", "spsa")
    assert ESTIMATORS[name].n_draws(5) == (1 if joint else 5)
    assert ESTIMATORS[name].distinct == joint
