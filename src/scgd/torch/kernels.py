r"""Compiled passes over the coordinates of a network: decide, move and learn in one.

Coordinate *k* of a step gets its random number from a hash of *k* and two words made from (seed,
step), so a draw stores no random numbers, every pass over the same step sees the same draw, and the
state of the generator is a pair of integers.

The fused passes do a whole step of plain SGD under Poisson sampling: include *k* with probability
:math:`\pi_k = \min(1, s\,m\,d_n^{(k)})`, move it, add :math:`\psi(g)\,m/\pi_k` to its (faded) gain,
and sum the new gains and the probabilities. The arithmetic of rewards and weights is that of
:mod:`scgd.policies.distribution`; a test pins the two together.
"""

import numpy as np

from scgd.compiling import njit
from scgd.policies.mixture import ABSOLUTE, AVERAGE, SQUARE

# Probabilities are compared as multiples of 2^-30: one is exact and conversions are cheap.
CERTAIN = 2**30
# Single-precision partial sums of this many terms are accurate; they are added up in double.
SPAN = 4096
MASK64 = (1 << 64) - 1

# What a fused pass reads, in one array so that all of it has the dtype of the parameters.
SLOPE, FLOOR, N_DRAWS, RATE, RATE_BY_PROB, DECAY, ONE, TOP, FADE, N_NUMBERS = range(10)


def splitmix(x: int) -> int:
    """Return a well-mixed 64-bit function of an integer."""
    x = (x + 0x9E3779B97F4A7C15) & MASK64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK64
    return x ^ (x >> 31)


def make_words(seed: int, n: int) -> np.ndarray:
    """Return the two random words of step ``n``.

    Examples
    --------
    >>> make_words(0, 1).dtype
    dtype('uint32')
    """
    word = splitmix(splitmix(seed & MASK64) ^ n)
    return np.array([word >> 32, word & 0xFFFFFFFF], np.uint32)


@njit(cache=True, inline="always")
def scramble(k, word1, word2):  # type: ignore[no-untyped-def]
    """Hash a coordinate with two words to an integer uniform on 0 .. 2^30 - 1.

    Every operation is cast back to 32 bits: without the casts the loops do not vectorise.
    """
    h = np.uint32(np.uint32(k ^ word1) * np.uint32(0x85EBCA6B))
    h = np.uint32(h ^ word2)
    h = np.uint32(h ^ np.uint32(h >> np.uint32(15)))
    h = np.uint32(h * np.uint32(0xC2B2AE35))
    return np.int32(np.uint32(h >> np.uint32(2)))


@njit(cache=True, inline="always")
def unit(k, word1, word2):  # type: ignore[no-untyped-def]
    """Return the random number of coordinate ``k`` as a float in (0, 1)."""
    return (scramble(np.uint32(k), word1, word2) + 0.5) / CERTAIN


@njit(cache=True)
def units(words, n):  # type: ignore[no-untyped-def]
    """Return the random numbers of the first coordinates."""
    out = np.empty(n)
    for k in range(n):
        out[k] = unit(k, words[0], words[1])
    return out


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"}, inline="always")
def learn_span(theta, grads, gains, offset, words, numbers, gain):  # type: ignore[no-untyped-def]
    """Do a step on a short stretch of a tensor: see :func:`learn`.

    Branch-free, a constant gain and no integer sums: what it takes to vectorise. The draw
    selects the gradient, not the result, because masked stores are slow. Counting coordinates of
    the group, not entries of the tensor, leaves the shift to the addresses, where it is free.
    """
    slope, floor, draws = numbers[SLOPE], numbers[FLOOR], numbers[N_DRAWS]
    rate, rate_by_prob, decay = numbers[RATE], numbers[RATE_BY_PROB], numbers[DECAY]
    one, top, zero, fade = numbers[ONE], numbers[TOP], numbers[ONE] - numbers[ONE], numbers[FADE]
    word1, word2, first = words[0], words[1], np.uint64(offset)
    total, expected = zero, zero
    for k in range(first, first + np.uint64(len(theta))):
        i = k - first
        here, learned = theta[i], gains[i]
        prob = slope * abs(learned) + floor
        prob = top if prob > top else prob
        expected += prob
        taken = scramble(np.uint32(k), word1, word2) < np.int32(prob)
        inverse = (one if taken else zero) / prob
        grad = grads[i] + decay * here
        grad = grad if taken else zero
        theta[i] = here - (rate + rate_by_prob * inverse) * grad
        psi = grad
        if gain == ABSOLUTE:
            psi = abs(grad)
        elif gain == SQUARE:
            psi = grad * grad
        earned = psi * (draws * inverse)
        learned = fade * learned + (earned if earned == earned else zero)
        gains[i] = learned
        total += abs(learned)
    return total, expected


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"}, inline="always")
def learn(theta, grads, gains, offset, words, numbers, gain):  # type: ignore[no-untyped-def]
    r"""Do a step on one tensor under l1 weights; return the sums of its gains and probabilities.

    ``slope * |gain| + floor`` is the expected number of visits :math:`s\,m\,d_n^{(k)}`; slope,
    floor and the numbers divided by a probability are in units of 2^-30.
    """
    total, expected = 0.0, 0.0
    for start in range(0, len(theta), SPAN):
        span = slice(start, start + SPAN)
        x, g, s, k = theta[span], grads[span], gains[span], offset + start
        gained, chances = learn_span(x, g, s, k, words, numbers, gain)
        total += gained
        expected += chances
    return total, expected / CERTAIN


# One function per gain: a constant lets the loop vectorise, and only what is used is compiled.
@njit(cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def sgd_average(theta, grads, gains, offset, words, numbers):  # type: ignore[no-untyped-def]
    """Do a step that learns from signed gradients: see :func:`learn`."""
    return learn(theta, grads, gains, offset, words, numbers, AVERAGE)


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def sgd_absolute(theta, grads, gains, offset, words, numbers):  # type: ignore[no-untyped-def]
    """Do a step that learns from absolute gradients: see :func:`learn`."""
    return learn(theta, grads, gains, offset, words, numbers, ABSOLUTE)


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def sgd_square(theta, grads, gains, offset, words, numbers):  # type: ignore[no-untyped-def]
    """Do a step that learns from squared gradients: see :func:`learn`."""
    return learn(theta, grads, gains, offset, words, numbers, SQUARE)


LEARNING = {"average": sgd_average, "absolute": sgd_absolute, "square": sgd_square}


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def sgd_uniform(theta, grads, offset, words, numbers):  # type: ignore[no-untyped-def]
    """Do a step on one tensor with equal weights."""
    threshold, decay = np.int32(numbers[FLOOR]), numbers[DECAY]
    rate = numbers[RATE] + numbers[RATE_BY_PROB] / numbers[FLOOR]
    zero = numbers[ONE] - numbers[ONE]
    word1, word2, first = words[0], words[1], np.uint64(offset)
    for k in range(first, first + np.uint64(len(theta))):
        i = k - first
        grad = grads[i] + decay * theta[i]
        taken = scramble(np.uint32(k), word1, word2) < threshold
        theta[i] -= rate * (grad if taken else zero)


@njit(cache=True)
def mend(gains, largest):  # type: ignore[no-untyped-def]
    """Make gains finite again after an undefined or huge gradient; return their absolute sum."""
    total = 0.0
    for i in range(len(gains)):
        if gains[i] != gains[i]:
            gains[i] = 0.0
        gains[i] = min(max(gains[i], -largest), largest)
        total += abs(gains[i])
    return total
