"""The draws at network size against the probabilities they are meant to have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

pytest.importorskip("torch")

from scgd.torch.draws import draw_distinct, draw_poisson, draw_replacement
from scgd.torch.kernels import CERTAIN, make_words, scramble, unit

WEIGHTS = np.array([0.3, 0.05, 0.2, 0.01, 0.14, 0.25, 0.05])
N_REPEATS = 20_000


def poisson_numbers(scale):
    return np.array([scale, 0.0, 0, 0, 0, 0, 1, CERTAIN])


def sequential_inclusion(weights, n_draws):
    """Inclusion probabilities of drawing one after the other without replacement, exactly."""
    inclusion = np.zeros(len(weights))

    def descend(left, chance, taken):
        if len(taken) == n_draws:
            inclusion[list(taken)] += chance
            return
        total = weights[list(left)].sum()
        for k in left:
            descend(left - {k}, chance * weights[k] / total, taken | {k})

    descend(frozenset(range(len(weights))), 1.0, frozenset())
    return inclusion


def z_scores(counts, probabilities, n_repeats):
    spread = np.sqrt(n_repeats * probabilities * (1 - probabilities))
    return (counts - n_repeats * probabilities) / np.maximum(spread, 1e-12)


@pytest.mark.parametrize("n_draws", [1, 3])
def test_distinct_draws_follow_sequential_sampling(n_draws):
    counts = np.zeros(len(WEIGHTS))
    for n in range(N_REPEATS):
        coords, _, _, _ = draw_distinct(WEIGHTS, 7, 1.0, 0.0, make_words(1, n), n_draws)
        assert len(coords) == len(set(coords)) == n_draws
        counts[coords] += 1
    assert np.abs(z_scores(counts, sequential_inclusion(WEIGHTS, n_draws), N_REPEATS)).max() < 4


def test_distinct_probabilities_make_estimates_unbiased():
    values, estimates = np.arange(1.0, 8.0), np.empty(N_REPEATS)
    for n in range(N_REPEATS):
        coords, probs, _, _ = draw_distinct(WEIGHTS, 7, 1.0, 0.0, make_words(2, n), 3)
        estimates[n] = (values[coords] / (3 * probs)).sum()
    error = (estimates.mean() - values.sum()) / (estimates.std() / np.sqrt(N_REPEATS))
    assert abs(error) < 4


def test_draws_with_replacement_follow_the_weights():
    counts = np.zeros(len(WEIGHTS))
    for n in range(N_REPEATS // 5):
        coords, probs = draw_replacement(WEIGHTS, 7, 1.0, 0.0, make_words(3, n), 5)
        assert np.array_equal(probs, WEIGHTS[coords])
        np.add.at(counts, coords, 1)
    expected = WEIGHTS * N_REPEATS
    assert chi2.sf(np.sum((counts - expected) ** 2 / expected), 6) > 1e-3


def test_poisson_draws_include_independently_with_the_stated_probability():
    n_draws, both, counts = 3, 0, np.zeros(7)
    inclusion = np.minimum(1, n_draws * WEIGHTS)
    for n in range(N_REPEATS):
        numbers = poisson_numbers(float(CERTAIN) * n_draws)
        coords, probs, mean = draw_poisson(WEIGHTS, 7, numbers, make_words(4, n), n_draws)
        assert mean == pytest.approx(inclusion.sum())
        np.testing.assert_allclose(probs, inclusion[coords] / n_draws)
        counts[coords] += 1
        both += {1, 2} <= set(coords.tolist())
    assert np.abs(z_scores(counts, inclusion, N_REPEATS)).max() < 4
    assert abs(z_scores(both, inclusion[1] * inclusion[2], N_REPEATS)) < 4


def test_hash_is_uniform_and_uncorrelated_in_coordinates_and_steps():
    n_coords, n_steps = 4096, 256
    u = np.empty((n_steps, n_coords))
    for n in range(n_steps):
        word1, word2 = make_words(0, n)
        u[n] = [unit(np.uint32(k), word1, word2) for k in range(n_coords)]
    counts = np.histogram(u, bins=64, range=(0, 1))[0]
    expected = u.size / 64
    assert chi2.sf(np.sum((counts - expected) ** 2 / expected), 63) > 1e-3
    v = u - 0.5
    for lag in (1, 2, 7, 32, 64, 784):
        assert abs(np.mean(v[:, lag:] * v[:, :-lag]) * 12 * np.sqrt(u.size)) < 4
        if lag < n_steps:
            assert abs(np.mean(v[lag:] * v[:-lag]) * 12 * np.sqrt(u.size)) < 4
    taken = u < 0.1
    per_step, per_coord = taken.sum(1), taken.sum(0)
    for counts, size in ((per_step, n_coords), (per_coord, n_steps)):
        spread = (counts - 0.1 * size) / np.sqrt(0.09 * size)
        assert abs(np.var(spread) - 1) < 5 * np.sqrt(2 / len(counts))


def test_certain_coordinates_are_always_drawn():
    weights = np.array([0.9, 0.1])
    numbers = poisson_numbers(2.0 * CERTAIN)
    for n in range(2000):
        coords, _, _ = draw_poisson(weights, 2, numbers, make_words(0, n), 2)
        assert 0 in coords
    assert 0 <= scramble(np.uint32(3), *make_words(0, 1)) < CERTAIN


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 200), st.data())
def test_exact_draws_give_exactly_what_was_asked(n_coords, data):
    n_draws = data.draw(st.integers(1, n_coords))
    powers = data.draw(st.integers(0, 12))
    weights = np.random.default_rng(n_coords).exponential(size=n_coords) ** powers + 1e-12
    weights /= weights.sum()
    drawn = draw_distinct(weights, n_coords, 1.0, 0.0, make_words(0, 1), n_draws)
    coords, probs, single, tau = drawn
    again = draw_distinct(weights, n_coords, 1.0, 0.0, make_words(0, 1), n_draws, 7.0 * n_coords)
    assert np.array_equal(again[0], coords) and again[3] == tau
    assert len(np.unique(coords)) == n_draws and np.all(np.diff(coords) > 0)
    assert np.all((probs > 0) & (probs * n_draws <= 1)) and np.array_equal(single, weights[coords])
    coords, _ = draw_replacement(weights, n_coords, 1.0, 0.0, make_words(0, 1), n_draws)
    assert len(coords) == n_draws and np.all(np.diff(coords) >= 0) and coords.max() < n_coords
