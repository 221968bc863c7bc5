"""The paper's conditions and bounds against direct computation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scgd import (
    Constant,
    InverseLog,
    InverseTime,
    Linear,
    SqrtOf,
)
from scgd.theory import Tail
from scgd_paper import theory


def quadratic(x):
    return float(x @ x)


@pytest.mark.parametrize(
    ("rate", "mixing", "radius", "expected"),
    [
        (InverseTime(), 0.5, SqrtOf(InverseTime()), (True, True, True, True)),
        (InverseTime(), InverseLog(), None, (True, True, True, False)),
        (InverseTime(power=0.5), 0.5, None, (False, False, True, True)),
        (InverseTime(power=1.5), 0.5, None, (False, False, True, True)),
        (InverseTime(power=0.8), InverseTime(power=0.3), None, (True, False, True, False)),
        (InverseTime(), 0.5, Constant(0.1), (True, True, False, True)),
        (InverseTime(), 0.0, None, (True, False, True, False)),
        (InverseTime(), Constant(0.0), None, (True, False, True, False)),
        (InverseTime(), InverseTime(0.0), None, (True, False, True, False)),
        (lambda t: 1 / t, Constant(0.0), None, (None, False, True, False)),
        (InverseTime(0.0), 0.5, None, (False, False, True, True)),
        (InverseTime(), Constant(0.5), None, (True, True, True, True)),
        (Constant(0.1), 0.5, 0.1, (False, False, True, True)),
        (lambda t: 1 / t, 0.5, None, (None, None, True, True)),
        (Linear(1.0), InverseLog(), None, (None, None, True, False)),
        (InverseLog(), 0.5, InverseLog(), (False, False, True, True)),
    ],
)
def test_conditions_one_by_one(rate, mixing, radius, expected):
    found = theory.check(rate, mixing, radius)
    assert (
        found.robbins_monro,
        found.extended_robbins_monro,
        found.radius,
        found.bounded_weights,
    ) == expected


@given(power=st.floats(0.05, 2.0), log_power=st.floats(0, 3))
def test_divergence_agrees_with_the_integral(power, log_power):
    # Integral test in s = log t: the integrand is exp((1 - a) s) s^-b, checked over decades of s.
    if abs(power - 1) < 0.02 or abs(log_power - 1) < 0.02:
        return
    s = np.geomspace(2.0, 1e4, 4001)
    log_density = (1 - power) * s - log_power * np.log(s)
    parts = np.exp(np.minimum(log_density, 600)) * np.gradient(s)
    growing = parts[-1000:].sum() > parts[-2000:-1000].sum()
    if power < 1 or power > 1:
        assert Tail(power, log_power).diverges == growing


@pytest.mark.parametrize("growth", [0.0, 1.0])
@pytest.mark.parametrize(("alpha", "gamma"), [(0.0, 0.1), (0.5, 0.3), (0.75, 1.5), (1.0, 3.0)])
def test_bound_covers_the_recursion_it_solves(alpha, gamma, growth):
    constants = theory.Constants(1.0, 1.0, growth, 0.3, bias=0.5)
    t = np.arange(1, 20_001)
    bound = theory.gap_bound(t, constants, gamma, alpha, beta=1.0, gap=2.0)
    solved = theory.gap_recursion(t[-1], constants, gamma, alpha, beta=1.0, gap=2.0)[1:]
    assert np.all(solved <= bound)
    rate = theory.gap_rate(alpha, speed=gamma)
    slope = np.log(solved[-1] / solved[1999]) / np.log(10)
    assert slope == pytest.approx(-rate, abs=0.05)
    if alpha:
        order = theory.gap_order(constants, gamma, 1.0, alpha)
        assert solved[-1] == pytest.approx(order * 20_000.0**-alpha, rel=0.08)


@given(
    alpha=st.sampled_from([0.0, 0.25, 0.5, 0.8, 1.0]),
    gamma=st.floats(0.01, 5),
    length=st.floats(0.1, 5),
    mu=st.floats(0.01, 1),
    noise=st.floats(0, 3),
    bias=st.floats(0, 2),
    gap=st.floats(0, 5),
)
def test_bound_without_growth_covers_the_recursion(alpha, gamma, length, mu, noise, bias, gap):
    constants = theory.Constants(length, mu * length, 0.0, noise, bias)
    t = np.arange(1, 301)
    bound = theory.gap_bound(t, constants, gamma, alpha, beta=0.5, gap=gap)
    solved = theory.gap_recursion(300, constants, gamma, alpha, beta=0.5, gap=gap)[1:]
    assert np.all(solved <= bound * (1 + 1e-12))


def test_recursion_covers_the_bias_of_differences():
    """Without noise, forward differences on |x|^2/2 stop at x = -h/2: a gap of p h^2 / 8."""
    gamma, p = 0.1, 2
    x = np.ones(p)
    for step in range(400):
        k = step % p
        x[k] -= gamma * (x[k] + np.sqrt(gamma) / 2)
    gap = quadratic_half(x)
    assert gap == pytest.approx(p * gamma / 8, rel=1e-6)
    biased = theory.Constants(1.0, 1.0, 0.0, 0.0, bias=theory.bias_constant(1.0, p))
    limit = theory.gap_recursion(4000, biased, gamma, 0.0, beta=1 / p, gap=1.0)[-1]
    assert limit == pytest.approx(gap, rel=1e-6)  # and it is tight; 2 mu beta would give half


def test_bound_is_that_of_the_theorem():
    """Theorem 4 as printed, for one alpha below 1 and for 1, with every constant different."""
    length, mu, growth, noise, c, gamma, beta, gap, t = 2.0, 0.5, 0.3, 0.7, 0.4, 0.6, 0.2, 1.5, 50.0
    constants = theory.Constants(length, mu, growth, noise, c)
    start = gap + (noise + 2 * c**2) / (2 * growth)
    rise = np.exp(2 * length * growth * gamma**2 * (t**0.4 - 1) / 0.4)
    below = 2 * rise * np.exp(-mu * beta * gamma / 4 * t**0.7) * start
    below += gamma * (noise * length + 2 * c**2) / (mu * beta) * t**-0.3
    speed = mu * beta * gamma
    last = 2 * np.exp(length * growth * gamma**2) * start * t**-speed
    power = speed / 2 - 1
    last += (noise * length / 2 + c**2) * gamma**2 * (t**power - 1) / power * t ** (-speed / 2)
    for alpha, expected in ((0.3, below), (1.0, last)):
        found = theory.gap_bound(np.array([t]), constants, gamma, alpha, beta, gap)
        assert found[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("alpha", [1.0, 0.75, 0.5])
def test_the_first_step_of_the_bound_without_growth(alpha):
    """At t = 1 nothing is forgotten: twice the start and half of what one step of noise adds."""
    length, noise, bias, gamma, gap = 3.0, 0.5, 0.2, 0.1, 2.0
    constants = theory.Constants(length, 1.0, 0.0, noise, bias)
    start = 2 * (gap + (noise * length / 2 + bias**2) * gamma**2)
    found = theory.gap_bound(1.0, constants, gamma=gamma, alpha=alpha, beta=0.5, gap=gap)
    if alpha == 1:  # and no less than what the last step adds
        last = (noise * length + bias**2) / 2 * gamma**2
        assert found == pytest.approx(start + last, rel=1e-12)
    else:  # exp(decay) at t = 1, and the noise that stays
        speed = 1.0 * 0.5 * gamma
        stay = gamma * (noise * length + 2 * bias**2) / 0.5
        assert found == pytest.approx(start * np.exp(-speed / 4) + stay, rel=1e-12)


def test_a_step_that_overshoots_leaves_its_own_noise():
    """Where nothing is left of the start: half of gamma_t^2 sigma^2 L, with gamma_t = 100 / 2."""
    noisy = theory.Constants(3.0, 1.0, 0.0, 0.7)
    found = theory.gap_bound(np.array([4.0]), noisy, 100.0, alpha=0.5, beta=1.0, gap=1.0)
    assert found[0] == pytest.approx(50.0**2 * 0.7 * 3.0 / 2, rel=1e-9)
    # a rate whose own speed is 1 / t exactly has no constant: log t / t falls more slowly
    assert theory.gap_order(theory.Constants(1.0, 1.0, 1.0, 0.1), gamma=0.5, beta=1.0) == np.inf


def test_bound_at_its_edges():
    calm = theory.Constants(1.0, 1.0, 1.0, 0.3)
    far = theory.gap_bound(np.array([1e3, 1e6]), calm, 0.1, alpha=0.0, beta=1.0, gap=2.0)
    assert far[1] == pytest.approx(0.1 * 0.3, rel=1e-9)  # no NaN: e^huge times e^-huger
    wild = theory.gap_bound(np.array([1e6]), calm, 1.0, alpha=0.0, beta=1.0, gap=2.0)
    assert wild[0] == np.inf
    still = theory.Constants(1.0, 1.0, 0.0, 0.0)
    assert theory.gap_bound(np.array([1e6]), still, 1.0, 0.0, 1.0, gap=2.0)[0] == 0
    for name, value in (
        ("alpha", 2.0),
        ("alpha", -0.1),
        ("gamma", 0.0),
        ("beta", 0.0),
        ("beta", 1.5),
    ):
        keywords = {"gamma": 1.0, "alpha": 1.0, "beta": 1.0, name: value}
        with pytest.raises(ValueError, match=rf"{name} must be .* got {value}"):
            theory.gap_bound(np.array([1.0]), calm, gap=1.0, **keywords)
        with pytest.raises(ValueError, match=rf"{name} must be .* got {value}"):
            theory.gap_recursion(3, calm, gap=1.0, **keywords)
    with pytest.raises(ValueError, match="t counts steps from 1, got 0"):
        theory.gap_bound(np.array([0, 1]), calm, 1.0, 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"alpha must be .* got 0"):
        theory.gap_order(calm, 1.0, 1.0, alpha=0.0)
    with pytest.raises(ValueError, match=r"alpha must be .* got 1.1"):
        theory.gap_rate(1.1, 1.0)


def test_rate_is_best_above_two():
    assert theory.gap_rate(1.0, 2.0) == 1.0
    assert theory.gap_rate(1.0, 1.0) == 0.5


def test_bias_constant_holds_in_sup_norm_and_fails_in_the_euclidean_one():
    p, h = 100, 0.1
    x = np.linspace(-1, 1, p)
    estimate = [(quadratic_half(x + h * e) - quadratic_half(x)) / h for e in np.eye(p)]
    bias = np.array(estimate) - x
    assert np.max(np.abs(bias)) <= theory.bias_constant(1.0, p) * h * (1 + 1e-9)
    assert theory.bias_constant(0.5, p) == 0.25  # L / 2, for any L
    euclidean = np.linalg.norm(bias)
    assert euclidean > theory.bias_constant(1.0, p) * h
    assert euclidean <= theory.bias_constant(1.0, p, norm="euclidean") * h * (1 + 1e-9)


@pytest.mark.parametrize("estimator", ["sphere", "gaussian"])
def test_smoothing_in_one_dimension_attains_its_sharp_constant(estimator):
    """f = x|x|/2 has L = 1 and gradient 0 at 0: the mean estimate is the bias."""
    h = 0.1
    if estimator == "sphere":
        directions, law = np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    else:
        directions = np.linspace(-9, 9, 20_001)
        law = np.exp(-(directions**2) / 2)
        law /= law.sum()
    steps = h * directions
    bias = float(np.sum(law * steps * np.abs(steps) / 2 / h * directions))
    assert bias == pytest.approx(h * theory.bias_constant(1.0, 1, estimator, sharp=True), rel=1e-5)
    assert bias <= h * theory.bias_constant(1.0, 1, estimator) * (1 + 1e-9)


def test_sphere_in_the_plane():
    """Mean of p/h (f(hU) - f(0)) U over the circle for f = max(x, 0)^2 / 2: h 4 / (3 pi) ... e_1."""
    h, angle = 0.1, np.linspace(0, 2 * np.pi, 4001)[:-1]
    values = np.maximum(h * np.cos(angle), 0) ** 2 / 2
    bias = np.hypot(*(np.mean(2 / h * values * u) for u in (np.cos(angle), np.sin(angle))))
    assert bias == pytest.approx(h * 2 / (3 * np.pi), rel=1e-6)
    sharp, stated = (theory.bias_constant(1.0, 2, "sphere", sharp=s) for s in (True, False))
    assert bias <= sharp * h <= stated * h
    assert (sharp, stated) == (pytest.approx(2 / 3), 1.0)


@pytest.mark.parametrize("estimator", ["sphere", "gaussian"])
@pytest.mark.parametrize("p", [1, 2, 7])
def test_constants_of_smoothing_are_moments_of_the_directions(estimator, p):
    draws = np.random.default_rng(p).standard_normal((200_000, p))
    if estimator == "sphere":
        x = np.sqrt(p) * draws / np.linalg.norm(draws, axis=1, keepdims=True)
        radius, ball = 1 / np.sqrt(p), np.random.default_rng(0).random(200_000) ** (1 / p)
        length = ball.mean()
    else:
        x, radius = draws, 1.0
        length = np.linalg.norm(draws, axis=1).mean()
    assert np.mean(x**2) == pytest.approx(1, abs=0.01)
    stated = np.sqrt(np.mean(np.sum(x**2, axis=1) ** 3)) / 2 * radius
    assert theory.bias_constant(3.0, p, estimator) == pytest.approx(3 * stated, rel=0.03)
    assert theory.bias_constant(3.0, p, estimator, sharp=True) == pytest.approx(
        3 * length, rel=0.01
    )


def test_reasons_name_what_is_wrong():
    """A constant rate with mixing .3: the squares diverge, the product's sum is infinite."""
    (reason,) = theory.check(0.1, 0.3).violated()
    assert "not Robbins-Monro" in reason
    (reason,) = theory.check(InverseTime(power=0.8), InverseTime(power=0.3)).violated()[:1]
    assert "must have an infinite sum" in reason
    assert len(theory.check(0.1, 0.0).violated()) == 2


