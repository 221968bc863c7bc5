"""What the estimators say about gradients of functions whose gradients are known."""

import numpy as np
import pytest

from registry import CURVATURES, ESTIMATORS, MINIMUM, P, quadratic, quadratic_gradient
from scgd.estimators import FirstOrder, SphereSmoothing, random_signs
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


# ---- one probe at a time, against the formula ----------------------------------------------------


def probe_of(estimator, theta, radii, lower=NONE, upper=NONE, seed=0, coords=None):
    coords = np.arange(len(theta)) if coords is None else coords
    rng = np.random.default_rng(seed)
    return estimator.probe(Point(theta), coords, radii, lower, upper, rng)


@pytest.mark.parametrize("name", ["gaussian", "sphere"])
@pytest.mark.parametrize("seed", range(3))
def test_a_direction_is_spread_over_its_coordinates(name, seed):
    """g_k = c (f(theta + hU) - f(theta)) U_k / h_k, with U the direction really taken."""
    theta, radii = np.linspace(-2, 3, P), np.linspace(0.1, 0.5, P)
    estimator = ESTIMATORS[name]
    question = probe_of(estimator, theta, radii, seed=seed)
    here, there = question.points()
    u = np.random.default_rng(seed).standard_normal(P)
    factor = 1.0
    if name == "sphere":
        u, factor = u / np.sqrt(np.sum(u**2)), P
    np.testing.assert_array_equal(here, theta)
    np.testing.assert_allclose(there, theta + radii * u, rtol=1e-14)
    grads, seen = estimator.gradient(question, np.array([7.0, 10.0]))
    np.testing.assert_allclose(grads, factor * (10.0 - 7.0) * u / radii, rtol=1e-12)
    assert seen == 7.0


def test_directions_are_mirrored_at_the_bounds():
    """A coordinate that would leave goes the other way, and no farther than its bound."""
    lower, upper = np.full(P, -0.2), np.full(P, 0.3)
    lower[0] = -0.01
    theta, radii = np.full(P, 0.25), np.full(P, 0.1)
    theta[0], theta[1] = 0.0, -0.2
    question = probe_of(ESTIMATORS["gaussian"], theta, radii, lower, upper)
    moves = radii * np.random.default_rng(0).standard_normal(P)
    expected = theta + moves
    mirrored = (expected < lower) | (expected > upper)
    assert 0 < mirrored.sum() < P
    expected = np.where(mirrored, np.clip(theta - moves, lower, upper), expected)
    np.testing.assert_allclose(question.points()[1], expected, rtol=1e-13)


def spread_by_hand(x, radius, low, high):
    """The centre and half-width of a two-sided move near a bound, for one coordinate."""
    room = min(x - low, high - x)
    reach = radius if room >= radius else max(room, radius / 4)
    if high - low < 2 * reach:
        return (low + high) / 2, (high - low) / 2
    return min(max(x, low + reach), high - reach), reach


