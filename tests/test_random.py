"""The streams draw what they say."""

import numpy as np
import pytest
from numba import njit
from scipy import stats

from scgd.random import below, stream, uniform
from scgd_paper.linear.normal import fill_normal


def fresh(seed=0):
    return stream(np.random.SeedSequence(seed))


@njit
def fill_uniform(state, out):
    for i in range(len(out)):
        out[i] = uniform(state)


@njit
def fill_below(state, n, out):
    for i in range(len(out)):
        out[i] = below(state, n)


def test_uniform():
    out = np.empty(1_000_000)
    fill_uniform(fresh(), out)
    assert out.min() >= 0.0 and out.max() < 1.0
    assert stats.kstest(out, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(out[:-1], out[1:])[0, 1]) < 5e-3


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_below(n):
    out = np.empty(200_000, np.int64)
    fill_below(fresh(), n, out)
    counts = np.bincount(out, minlength=n)
    assert len(counts) == n
    assert n == 1 or stats.chisquare(counts).pvalue > 1e-3


def test_normal():
    """The whole law by Kolmogorov-Smirnov, then its moments and its tails beyond the ziggurat."""
    out = np.empty(4_000_000)
    fill_normal(fresh(), out)
    assert stats.kstest(out[:1_000_000], "norm").pvalue > 1e-3
    error = 1 / np.sqrt(len(out))
    assert abs(out.mean()) < 4 * error
    assert abs(out.var() - 1) < 4 * np.sqrt(2) * error
    assert abs(np.mean(out**4) - 3) < 4 * np.sqrt(96) * error
    for level in (2.0, 3.0, 3.6, 4.2):
        for side in (out > level, out < -level):
            expected = stats.norm.sf(level) * len(out)
            assert abs(side.sum() - expected) < 4.5 * np.sqrt(expected)
    assert abs(np.corrcoef(out[:-1], out[1:])[0, 1]) < 4 * error


def test_seeds_differ_and_repeat():
    one, again, other = (np.empty(100) for _ in range(3))
    fill_normal(fresh(1), one)
    fill_normal(fresh(1), again)
    fill_normal(fresh(2), other)
    assert np.array_equal(one, again) and not np.any(one == other)
