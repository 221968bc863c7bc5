"""Standard normal draws from a stream, for compiled loops that need millions of them.

The ziggurat of Doornik (2005) with 128 layers of equal area: 98.8 % of draws cost one random word,
a comparison and a product.
"""

from math import exp, log

import numpy as np

from scgd.compiling import njit
from scgd.random import next_word, uniform
from scgd.typing import Floats

__all__ = ["fill_normal"]

N_LAYERS = 128
TAIL = 3.442619855899
AREA = 9.91256303526217e-3


def layers() -> tuple[Floats, Floats]:
    """Return the right ends of the layers and the share of each that lies under the curve."""
    ends = np.zeros(N_LAYERS + 1)
    height = np.exp(-0.5 * TAIL**2)
    ends[0], ends[1] = AREA / height, TAIL
    for i in range(2, N_LAYERS):
        ends[i] = np.sqrt(-2.0 * np.log(AREA / ends[i - 1] + height))
        height = np.exp(-0.5 * ends[i] ** 2)
    return ends, ends[1:] / ends[:-1]


ENDS, SHARES = layers()


@njit(cache=True, error_model="numpy")
def edge(stream, u, layer):  # type: ignore[no-untyped-def]
    """Return a draw from the edge of a layer or from the tail, NaN where it is rejected."""
    if layer == 0:
        while True:
            x, y = log(1.0 - uniform(stream)) / TAIL, log(1.0 - uniform(stream))
            if -2.0 * y >= x * x:
                return TAIL - x if u > 0.0 else x - TAIL
    x = u * ENDS[layer]
    low = exp(-0.5 * (ENDS[layer] ** 2 - x * x))
    high = exp(-0.5 * (ENDS[layer + 1] ** 2 - x * x))
    return x if high + uniform(stream) * (low - high) < 1.0 else np.nan


@njit(cache=True, error_model="numpy")
def fill_normal(stream, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with independent standard normal draws."""
    for i in range(len(out)):
        while True:
            word = next_word(stream)
            layer = np.int64(word & np.uint64(N_LAYERS - 1))
            u = 2.0 * ((word >> np.uint64(11)) * 2.0**-53) - 1.0
            x = u * ENDS[layer] if abs(u) < SHARES[layer] else edge(stream, u, layer)
            if x == x:
                out[i] = x
                break