@pytest.mark.parametrize(
    ("mixing", "importance", "expected"),
    [
        (InverseLog(), None, (True, False)),
        (InverseLog(), "inverse", (True, True)),
        (InverseLog(), "relative", (True, True)),
        (0.3, np.array([0.5, 2.0]), (True, True)),
        (InverseLog(), [0.5, 2.0], (True, False)),
        (0.3, InverseTime(power=0.5), (False, False)),
        (0.3, InverseLog(), (True, False)),
        (InverseLog(), InverseLog(), (False, False)),
        (0.3, Constant(2.0), (True, True)),
        (0.3, Constant(0.0), (False, False)),
        (0.0, "inverse", (True, True)),
        (0.3, lambda n: np.array([1.0, 1 / n]), (None, None)),
    ],
)
def test_importance_weights_that_change_with_the_phase(mixing, importance, expected):
    """The smallest weight is that of w_t d_t; log t squared is too slow a sum."""
    found = theory.check(InverseTime(), mixing, importance=importance)
    assert (found.extended_robbins_monro, found.bounded_weights) == expected


@pytest.mark.parametrize("importance", ["magic", [1.0, -1.0], [np.nan, 1.0]])
def test_bad_importance_is_named(importance):
    with pytest.raises(ValueError, match="importance"):
        theory.check(InverseTime(), importance=importance)