@pytest.mark.parametrize("x", [-1.0, -0.99, -0.93, -0.5, 0.0, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("low, high", [(-1.0, 1.0), (-1.0, np.inf), (-np.inf, 1.0)])
def test_two_sided_moves_shrink_and_shift_at_a_bound(x, low, high):
    theta, radii = np.full(P, x), np.linspace(0.02, 0.4, P)
    question = probe_of(ESTIMATORS["spsa"], theta, radii, np.full(P, low), np.full(P, high))
    first, second = question.points()
    for k in range(P):
        centre, reach = spread_by_hand(x, radii[k], low, high)
        assert sorted([first[k], second[k]]) == pytest.approx([centre - reach, centre + reach])
    assert 0 < np.sum(first > second) < P
    grads, seen = ESTIMATORS["spsa"].gradient(question, np.array([3.0, 5.0]))
    np.testing.assert_allclose(grads, (3.0 - 5.0) / (first - second), rtol=1e-13)
    assert seen == 4.0


def test_two_sided_moves_in_a_box_narrower_than_they_are():
    lower, upper = np.full(P, -0.01), np.full(P, 0.02)
    lower[3] = upper[3] = 0.0
    question = probe_of(ESTIMATORS["spsa"], np.zeros(P), np.full(P, 1.0), lower, upper)
    low, high = np.sort(question.points(), axis=0)
    np.testing.assert_array_equal(low, lower)
    np.testing.assert_array_equal(high, upper)
    grads, _ = ESTIMATORS["spsa"].gradient(question, np.array([3.0, 5.0]))
    assert grads[3] == 0.0 and np.all(np.abs(np.delete(grads, 3)) == pytest.approx(2 / 0.03))


@pytest.mark.parametrize("n", [1, 8, 9, 64, 65, 128, 129, 200])
def test_two_sided_moves_have_as_many_signs_as_coordinates(n):
    """The signs are the bits of the generator's words, eight to a byte, the high one first."""
    first, second = probe_of(ESTIMATORS["spsa"], np.zeros(n), np.ones(n), seed=5).points()
    words = np.random.default_rng(5).bit_generator.random_raw(-(-n // 64))
    signs = [2.0 * (words.view(np.uint8)[i // 8] >> (7 - i % 8) & 1) - 1.0 for i in range(n)]
    np.testing.assert_array_equal(first, signs)
    np.testing.assert_array_equal(second, -first)
    np.testing.assert_array_equal(random_signs(n, np.random.default_rng(5)), signs)
    direction = ESTIMATORS["spsa"].direction(n, np.random.default_rng(5))
    np.testing.assert_array_equal(direction, signs)


def by_hand(name, x, h, low, high):
    """The two entries that are compared at a coordinate."""
    if name == "central":
        return max(x - h, low), min(x + h, high)
    if x + h <= high:
        return x, x + h
    down = max(x - h, low)
    return (x, down) if x - down > high - x else (x, high)


@pytest.mark.parametrize("name", DIFFERENCES)
@pytest.mark.parametrize("x", [-1.0, -0.95, 0.0, 0.75, 0.9, 0.95, 1.0])
@pytest.mark.parametrize("low", [-1.0, -np.inf])
def test_differences_at_a_bound(name, x, low):
    """What is compared, and that the quotient divides by what was really moved, noise or not."""
    coords, radii = np.array([4, 1]), np.array([0.25, 2.5])
    question = probe_of(
        ESTIMATORS[name], np.full(P, x), radii, np.full(P, low), np.full(P, 1.0), coords=coords
    )
    points = question.points()
    values = np.array([2.0, 3.0, 5.0, 11.0])[: len(points)]
    grads, _ = ESTIMATORS[name].gradient(question, values)
    for i, k in enumerate(coords):
        down, up = by_hand(name, x, radii[i], low, 1.0)
        pair = (0, i + 1) if name == "forward" else (2 * i, 2 * i + 1)
        assert [points[j, k] for j in pair] == [down, up]
        assert grads[i] == pytest.approx((values[pair[1]] - values[pair[0]]) / (up - down))


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_pinned_coordinate_stands_still_whatever_noise_says(name):
    pinned = np.full(P, 0.5)
    question = probe_of(ESTIMATORS[name], pinned, np.ones(1), pinned, pinned, coords=np.array([2]))
    assert ESTIMATORS[name].gradient(question, np.array([1.0, 4.0]))[0].tolist() == [0.0]


def test_partial_derivatives_are_what_they_are():
    estimator, coords = FirstOrder(), np.array([5, 2, 2])
    question = probe_of(estimator, np.zeros(P), np.ones(3), coords=coords)
    assert question.kind == "partials" and len(question) == estimator.n_evals(3) == 1
    assert estimator.n_draws(3) == 3 and not estimator.distinct
    grads, seen = estimator.gradient(question, [[1.0, 2.0, 3.0]])
    assert grads.tolist() == [1.0, 2.0, 3.0] and np.isnan(seen)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_the_bounds_of_a_single_coordinate_are_kept(name):
    one = np.ones(1)
    question = probe_of(ESTIMATORS[name], one, one, -one, one, coords=np.array([0]))
    assert question.points().max() == 1.0 and len(question.entries) == len(question) == 2


def test_whether_the_sphere_is_unbiased_is_yes_or_no():
    with pytest.raises(TypeError, match="unbiased"):
        SphereSmoothing(unbiased="no")
