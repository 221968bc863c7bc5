r"""Draw coordinates from weights laid out on one line, in a pass or two over them.

The weight of coordinate *k* is :math:`d^{(k)} = a\,v_k + b` with leaf :math:`v_k` (none under equal
weights). Every draw returns its coordinates in ascending order with their probabilities per draw,
:math:`\pi_k/m` where at most one draw can hit a coordinate.
"""

from typing import Any, NamedTuple

import numpy as np

from scgd.compiling import njit
from scgd.torch.kernels import CERTAIN, FLOOR, SLOPE, TOP, scramble, unit
from scgd.typing import Floats, Ints

FOREVER = 1e100
"""What has not arrived by then has no weight."""


class Draw(NamedTuple):
    """Coordinates in ascending order and their probabilities per draw; sizes of drawn units."""

    coords: Ints
    probs: Floats
    sizes: Ints | None = None
    order: Ints | None = None


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def included(leaves, n_coords, numbers, words, coords, probs):  # type: ignore[no-untyped-def]
    """Write the coordinates of a Poisson draw; return their number and expected number."""
    slope, floor, top = numbers[SLOPE], numbers[FLOOR], numbers[TOP]
    word1, word2 = words[0], words[1]
    size, equal, expected = 0, len(leaves) == 0, 0.0
    for k in range(n_coords):
        prob = floor if equal else slope * abs(leaves[k]) + floor
        prob = top if prob > top else prob
        if size == len(coords):
            return -1, 0.0
        expected += prob
        coords[size] = k
        probs[size] = prob
        size += scramble(np.uint32(k), word1, word2) < np.int32(prob)
    return size, expected


def draw_poisson(leaves, n_coords, numbers, words, n_draws):  # type: ignore[no-untyped-def]
    """Include each coordinate on its own; the same draw as the fused passes make.

    Their number is random and may be zero; its mean comes last.
    """
    size, room = -1, n_draws + 8 * np.sqrt(n_draws) + 64
    while size < 0:
        coords = np.empty(min(n_coords, int(room)) + 1, np.int64)
        probs = np.empty(len(coords))
        size, expected = included(leaves, n_coords, numbers, words, coords, probs)
        room *= 2
    return coords[:size], probs[:size] / (CERTAIN * n_draws), expected / CERTAIN


@njit(cache=True, error_model="numpy")
def arrivals(leaves, n_coords, a, b, words, limit, room):  # type: ignore[no-untyped-def]
    r"""Return the coordinates that arrive before a limit, and when.

    Coordinate k arrives at :math:`-\log(1-u_k)/d_k`. As that is at least :math:`u_k/d_k`, most
    coordinates are dismissed without a logarithm. ``room`` exceeds their expected number twofold.
    """
    word1, word2 = words[0], words[1]
    coords, times = np.empty(room + 1, np.int64), np.empty(room + 1)
    size, equal, scale = 0, len(leaves) == 0, limit * CERTAIN
    for k in range(n_coords):
        weight = b if equal else a * leaves[k] + b
        coords[size] = k
        size += scramble(np.uint32(k), word1, word2) < scale * weight
        if size > room:
            break
    kept = 0
    for i in range(min(size, room)):
        k = coords[i]
        arrival = -np.log1p(-unit(k, word1, word2)) / (b if equal else a * leaves[k] + b)
        if arrival < limit:
            coords[kept], times[kept] = k, arrival
            kept += 1
    return coords[:kept], times[:kept]


def check_enough(n_positive: int, n_draws: int) -> None:
    """Refuse to draw more coordinates than have a weight."""
    if n_positive < n_draws:
        raise ValueError(
            f"only {n_positive} coordinates have a positive weight and {n_draws} are to be drawn "
            "without replacement; give the policy a mixing above 0 (or a smaller sharpness), lower "
            "fraction, or use sampling='poisson'"
        )


def draw_distinct(leaves, n_coords, a, b, words, n_draws, limit=0.0):  # type: ignore[no-untyped-def]
    r"""Draw exactly ``n_draws`` coordinates one after the other without replacement.

    The race: coordinate *k* arrives after an exponential time of rate :math:`d^{(k)}`; the first
    arrivals are a sequential sample. Given the time :math:`\tau` of the first one left out, *k* was
    in with probability :math:`1 - e^{-d^{(k)}\tau}`, which makes estimates divided by it unbiased.

    Returns
    -------
    coords, probs, weights, tau
        The coordinates, those conditional probabilities divided by ``n_draws``, the weights, and
        :math:`\tau`, near which the next draw may start to look (``limit``).
    """
    wanted = min(n_draws + 1, n_coords)
    share = min((wanted + 6.0 * np.sqrt(wanted)) / n_coords, 1.0 - 0.1 / n_coords)
    limit = max(limit, -n_coords * np.log1p(-share))
    while True:
        room = n_coords if 2 * limit + 64 > n_coords else int(2 * limit) + 64
        coords, times = arrivals(leaves, n_coords, a, b, words, limit, room)
        if len(coords) >= wanted:
            break
        limit *= 1.5
        if limit > FOREVER:
            check_enough(len(coords), n_draws)
            break
    tau = np.partition(times, n_draws)[n_draws] if n_draws < len(times) else np.inf
    first = times < tau
    if np.count_nonzero(first) < n_draws:  # a tie at the very end
        first = np.zeros(len(times), bool)
        first[np.argsort(times, kind="stable")[:n_draws]] = True
    coords = coords[first]
    weights = a * leaves[coords].astype(np.float64) + b if len(leaves) else np.full(len(coords), b)
    return coords, -np.expm1(-weights * tau) / n_draws, weights, tau


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


def visits_in_turn(draw: Draw) -> list[np.ndarray]:
    """Return masks of the first, second, ... visit to each coordinate drawn repeatedly."""
    if draw.sizes is None:
        starts, sizes = draw.coords, np.ones(len(draw.coords), np.int64)
    else:
        starts = draw.coords[np.concatenate([[0], np.cumsum(draw.sizes)[:-1]])]
        sizes = draw.sizes
    _, first = np.unique(starts, return_index=True)
    turns = np.arange(len(starts)) - np.repeat(first, np.diff([*first, len(starts)]))
    turn_of = np.repeat(turns, sizes)
    return [turn_of == turn for turn in range(int(turns.max()) + 1)]


def part_of(draw: Draw, which: Any) -> Draw:
    """Return some of the coordinates drawn: of a unit all or none."""
    sizes = draw.sizes
    if sizes is not None and not isinstance(which, slice):
        sizes = sizes[which[np.concatenate([[0], np.cumsum(sizes)[:-1]])]]
    return Draw(draw.coords[which], draw.probs[which], sizes)