def average_gap_and_bounds(noise, n_steps=4000, n_runs=100, gamma=0.002):
    """Return the gap of the average iterate and its bounds, without and with the gradient's noise.

    Uniform sampling with importance weights on a quadratic, all runs at once.
    """
    curvatures, target = np.array([1.0, 0.25]), np.array([0.05, -0.05])
    rng, runs = np.random.default_rng(0), np.arange(n_runs)
    x, average, terms = np.zeros((n_runs, 2)), np.zeros((n_runs, 2)), np.zeros((2, n_steps))
    for t in range(n_steps):
        average += x / n_steps
        gradient = curvatures * (x - target)
        for row, variance in zip(terms, (0.0, noise**2), strict=True):
            row[t] = theory.regret_terms(gradient, np.full(2, 0.5), variance).mean()
        k = rng.integers(2, size=n_runs)
        x[runs, k] -= gamma * 2 * (gradient[runs, k] + noise * rng.normal(size=n_runs))
    gap = np.mean(np.sum(curvatures * (average - target) ** 2, axis=1)) / 2
    return gap, [theory.regret_bound(row, gamma, np.linalg.norm(target)) for row in terms]


def test_regret_bound_needs_the_noise_of_the_gradient():
    gap, (printed, right) = average_gap_and_bounds(noise=6.0)
    assert printed < gap < right


