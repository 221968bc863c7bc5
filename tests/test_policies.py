"""The contract of every policy, and what the paper says about them."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import scgd
from registry import CURVATURES, GREEDY, MINIMUM, POLICIES, P
from scgd.random import stream
from scgd.sampler import CoordinateSampler


def make(policy, seed=0, p=P, **keywords):
    return CoordinateSampler(policy, p, stream(np.random.SeedSequence(seed)), **keywords)


def learn(sampler, n_phases, slopes=None):
    """Show the sampler noisy gradients with given mean slopes."""
    slopes = np.linspace(0.2, 2.0, sampler.n_coords) if slopes is None else slopes
    noise = np.random.default_rng(0)
    for _ in range(n_phases):
        sampler.grads[:] = slopes[sampler.coords] * (
            1 + 0.1 * noise.standard_normal(sampler.n_draws)
        )
        sampler.advance(sampler.n_draws)


def fits(counts, expected):
    keep = expected > 0
    assert np.all(counts[~keep] == 0)
    p_value = stats.chisquare(
        counts[keep], expected[keep] * counts.sum() / expected[keep].sum()
    ).pvalue
    assert p_value > 1e-4


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("n_phases", [0, 3000])
def test_draws_fit_the_weights(name, n_phases):
    sampler = make(POLICIES[name])
    learn(sampler, n_phases)
    weights = sampler.weights()
    assert np.isclose(weights.sum(), 1.0, rtol=1e-12)
    coords, probs = np.zeros(100_000, np.int64), np.zeros(100_000)
    sampler.policy.draw(sampler.state, sampler.stream, coords, probs, 1, True)
    fits(np.bincount(coords, minlength=P), weights)
    np.testing.assert_allclose(probs, weights[coords], rtol=1e-10)


@pytest.mark.parametrize("name", POLICIES)
def test_distinct_blocks_have_the_stated_inclusion(name):
    sampler = make(POLICIES[name], block_size=4, replace=False)
    learn(sampler, 300)
    included, stated = np.zeros(P), np.zeros(P)
    n_blocks = 20_000
    coords, probs = np.zeros(4, np.int64), np.zeros(4)
    for _ in range(n_blocks):
        sampler.policy.draw(sampler.state, sampler.stream, coords, probs, 4, False)
        assert len(set(coords.tolist())) == 4
        included[coords] += 1
        stated[coords] = 4 * probs
    error = np.sqrt(np.maximum(stated * (1 - stated), 1e-12) / n_blocks)
    assert np.all(np.abs(included / n_blocks - stated) < 5 * error + 1e-9)
    assert np.isclose(stated.sum(), 4.0)


@pytest.mark.parametrize("name", GREEDY)
def test_greedy_policies_choose_from_the_gradient(name):
    policy, gradient = GREEDY[name], np.linspace(-1.0, 2.0, P)
    weights = policy.weights_for(gradient)
    coords, probs = np.zeros(20_000, np.int64), np.zeros(20_000)
    if name == "gauss-southwell":
        assert np.flatnonzero(weights).tolist() == [P - 1]
        assert np.flatnonzero(policy.weights_for(gradient, 2)).tolist() == [P - 2, P - 1]
    else:
        np.testing.assert_allclose(weights, gradient**2 / np.sum(gradient**2))
        policy.choose(gradient, stream(np.random.SeedSequence(0)), coords, probs, True)
        fits(np.bincount(coords, minlength=P), weights)


@pytest.mark.parametrize("policy", [*POLICIES.values(), *GREEDY.values(), scgd.Full()])
def test_policies_are_values(policy):
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert repr(policy).startswith(type(policy).__name__)


@pytest.mark.parametrize("gain", ["average", "absolute", "square"])
def test_l1_weights_are_bounded_below(gain):
    sampler = make(scgd.Musketeer(gain=gain, mixing=0.2))
    learn(sampler, 500, slopes=np.eye(P)[0])
    assert sampler.weights().min() >= 0.2 / P * (1 - 1e-12)


def gradients(draw_from):
    return st.lists(draw_from, min_size=P, max_size=P).map(np.array)


finite = st.floats(-1e3, 1e3, allow_subnormal=False)


@given(
    slopes=gradients(finite),
    order=st.permutations(range(P)),
    normalization=st.sampled_from(["l1", "softmax"]),
)
def test_permuting_coordinates_permutes_weights(slopes, order, normalization):
    policy = scgd.Musketeer(normalization=normalization, sharpness=0.01)
    order = np.array(order)
    here, there = policy.init(P), policy.init(P)
    coords, probs = np.arange(P), np.full(P, 1 / P)
    for _ in range(3):
        policy.update(here, coords, probs, slopes, 0.3)
        policy.update(there, order[coords], probs, slopes, 0.3)
    np.testing.assert_allclose(policy.weights(there)[order], policy.weights(here), rtol=1e-9)


@given(slopes=gradients(finite), factor=st.floats(1e-6, 1e6))
def test_scaling_gradients_leaves_l1_weights(slopes, factor):
    policy = scgd.Musketeer()
    here, there = policy.init(P), policy.init(P)
    coords, probs = np.arange(P), np.full(P, 1 / P)
    policy.update(here, coords, probs, slopes, 0.3)
    policy.update(there, coords, probs, factor * slopes, 0.3)
    np.testing.assert_allclose(policy.weights(there), policy.weights(here), rtol=1e-9)


def mean_step(policy, importance, block_size=1, replace=True):
    """The expected move from fixed exact gradients, by simulation, and its standard error."""
    recipe = scgd.RECIPES["uniform"].override(
        policy=policy,
        learning_rate=1.0,
        importance=importance,
        block_size=block_size,
        replace=replace,
    )
    opt = scgd.Optimizer(np.zeros(P), recipe.first_order(), seed=1)
    gradient = CURVATURES * MINIMUM + 0.1
    moves = np.zeros((20_000, P))
    for move in moves:
        probes = opt.ask()
        opt.theta[:] = 0.0
        opt.tell(probes.ids, [gradient[probes.support]])
        move[:] = -opt.theta
    return moves.mean(axis=0), moves.std(axis=0) / np.sqrt(len(moves)), gradient


@pytest.mark.parametrize("block_size, replace", [(1, True), (3, True), (3, False)])
def test_importance_steps_average_to_the_gradient(block_size, replace):
    fixed = POLICIES["fixed"]
    mean, error, gradient = mean_step(fixed, "inverse", block_size, replace)
    assert np.all(np.abs(mean - gradient) < 5 * error + 1e-12)


def test_uniform_is_the_only_unbiased_plain_policy():
    """Proposition 2: the mean step is D grad f, proportional to the gradient only if D = I/p."""
    mean, error, gradient = mean_step(scgd.Uniform(), None)
    assert np.all(np.abs(mean - gradient / P) < 5 * error)
    mean, error, gradient = mean_step(POLICIES["fixed"], None)
    weights = np.arange(1, P + 1) / np.sum(np.arange(1, P + 1))
    assert np.all(np.abs(mean - weights * gradient) < 5 * error)
    scaled = gradient * (mean @ gradient) / (gradient @ gradient)
    assert np.any(np.abs(mean - scaled) > 10 * error)


def noisy_softmax_weights(gain):
    """The law after a long run on a noisy quadratic with a vanishing learning rate."""
    noise = np.random.default_rng(0)
    policy = scgd.Musketeer(gain=gain, normalization="softmax", sharpness=1.0, mixing=0.5)
    sampler, theta = make(policy), MINIMUM + 1.0
    for t in range(30_000):
        coords, _ = sampler.block()
        k = coords[0]
        spread = 0.2 + (k == 0) * 1.5
        grad = CURVATURES[k] * (theta[k] - MINIMUM[k]) + spread * noise.standard_normal()
        theta[k] -= 20.0 / (t / P + 20) * grad / 2
        sampler.record(np.array([grad]))
    return sampler.weights()


def test_softmax_weights_of_the_average_gain_tend_to_uniform():
    """Theorem 5, for the average gain; noise keeps the other gains, and their weights, apart."""
    assert P * noisy_softmax_weights("average").max() < 1.1
    assert P * noisy_softmax_weights("absolute").max() > 1.3
    assert P * noisy_softmax_weights("square").max() > 1.6


def test_coordinates_are_independent_of_samples():
    """Assumption 2: the coordinates drawn do not tell the rows drawn."""
    opt = scgd.Optimizer(
        np.zeros(4),
        scgd.RECIPES["uniform"].override(learning_rate=1e-9, radius=1.0),
        sample=5,
        seed=0,
    )
    table = np.zeros((4, 5))
    for _ in range(20_000):
        probes = opt.ask()
        table[probes.support[0], probes.rows[0]] += 1
        opt.tell(probes.ids, np.zeros(len(probes)))
    assert stats.chi2_contingency(table).pvalue > 1e-3


def test_smoothness_of_linear_losses():
    X = np.random.default_rng(0).standard_normal((40, P))
    expected = np.diag(X.T @ X) / 40 * 0.25 + 0.1
    np.testing.assert_allclose(scgd.coordinate_smoothness(X, curvature=0.25, l2=0.1), expected)
