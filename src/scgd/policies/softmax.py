r"""Draw exactly from softmax weights without touching all coordinates.

With :math:`S` the sum of all rewards over :math:`N` draws, the weights are
:math:`\exp(x S_k) / Z(x)` with :math:`x = \eta / N`. Every phase changes :math:`x`, hence every
weight, yet only the visited sums move. Between rebuilds at :math:`x_0`, valid down to :math:`x_1`:

* the tree holds upper bounds of the weights over :math:`[x_1, x_0]`, and a draw is accepted with
  the ratio of weight to bound;
* the normaliser comes from its Taylor series,
  :math:`Z(x) = \sum_j (x - x_0)^j / j! \; \sum_k S_k^j e^{x_0 S_k}`, whose moments a visit updates
  in O(1); :math:`|S_k| (x_0 - x_1) \le 1/2` makes it exact to rounding;
* the few heavy coordinates that break this bound are set exactly in the tree every phase.

A rebuild costs O(p) and comes when :math:`x` leaves the interval (after :math:`N` has grown by a
factor), when too many coordinates are heavy, or when a fall of :math:`Z` would cancel digits.
"""

from math import exp
from typing import NamedTuple

import numpy as np

from scgd.compiling import njit
from scgd.policies import mixture
from scgd.policies.base import Kernels, register
from scgd.policies.mixture import GAINS, reward
from scgd.policies.recomputed import exponentiate
from scgd.policies.sumtree import empty_tree, locate, refresh, refresh_above, split_uniform
from scgd.random import uniform
from scgd.typing import Floats, Ints

N_MOMENTS = 14
"""Terms of the Taylor series: with |S| (x0 - x1) at most LIGHT the next is below LIGHT**14 / 14!,
some 1e-15 of the sum."""
# Slots of the series: the current, first and last x, the shift of all exponents, Z(x) and its peak;
# then the moments and the increments of one phase.
X, FIRST, LAST, SHIFT, NORMALISER, PEAK, MOMENTS = range(7)
INCREMENTS = MOMENTS + N_MOMENTS
N_SLOTS = INCREMENTS + N_MOMENTS
# Slots of the heavy set: its size, the number of rebuilds so far, then the coordinates.
SIZE, REBUILDS, HEAVY = range(3)
LIGHT = 0.5
"""The largest |S| (x0 - x1) of a coordinate whose weight the series follows."""
SHORTEST, NARROWING = 0.25, 0.7
"""The least part of x0 that an interval goes down to (a rebuild costs O(p), and x falls like 1/N:
N grows fourfold between two at best), and by what it narrows while too many are heavy."""
CANCELLATION, HIGHEST = 1e-3, 1e30
"""Z over its peak below which three digits are lost to cancellation, and Z beyond which its terms
might overflow: then it is rebuilt."""


class SoftmaxDistribution(NamedTuple):
    """The sums of rewards, bounds of their weights, and the series of their normaliser.

    Attributes
    ----------
    n_coords, gain, sharpness, mixing, n_draws
        Arrays of one entry: p, the place of the gain in ``GAINS``, the softmax parameter, the
        uniform share in force, and the draws recorded so far.
    sums
        The sum of all rewards per coordinate.
    tree, levels
        The sum tree over the bounds.
    series
        The interval of x, the normaliser and its Taylor moments.
    heavy
        The number of heavy coordinates, of rebuilds, and the heavy coordinates.
    """

    n_coords: Ints
    gain: Ints
    sharpness: Floats
    mixing: Floats
    n_draws: Ints
    sums: Floats
    tree: Floats
    levels: Ints
    series: Floats
    heavy: Ints


def softmax_distribution(
    n_coords: int, gain: str, sharpness: float, length: int
) -> SoftmaxDistribution:
    """Return a distribution that starts uniform, with room for two phases of heavy coordinates."""
    tree, levels = empty_tree(n_coords)
    dist = SoftmaxDistribution(
        n_coords=np.array([n_coords]),
        gain=np.array([GAINS.index(gain)]),
        sharpness=np.array([float(sharpness)]),
        mixing=np.ones(1),
        n_draws=np.zeros(1, np.int64),
        sums=np.zeros(n_coords),
        tree=tree,
        levels=levels,
        series=np.zeros(N_SLOTS),
        heavy=np.zeros(HEAVY + max(2 * length, 16), np.int64),
    )
    rebuild_softmax(dist.tree, dist.levels, dist.sums, dist.series, dist.heavy, 0.0)
    return dist