def test_the_regret_bound_is_the_formula():
    """One coordinate; then 9 / (2 * .5 * 2) + .5 / (2 * 2) * 6, every number different."""
    assert theory.regret_terms(np.array([3.0]), np.array([0.5])) == 18.0
    assert theory.regret_bound(np.array([2.0, 4.0]), gamma=0.5, distance=3.0) == 5.25


@pytest.mark.parametrize(
    ("gradients", "weights", "variance", "told"),
    [
        (3.0, 1.0, 0.0, "gradients must have coordinates"),
        ([], [], 0.0, "gradients must have coordinates"),
        ([1.0, np.nan], [0.5, 0.5], 0.0, "gradients must be finite"),
        ([1.0, 1.0], [0.5, np.inf], 0.0, "weights must be finite"),
        ([1.0, 1.0], [0.2, 0.3, 0.5], 0.0, "weights must have the shape of gradients"),
        ([1.0, 1.0], [1.0, 0.0], 0.0, "weights must be above zero"),
        ([1.0, 1.0], [0.5, 0.5], -1.0, "variance must not be negative"),
    ],
)
def test_bad_regret_terms_are_named(gradients, weights, variance, told):
    with pytest.raises(ValueError, match=told):
        theory.regret_terms(np.array(gradients), np.array(weights), variance)


