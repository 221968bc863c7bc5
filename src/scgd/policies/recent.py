r"""Draw coordinates in proportion to what they brought lately.

The published gains remember everything, so a coordinate that was steep once, or drawn early, keeps
its weight; here averages over about the last ten visits of each coordinate are kept instead:
:math:`a = \overline{|g|}`, :math:`m = \overline{g}` and :math:`v = \overline{g^2}`. The first pass
visits every coordinate once in random order, so no weight is ever a guess. Then

.. math:: u = a^{1-t} \Bigl(|m| \sqrt{\bar v / \sqrt{v}}\Bigr)^{t},

with :math:`t` the part of the budget that is used and :math:`\bar v` the mean of
:math:`\sqrt v`: at first the slope, where steps are limited by their number, at the end the root of
the expected decrease of a normalised step, where noise limits them. All :math:`u` are in units of
g, so a visit changes its own leaf and nothing else.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from scgd.compiling import njit
from scgd.random import below
from scgd.typing import Floats, Ints

__all__ = ["empty_memory", "remember", "sweep"]

# Slots of params (the second is the mixture), of the permutation's head and of the shared memory.
PROGRESS, _, FORGET = range(3)
NEXT, SHUFFLED, ORDER = range(3)
TYPICAL, N_VISITS = range(2)
SHARED_FORGET = 0.002


def empty_memory(n_coords: int) -> tuple[Floats, Floats, Ints]:
    """Return the shared memory, the four averages per coordinate and the order of the sweep."""
    order = np.concatenate([[0, 0], np.arange(n_coords)])
    return np.zeros(2), np.zeros(4 * n_coords), order


@njit(cache=True)
def sweep(order, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Fill ``coords`` from the first pass, wrapping at its end; False when it is over."""
    n_coords = len(order) - ORDER
    if order[NEXT] >= n_coords:
        return False
    if order[SHUFFLED] == 0:
        order[SHUFFLED] = 1
        for i in range(n_coords - 1, 0, -1):
            j = below(stream, i + 1)
            order[ORDER + i], order[ORDER + j] = order[ORDER + j], order[ORDER + i]
    for t in range(len(coords)):
        coords[t] = order[ORDER + (order[NEXT] + t) % n_coords]
        probs[t] = 1.0 / n_coords
    order[NEXT] += len(coords)
    return True


@njit(cache=True)
def remember(params, shared, averages, tree, coords, grads):  # type: ignore[no-untyped-def]
    """Let the averages of the visited coordinates forget a little and set their leaves."""
    n_coords = len(averages) // 4
    size, mean = averages[:n_coords], averages[n_coords : 2 * n_coords]
    square, visits = averages[2 * n_coords : 3 * n_coords], averages[3 * n_coords :]
    for i in range(len(coords)):
        k, grad = coords[i], grads[i]
        visits[k] += 1.0
        weight = max(1.0 / visits[k], params[FORGET])
        size[k] += weight * (abs(grad) - size[k])
        mean[k] += weight * (grad - mean[k])
        square[k] += weight * (grad * grad - square[k])
        shared[N_VISITS] += 1.0
        weight = max(1.0 / shared[N_VISITS], SHARED_FORGET)
        shared[TYPICAL] += weight * (sqrt(square[k]) - shared[TYPICAL])
    for i in range(len(coords)):
        k = coords[i]
        tree[k] = score(size[k], mean[k], square[k], shared[TYPICAL], params[PROGRESS])


@njit(cache=True)
def score(size, mean, square, typical, progress):  # type: ignore[no-untyped-def]
    """Return what a draw of this coordinate is worth, in units of the gradient."""
    if square == 0.0:
        return 0.0
    late = abs(mean) * sqrt(typical / sqrt(square))
    return size ** (1.0 - progress) * late**progress