@njit(cache=True)
def draw(dist, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Fill ``coords`` with independent draws and ``probs`` with their weights."""
    mixing = dist.mixing[0]
    draw_softmax(dist.tree, dist.levels, dist.sums, dist.series, mixing, stream, coords, probs)


@njit(cache=True)
def draw_distinct(dist, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Refuse: systematic sampling needs the weights themselves in the tree."""
    raise ValueError(
        'distinct draws from softmax weights need make_distribution(..., refresh="all")'
    )


@njit(cache=True)
def update(dist, coords, probs, grads, mixing):  # type: ignore[no-untyped-def]
    """Add the rewards of a phase to the sums and move to its x."""
    dist.n_draws[0] += len(coords)
    dist.mixing[0] = mixture.share(mixing)
    rewards = np.empty(len(coords))
    for t in range(len(coords)):
        rewards[t] = reward(dist.gain[0], grads[t], probs[t])
    x = dist.sharpness[0] / max(dist.n_draws[0], 1)
    move_softmax(dist.tree, dist.levels, dist.sums, dist.series, dist.heavy, x, coords, rewards)


@njit(cache=True, error_model="numpy")
def weights(dist, out):  # type: ignore[no-untyped-def]
    """Write all current weights into ``out``, O(p)."""
    for k in range(len(out)):
        out[k] = dist.sums[k]
    x = dist.sharpness[0] / max(dist.n_draws[0], 1)
    a = (1.0 - dist.mixing[0]) / exponentiate(out, x, len(out))
    for k in range(len(out)):
        out[k] = a * out[k] + dist.mixing[0] / len(out)


@njit(cache=True)
def bound_ratio(s, state):  # type: ignore[no-untyped-def]
    """Return the ratio of the weight of a sum ``s`` to its bound in the tree."""
    if s == 0.0 or abs(s) * (state[FIRST] - state[LAST]) > LIGHT:
        return 1.0
    return exp(s * (state[X] - (state[FIRST] if s > 0.0 else state[LAST])))


@njit(cache=True, error_model="numpy")
def draw_softmax(tree, levels, sums, state, mixing, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Fill ``coords`` and ``probs`` with independent draws: bounds by the tree, then rejection."""
    n_coords, total = len(sums), tree[levels[-2]]
    order = np.empty(len(coords), dtype=np.int64)
    n_left = split_uniform(stream, coords, probs, order, mixing, total, n_coords)
    while n_left > 0:
        locate(tree, levels, coords, probs, order[:n_left])
        n_rejected = 0
        for t in order[:n_left]:
            if uniform(stream) >= bound_ratio(sums[coords[t]], state):
                coords[t], probs[t] = 0, uniform(stream) * total
                order[n_rejected] = t
                n_rejected += 1
        n_left = n_rejected
    for t in range(len(coords)):
        k = coords[t]
        share = tree[k] * bound_ratio(sums[k], state) / state[NORMALISER]
        probs[t] = (1.0 - mixing) * share + mixing / n_coords  # Eq. (7)


@njit(cache=True)
def move_softmax(tree, levels, sums, state, heavy, x, coords, rewards):  # type: ignore[no-untyped-def]
    """Add rewards to the sums and move to ``x``, rebuilding only when the bounds are spent."""
    spent = not state[LAST] <= x <= state[FIRST]
    state[X] = x
    for t in range(len(coords)):
        k = coords[t]
        old = sums[k]
        sums[k] = old + rewards[t]
        spent = spent or not shift_weight(tree, state, heavy, k, old, sums[k])
    if not spent:
        add_increments(state)
        set_heavy(tree, sums, state, heavy)
        refresh_above(tree, levels, coords)
        refresh_above(tree, levels, heavy[HEAVY : HEAVY + heavy[SIZE]])
        spent = not settle(tree, state, heavy)
    if spent:
        rebuild_softmax(tree, levels, sums, state, heavy, x)


@njit(cache=True)
def shift_weight(tree, state, heavy, k, old, new):  # type: ignore[no-untyped-def]
    """Replace the sum of one coordinate in moments, bounds and heavy set; False if it cannot."""
    width = state[FIRST] - state[LAST]
    was_heavy, is_heavy = abs(old) * width > LIGHT, abs(new) * width > LIGHT
    if not was_heavy:
        add_moments(state, old, -1.0)
    if not is_heavy:
        add_moments(state, new, 1.0)
        tree[k] = bound(new, state)
    if was_heavy == is_heavy:
        return True
    members = heavy[HEAVY:]
    size = heavy[SIZE]
    if is_heavy:
        if size == len(members):
            return False
        members[size] = k
        heavy[SIZE] += 1
        return True
    i = 0
    while members[i] != k:
        i += 1
    members[i] = members[size - 1]
    heavy[SIZE] -= 1
    return True


@njit(cache=True)
def add_moments(state, s, sign):  # type: ignore[no-untyped-def]
    """Add one light sum to the increments of the moments, in units of the width of the interval."""
    step = s * (state[FIRST] - state[LAST])
    term = sign * exp(s * state[FIRST] - state[SHIFT])
    for j in range(N_MOMENTS):
        state[INCREMENTS + j] += term
        term *= step


@njit(cache=True)
def add_increments(state):  # type: ignore[no-untyped-def]
    """Add the increments to the moments at once, so that rounding grows with phases, not visits."""
    for j in range(N_MOMENTS):
        state[MOMENTS + j] += state[INCREMENTS + j]
        state[INCREMENTS + j] = 0.0


@njit(cache=True)
def bound(s, state):  # type: ignore[no-untyped-def]
    """Return the largest weight a light sum ``s`` has between LAST and FIRST."""
    return exp(s * (state[FIRST] if s >= 0.0 else state[LAST]) - state[SHIFT])


@njit(cache=True)
def set_heavy(tree, sums, state, heavy):  # type: ignore[no-untyped-def]
    """Put the exact weights of the heavy coordinates into the leaves."""
    for i in range(HEAVY, HEAVY + heavy[SIZE]):
        k = heavy[i]
        tree[k] = exp(sums[k] * state[X] - state[SHIFT])


@njit(cache=True, error_model="numpy")
def settle(tree, state, heavy):  # type: ignore[no-untyped-def]
    """Compute the normaliser; False if it left the range where all its digits are good."""
    gone, width = state[X] - state[FIRST], state[FIRST] - state[LAST]
    step = gone / width if gone < 0.0 else 0.0
    total = 0.0
    for j in range(N_MOMENTS - 1, -1, -1):
        total = total * step / (j + 1) + state[MOMENTS + j]
    for i in range(HEAVY, HEAVY + heavy[SIZE]):
        total += tree[heavy[i]]
    state[NORMALISER] = total
    state[PEAK] = max(state[PEAK], total, state[MOMENTS])
    return CANCELLATION * state[PEAK] <= total <= HIGHEST


@njit(cache=True)
def rebuild_softmax(tree, levels, sums, state, heavy, x):  # type: ignore[no-untyped-def]
    """Start a new interval at ``x``: shift, bounds, moments and heavy set from the sums, O(p)."""
    state[X] = state[FIRST] = x
    state[LAST] = x - interval_width(sums, x, (len(heavy) - HEAVY) // 2)
    highest = sums[0]
    for k in range(len(sums)):
        highest = max(highest, sums[k])
    state[SHIFT] = x * highest
    for slot in range(PEAK, N_SLOTS):
        state[slot] = 0.0
    width, size, n_zeros = state[FIRST] - state[LAST], 0, 0
    untouched = exp(-state[SHIFT])
    for k in range(len(sums)):
        s = sums[k]
        if s == 0.0:
            tree[k] = untouched
            n_zeros += 1
        elif abs(s) * width > LIGHT:
            heavy[HEAVY + size] = k
            size += 1
        else:
            tree[k] = bound(s, state)
            add_moments(state, s, 1.0)
    heavy[SIZE] = size
    heavy[REBUILDS] += 1
    add_increments(state)
    state[MOMENTS] += n_zeros * untouched
    set_heavy(tree, sums, state, heavy)
    refresh(tree, levels)
    settle(tree, state, heavy)


@njit(cache=True)
def interval_width(sums, x, n_most):  # type: ignore[no-untyped-def]
    """Return a width of the interval below ``x`` that leaves at most ``n_most`` heavy."""
    width = (1.0 - SHORTEST) * x
    while True:
        n_heavy = 0
        for k in range(len(sums)):
            n_heavy += abs(sums[k]) * width > LIGHT
        if n_heavy <= n_most:
            return width
        width *= NARROWING


def check(dist: SoftmaxDistribution, fresh: SoftmaxDistribution) -> None:
    """Raise ValueError unless bounds, heavy set and normaliser are those of the sums.

    Draws are rejected by the bounds and heavy coordinates are searched for in the heavy set, so
    wrong ones would be loops without end.
    """
    mixture.check(dist, fresh, ("n_coords", "gain", "sharpness", "levels"), ("n_draws",))
    check_bounds(dist)


def check_bounds(dist: SoftmaxDistribution) -> None:
    """Raise ValueError unless the leaves are the bounds of the sums, with their normaliser."""
    series, heavy, sums = dist.series, dist.heavy, dist.sums
    x, first, last, shift = series[X], series[FIRST], series[LAST], series[SHIFT]
    if not 0 <= last <= x <= first:
        raise ValueError("the softmax has left its interval")
    light = np.abs(sums) * (first - last) <= LIGHT
    if not 0 <= heavy[SIZE] <= len(heavy) - HEAVY:
        raise ValueError("the heavy set of the softmax has no room")
    if not np.array_equal(np.sort(heavy[HEAVY : HEAVY + heavy[SIZE]]), np.flatnonzero(~light)):
        raise ValueError("the heavy set of the softmax has other members")
    ends = np.where(light, np.where(sums >= 0, first, last), x)
    with np.errstate(over="ignore"):
        bounds, shares = np.exp(sums * ends - shift), np.exp(sums * x - shift)
    if not np.allclose(dist.tree[: len(sums)], bounds, rtol=1e-9, atol=0.0):
        raise ValueError("the bounds of the softmax are not those of its sums")
    if not np.isclose(series[NORMALISER], shares.sum(), rtol=1e-6):
        raise ValueError("the normaliser of the softmax is not the sum of its weights")
    if np.any(series[INCREMENTS:]):
        raise ValueError("the moments of the softmax are those of a phase in progress")


register(SoftmaxDistribution, Kernels(draw, draw_distinct, update, weights, check))