@pytest.mark.parametrize(
    ("terms", "gamma", "told"),
    [
        ([], 0.1, "terms must hold at least one step"),
        ([[1.0, 2.0]], 0.1, "one per step"),
        ([1.0, np.nan], 0.1, "terms must be finite"),
        ([1.0], 0.0, "gamma must be above zero, got 0"),
    ],
)
def test_a_bad_regret_bound_is_named(terms, gamma, told):
    with pytest.raises(ValueError, match=told):
        theory.regret_bound(np.array(terms), gamma, 1.0)


def quadratic_half(x):
    return float(x @ x) / 2


@given(st.lists(st.floats(0.01, 10), min_size=2, max_size=8))
def test_regret_term_is_least_for_weights_like_the_gradient(values):
    gradient = np.array(values)
    p = len(gradient)
    best = theory.regret_terms(gradient, gradient / gradient.sum())
    assert best <= theory.regret_terms(gradient, np.full(p, 1 / p)) * (1 + 1e-12)
    assert best == pytest.approx(gradient.sum() ** 2)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"mixing must lie in \[0, 1\], got 1.5"):
        theory.check(0.1, mixing=1.5)
    with pytest.raises(ValueError, match=r"estimator must be .* got 'magic'"):
        theory.bias_constant(1.0, 3, "magic")
    with pytest.raises(ValueError, match=r"norm must be .* got 'l7'"):
        theory.bias_constant(1.0, 3, norm="l7")
