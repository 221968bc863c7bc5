"""The coordinate distribution against direct O(p) computations, its own statistics and its symmetries."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import scgd
from scgd.policies.base import draw, draw_distinct, update, weights
from scgd.policies.distribution import make_distribution
from scgd.policies.fixed import fixed_distribution
from scgd.policies.mixture import GAINS
from scgd.policies.recomputed import MEMORIES, NORMALIZATIONS
from scgd.policies.softmax import REBUILDS
from scgd.policies.sumtree import refresh
from scgd.random import stream

N_COORDS, LENGTH, MIXING = 70, 9, 0.2
GAIN_OF = {"average": lambda g: g, "absolute": np.abs, "square": np.square}
VARIANTS = list(itertools.product(GAINS, NORMALIZATIONS, MEMORIES, (False, True)))


def words(seed=0):
    return stream(np.random.SeedSequence(seed))


def weights_of(dist, n_coords=N_COORDS):
    out = np.empty(n_coords)
    weights(dist, out)
    return out


def draws(dist, state, n_draws, sample=draw):
    coords, probs = np.empty(n_draws, dtype=np.int64), np.empty(n_draws)
    sample(dist, state, coords, probs)
    return coords, probs


def run(dist, n_phases, seed=0, n_coords=N_COORDS, length=LENGTH, scale=1.0):
    """Let a distribution learn a fixed gradient under noise and return the history of its phases."""
    rng, state, history = np.random.default_rng(seed), words(seed), []
    slopes = rng.normal(size=n_coords) * scale
    for _ in range(n_phases):
        coords, probs = draws(dist, state, length)
        grads = slopes[coords] * (1 + rng.normal(size=length))
        update(dist, coords, probs, grads, MIXING)
        history.append((coords, probs, grads))
    return history


def total_gain(history, gain, memory, n_coords=N_COORDS):
    """Compute G_n of the paper phase by phase, with whole vectors."""
    total, running, visits = np.zeros(n_coords), np.zeros(n_coords), np.zeros(n_coords)
    for n, (coords, probs, grads) in enumerate(history):
        phase_gain = np.zeros(n_coords)
        np.add.at(phase_gain, coords, GAIN_OF[gain](grads) / probs)
        np.add.at(visits, coords, 1)
        running += phase_gain
        seen = running if memory == "run" else phase_gain
        total += (seen / len(coords) - total) / (n + 1)
    return running / np.maximum(visits, 1) if memory == "visits" else total


def normalize(gains, normalization, rescale, sharpness):
    if rescale:
        gains = np.abs(gains) / np.abs(gains).max()
    if normalization == "l1":
        shares = np.abs(gains)
    else:
        shares = np.exp(sharpness * (gains - gains.max()))
    return (1 - MIXING) * shares / shares.sum() + MIXING / len(gains)


@pytest.mark.parametrize("refresh", ["touched", "all"])
@pytest.mark.parametrize(("gain", "normalization", "memory", "rescale"), VARIANTS)
def test_weights_agree_with_the_paper_on_the_same_draws(
    gain, normalization, memory, rescale, refresh
):
    dist = make_distribution(
        N_COORDS,
        gain=gain,
        normalization=normalization,
        memory=memory,
        rescale=rescale,
        sharpness=0.7,
        length=LENGTH,
        refresh=refresh,
    )
    np.testing.assert_allclose(weights_of(dist), 1 / N_COORDS, rtol=1e-14)
    history = run(dist, 60)
    gains = total_gain(history, gain, memory)
    expected = normalize(gains, normalization, rescale, 0.7)
    np.testing.assert_allclose(weights_of(dist), expected, rtol=1e-10)


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_draws_report_the_weights_in_force(gain, normalization):
    dist = make_distribution(N_COORDS, gain=gain, normalization=normalization, length=LENGTH)
    run(dist, 30)
    coords, probs = draws(dist, words(5), 500)
    np.testing.assert_allclose(probs, weights_of(dist)[coords], rtol=1e-12)


@pytest.mark.parametrize("gain", ["average", "absolute"])
def test_leaves_and_parents_do_not_drift(gain):
    dist = make_distribution(N_COORDS, gain=gain)
    run(dist, 4000)
    rebuilt = dist.tree.copy()
    refresh(rebuilt, dist.levels)
    np.testing.assert_array_equal(dist.tree, rebuilt)
    assert dist.tree[dist.levels[-2]] == pytest.approx(math.fsum(dist.tree[:N_COORDS]), rel=1e-12)


@pytest.mark.parametrize("scale", [0.01, 0.3, 3.0])
@pytest.mark.parametrize("gain", ["average", "absolute"])
def test_exact_softmax_keeps_its_normaliser_without_rebuilding(gain, scale):
    n_coords, n_phases, length = 400, 3000, 20
    dist = make_distribution(
        n_coords, gain=gain, normalization="softmax", sharpness=3.0, length=length
    )
    run(dist, n_phases, n_coords=n_coords, length=length, scale=scale)
    coords, probs = draws(dist, words(9), 2000)
    np.testing.assert_allclose(probs, weights_of(dist, n_coords)[coords], rtol=1e-12)
    assert dist.heavy[REBUILDS] < n_phases / 10


def test_exact_softmax_survives_gains_that_come_and_go():
    dist = make_distribution(
        N_COORDS, gain="average", normalization="softmax", sharpness=1.0, length=1
    )
    everyone = np.arange(N_COORDS)
    update(dist, everyone, np.full(N_COORDS, 1 / N_COORDS), np.zeros(N_COORDS), 0.0)
    sums = np.zeros(N_COORDS)
    for n, size in enumerate([5e3, 2e5, -2.05e5, 1e3, -1e3, -1e6, 1e6 + 3.0, 1e9, -1e9]):
        coord = np.array([n % 3])
        update(dist, coord, np.ones(1), np.array([size]), 0.0)
        sums[coord] += size
        shares = np.exp((sums - sums.max()) / (N_COORDS + n + 1))
        np.testing.assert_allclose(weights_of(dist), shares / shares.sum(), rtol=1e-10, atol=1e-300)
        coords, probs = draws(dist, words(n), 50)
        np.testing.assert_allclose(probs, weights_of(dist)[coords], rtol=1e-12)


def learned(n_coords=N_COORDS, n_phases=2500, **rule):
    dist = make_distribution(n_coords, sharpness=0.3, length=LENGTH, **rule)
    run(dist, n_phases, seed=3, n_coords=n_coords)
    return dist


TO_FIT = {
    f"{gain}-{normalization}": (
        lambda gain=gain, normalization=normalization: learned(
            gain=gain, normalization=normalization
        )
    )
    for gain, normalization in itertools.product(GAINS, NORMALIZATIONS)
} | {
    "uniform": lambda: scgd.Uniform().init(N_COORDS),
    "fixed": lambda: fixed_distribution(np.arange(N_COORDS, dtype=float) % 7),
}


@pytest.mark.parametrize("name", TO_FIT)
@pytest.mark.parametrize("n_draws", [1, 64, 100_000])
def test_frequencies_fit_the_weights(name, n_draws):
    dist, state, counts = TO_FIT[name](), words(11), np.zeros(N_COORDS)
    for _ in range(max(1, 10_000 // n_draws)):
        coords, _ = draws(dist, state, n_draws)
        np.add.at(counts, coords, 1)
    expected = weights_of(dist)
    assert np.all(counts[expected == 0] == 0)
    positive = expected > 0
    assert chisquare(counts[positive], expected[positive] * counts.sum()).pvalue > 1e-3


@pytest.mark.parametrize("n_coords", [1, 2, 7, 8, 9, 64, 65, 513])
def test_every_size_of_tree_draws_only_positive_weights(n_coords):
    values = np.zeros(n_coords)
    values[-1] = values[n_coords // 3] = 1e-3
    coords, probs = draws(fixed_distribution(values), words(), 1000)
    assert set(coords) == {n_coords - 1, n_coords // 3}
    np.testing.assert_allclose(probs, 1 / len(set(coords)))


@pytest.mark.parametrize(
    "make", [lambda: make_distribution(N_COORDS), lambda: scgd.Uniform().init(N_COORDS)]
)
def test_cutting_a_batch_does_not_change_the_draws(make):
    dist = make()
    run(dist, 10)
    whole = draws(dist, words(2), 50)
    state = words(2)
    first, second = draws(dist, state, 13), draws(dist, state, 37)
    np.testing.assert_array_equal(whole[0], np.concatenate([first[0], second[0]]))
    np.testing.assert_array_equal(whole[1], np.concatenate([first[1], second[1]]))


@pytest.mark.parametrize(
    "make", [lambda: scgd.Uniform().init(5), lambda: fixed_distribution(np.arange(5.0))]
)
def test_frozen_laws_learn_nothing(make):
    dist = make()
    before = weights_of(dist, 5)
    update(dist, np.array([1, 2]), np.array([0.5, 0.5]), np.array([3.0, 4.0]), 0.5)
    np.testing.assert_array_equal(weights_of(dist, 5), before)


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan, 1e200])
def test_weights_stay_finite_when_gradients_do_not(gain, normalization, bad):
    dist = make_distribution(N_COORDS, gain=gain, normalization=normalization, length=LENGTH)
    for _ in range(3):
        update(dist, np.array([3, 5]), np.array([1e-3, 1e-3]), np.array([bad, 1.0]), MIXING)
    after = weights_of(dist)
    assert after.sum() == pytest.approx(1.0) and after.min() >= MIXING / N_COORDS * (1 - 1e-12)
    _, probs = draws(dist, words(), 20)
    assert np.all(np.isfinite(probs)) and probs.min() > 0


def inclusion(shares, n_wanted):
    """Cap the inclusion probabilities at one until none exceeds it."""
    certain = np.zeros(len(shares), dtype=bool)
    while True:
        if certain.sum() == n_wanted:
            return certain.astype(float)
        chances = np.where(certain, 0.0, shares)
        chances *= (n_wanted - certain.sum()) / chances.sum()
        if not np.any(chances >= 1):
            return np.where(certain, 1.0, chances)
        certain |= chances >= 1


FOR_BLOCKS = {
    "uniform": lambda: scgd.Uniform().init(40),
    "fresh": lambda: make_distribution(40),
    "steep": lambda: fixed_distribution(np.arange(40.0) ** 4),
    "very steep": lambda: fixed_distribution(np.exp(8 * np.random.default_rng(4).normal(size=40))),
    "l1": lambda: learned(40, 50, gain="average"),
    "softmax": lambda: learned(40, 50, normalization="softmax", refresh="all"),
}


@pytest.mark.parametrize("name", FOR_BLOCKS)
@pytest.mark.parametrize("n_wanted", [1, 4, 15, 39])
def test_distinct_draws_have_the_inclusion_probabilities_they_claim(name, n_wanted):
    dist, n_rounds, counts, state = FOR_BLOCKS[name](), 2000, np.zeros(40), words(7)
    before = [array.copy() for array in dist]
    expected = inclusion(weights_of(dist, 40), n_wanted)
    for _ in range(n_rounds):
        coords, probs = draws(dist, state, n_wanted, sample=draw_distinct)
        assert len(np.unique(coords)) == n_wanted
        counts[coords] += 1
        assert np.all(np.abs(probs * n_wanted / expected[coords] - 1) < 1e-9)
    for kept, array in zip(before, dist, strict=True):
        np.testing.assert_array_equal(array, kept)
    error = np.sqrt(expected * (1 - expected) / n_rounds)
    assert np.all(np.abs(counts / n_rounds - expected) <= 4.5 * error + 1e-12)


def test_all_coordinates_can_be_drawn_at_once():
    for dist in (
        scgd.Uniform().init(30),
        make_distribution(30),
        fixed_distribution(np.arange(1.0, 31.0)),
    ):
        coords, probs = draws(dist, words(), 30, sample=draw_distinct)
        assert sorted(coords) == list(range(30))
        np.testing.assert_allclose(probs, 1 / 30)


@pytest.mark.parametrize(
    ("make", "n_wanted", "message"),
    [
        (lambda: scgd.Uniform().init(5), 6, "than there are"),
        (lambda: fixed_distribution(np.array([1.0, 0.0, 2.0])), 3, "positive weight"),
        (lambda: make_distribution(5), 6, "positive weight"),
        (lambda: make_distribution(5, normalization="softmax"), 2, 'refresh="all"'),
    ],
)
def test_impossible_distinct_draws_are_refused(make, n_wanted, message):
    dist = make()
    before = [array.copy() for array in dist]
    with pytest.raises(ValueError, match=message):
        draws(dist, words(), n_wanted, sample=draw_distinct)
    for kept, array in zip(before, dist, strict=True):
        np.testing.assert_array_equal(array, kept)


gradients = st.lists(
    st.floats(-10, 10, allow_subnormal=False).map(lambda g: round(g, 3)), min_size=2, max_size=30
)
rules = st.sampled_from(VARIANTS)
mixings = st.floats(0.01, 1.0)


def learned_weights(grads, mixing, order=None, **rule):
    """Show a distribution the whole gradient twice and return its weights."""
    n_coords = len(grads)
    dist = make_distribution(n_coords, length=3, **rule)
    coords = np.arange(n_coords) if order is None else np.asarray(order)
    for factor in (1.0, 0.5):
        probs = np.full(n_coords, 1 / n_coords)
        update(dist, coords, probs, factor * np.asarray(grads), mixing)
    return weights_of(dist, n_coords)


def as_rule(variant):
    return dict(zip(("gain", "normalization", "memory", "rescale"), variant, strict=True))


@settings(deadline=None, max_examples=60)
@given(gradients, rules, mixings, st.randoms(use_true_random=False))
def test_permuting_coordinates_permutes_weights(grads, variant, mixing, random):
    order = list(range(len(grads)))
    random.shuffle(order)
    straight = learned_weights(grads, mixing, **as_rule(variant))
    permuted = learned_weights(grads, mixing, order=order, **as_rule(variant))
    np.testing.assert_allclose(permuted[order], straight, rtol=1e-9)


@settings(deadline=None, max_examples=60)
@given(gradients, st.sampled_from(GAINS), st.sampled_from(MEMORIES), mixings, st.floats(1e-3, 1e3))
def test_scaling_gradients_leaves_l1_weights_unchanged(grads, gain, memory, mixing, factor):
    before = learned_weights(grads, mixing, gain=gain, memory=memory)
    after = learned_weights(factor * np.array(grads), mixing, gain=gain, memory=memory)
    np.testing.assert_allclose(after, before, rtol=1e-9)


@settings(deadline=None, max_examples=60)
@given(gradients, st.sampled_from(["touched", "all"]), mixings, st.floats(-50, 50))
def test_shifting_gains_leaves_softmax_weights_unchanged(grads, refresh, mixing, shift):
    rule = {"gain": "average", "normalization": "softmax", "refresh": refresh, "sharpness": 0.5}
    before = learned_weights(grads, mixing, **rule)
    after = learned_weights(np.array(grads) + shift, mixing, **rule)
    np.testing.assert_allclose(after, before, rtol=1e-9)


@settings(deadline=None, max_examples=60)
@given(gradients, rules, mixings)
def test_weights_are_a_mixture_with_uniform(grads, variant, mixing):
    dist = learned_weights(grads, mixing, **as_rule(variant))
    assert dist.sum() == pytest.approx(1.0, abs=1e-12)
    assert dist.min() >= mixing / len(grads) * (1 - 1e-12)
