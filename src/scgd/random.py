"""Random streams that compiled code can advance in place.

A stream is an array of four 64-bit words holding the state of xoshiro256++ (Blackman and Vigna,
2021), seeded through NumPy's ``SeedSequence``. NumPy's own ``Generator`` can be passed to compiled
code too, but unboxing it costs 10 microseconds per call, more than a whole phase of draws; an array
costs nothing and is its own checkpoint. Everything that is not drawn in a compiled loop (samples,
directions) uses NumPy's generators.
"""

import numpy as np

from scgd.compiling import njit
from scgd.typing import Array


def stream(seed: np.random.SeedSequence) -> Array:
    """Return a fresh stream seeded by a ``SeedSequence``."""
    return seed.generate_state(4, np.uint64)


@njit(cache=True, inline="always")
def next_word(state):  # type: ignore[no-untyped-def]
    """Advance the stream and return its next 64-bit word (xoshiro256++)."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    total = s0 + s3
    word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    state[0], state[1], state[2] = s0, s1, s2
    state[3] = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return word


@njit(cache=True, inline="always")
def uniform(state):  # type: ignore[no-untyped-def]
    """Draw a float uniformly from [0, 1) with 53 random bits."""
    return (next_word(state) >> np.uint64(11)) * 2.0**-53


@njit(cache=True, inline="always")
def below(state, n):  # type: ignore[no-untyped-def]
    """Draw an integer uniformly from 0 to n-1 (bias below n / 2**53)."""
    return np.int64(uniform(state) * n)
