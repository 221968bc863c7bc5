r"""Draw coordinates from weights laid out on one line, in a pass or two over them.

The weight of coordinate *k* is :math:`d^{(k)} = a\,v_k + b` with leaf :math:`v_k` (none under equal
weights). Every draw returns its coordinates in ascending order with their probabilities per draw,
:math:`\pi_k/m` where at most one draw can hit a coordinate.
"""

import numpy as np
from numba import njit

from scgd.torch.kernels import CERTAIN, FLOOR, SLOPE, TOP, scramble, unit

__all__ = ["draw_distinct", "draw_poisson", "draw_replacement"]


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def draw_poisson(leaves, n_coords, numbers, words, n_draws):  # type: ignore[no-untyped-def]
    """Include each coordinate on its own; the same draw as the fused passes make.

    Their number is random with mean at most ``n_draws`` and may be zero.
    """
    slope, floor, top = numbers[SLOPE], numbers[FLOOR], numbers[TOP]
    word1, word2 = words[0], words[1]
    coords = np.empty(min(n_coords, int(n_draws + 8 * np.sqrt(n_draws) + 64)) + 1, np.int64)
    probs = np.empty(len(coords))
    size = 0
    for k in range(n_coords):
        prob = slope * abs(leaves[k]) + floor if len(leaves) > 0 else floor
        prob = top if prob > top else prob
        if size == len(coords):
            coords = np.concatenate((coords, np.empty_like(coords)))
            probs = np.concatenate((probs, np.empty_like(probs)))
        coords[size] = k
        probs[size] = prob
        size += scramble(np.uint32(k), word1, word2) < np.int32(prob)
    return coords[:size], probs[:size] / (CERTAIN * n_draws)


@njit(cache=True, error_model="numpy")
def candidates(leaves, n_coords, a, b, words, limit, room):  # type: ignore[no-untyped-def]
    r"""Return the coordinates that arrive before a limit, and when; none if there is no room.

    Coordinate k arrives at :math:`-\log(1-u_k)/d_k`. As that is at least :math:`u_k/d_k`, most
    coordinates are dismissed without a logarithm.
    """
    word1, word2 = words[0], words[1]
    coords, times = np.empty(room + 1, np.int64), np.empty(room + 1)
    size = 0
    for k in range(n_coords):
        weight = a * leaves[k] + b if len(leaves) > 0 else b
        chance = unit(k, word1, word2)
        if size > room:
            return coords[:0], times[:0]
        coords[size] = k
        times[size] = chance
        size += chance < limit * weight
    kept = 0
    for i in range(min(size, room)):
        k = coords[i]
        weight = a * leaves[k] + b if len(leaves) > 0 else b
        arrival = -np.log1p(-times[i]) / weight
        if arrival < limit:
            coords[kept], times[kept] = k, arrival
            kept += 1
    return coords[:kept], times[:kept]


def draw_distinct(leaves, n_coords, a, b, words, n_draws):  # type: ignore[no-untyped-def]
    r"""Draw exactly ``n_draws`` coordinates one after the other without replacement.

    The race: coordinate *k* arrives after an exponential time of rate :math:`d^{(k)}`; the first
    arrivals are a sequential sample. Given the time :math:`\tau` of the first one left out, *k* was
    in with probability :math:`1 - e^{-d^{(k)}\tau}`, which makes estimates divided by it unbiased.

    Returns
    -------
    coords, probs, weights
        The coordinates, those conditional probabilities divided by ``n_draws``, and the weights.
    """
    wanted = min(n_draws + 1, n_coords)
    limit = wanted + 8.0 * np.sqrt(wanted) + 8.0
    while True:
        room = min(n_coords, int(2 * limit) + 64)
        coords, times = candidates(leaves, n_coords, a, b, words, limit, room)
        if len(coords) >= wanted:
            break
        limit *= 1.5
    order = np.argpartition(times, wanted - 1)[:wanted] if wanted < len(times) else slice(None)
    coords, times = coords[order], times[order]
    last = np.argmax(times)
    tau = times[last] if n_draws < n_coords else np.inf
    if n_draws < n_coords:
        coords = np.delete(coords, last)
    coords.sort()
    weights = a * leaves[coords].astype(np.float64) + b if len(leaves) else np.full(len(coords), b)
    return coords, -np.expm1(-weights * tau) / n_draws, weights


@njit(cache=True, error_model="numpy")
def draw_replacement(leaves, n_coords, a, b, words, n_draws):  # type: ignore[no-untyped-def]
    """Draw independently, as sorted points walked along the line of weights.

    Sorted uniform points are the partial sums of exponential spacings.
    """
    points = np.empty(n_draws + 1)
    reached = 0.0
    for t in range(n_draws + 1):
        reached -= np.log(unit(t, words[0], words[1]))
        points[t] = reached
    total = 0.0
    for k in range(n_coords):
        total += a * leaves[k] + b if len(leaves) > 0 else b
    coords, probs = np.empty(n_draws, np.int64), np.empty(n_draws)
    k, weight = 0, a * leaves[0] + b if len(leaves) > 0 else b
    passed = weight
    for t in range(n_draws):
        point = points[t] / reached * total
        while point >= passed and k < n_coords - 1:
            k += 1
            weight = a * leaves[k] + b if len(leaves) > 0 else b
            passed += weight
        coords[t], probs[t] = k, weight
    return coords, probs
