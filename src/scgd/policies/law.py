r"""The coordinate law :math:`Q(d_n)`: what a policy remembers, how it draws, how it learns.

A :class:`Law` is a named tuple of arrays, one compiled type for every variant, changed in place.
Per phase one calls ``draw`` (coordinates and the weights :math:`d_n` they were drawn with) and then
``update`` with the gradients seen (:math:`G_{n+1}` and :math:`d_{n+1}`), from Python or from
compiled code. The paper's rules cost O(touched log p) per phase; the published variants (cumulative
or rescaled gains) refresh all weights, O(p).

The kernels do not check their input; policies do.
"""

from math import exp
from typing import NamedTuple

import numpy as np

from scgd.compiling import njit
from scgd.policies.distinct import draw_equal, draw_systematic
from scgd.policies.recent import empty_memory, remember, sweep
from scgd.policies.softmax import (
    N_SLOTS,
    draw_softmax,
    empty_heavy,
    move_softmax,
    rebuild_softmax,
)
from scgd.policies.sumtree import empty_tree, locate, refresh, refresh_above, sow
from scgd.random import below
from scgd.typing import Floats, Ints

__all__ = [
    "GAINS",
    "MEMORIES",
    "NORMALIZATIONS",
    "Law",
    "draw",
    "draw_distinct",
    "fixed_law",
    "make_law",
    "recent_law",
    "uniform_law",
    "update",
    "weights",
]

GAINS = ("average", "absolute", "square")
NORMALIZATIONS = ("l1", "softmax")
MEMORIES = ("phase", "run", "visits")
AVERAGE, ABSOLUTE, SQUARE = range(3)
L1, SOFTMAX = range(2)
PHASE, RUN, VISITS = range(3)

# How a law is kept: never changed (uniform without a tree, or fixed), l1 weights in the tree,
# softmax bounds in the tree, a tree refilled at every update, or recent gradients in the tree.
UNIFORM, FIXED, TOUCHED, BOUNDED, REFILLED, RECENT = range(6)
# Slots of codes, params and counts.
KIND, GAIN, NORMALIZATION, MEMORY, RESCALE, N_COORDS = range(6)
SHARPNESS, MIXING = range(2)
N_PHASES, N_DRAWS = range(2)
# Rewards are clipped here so that sums of them stay finite.
LARGEST = 1e280


class Law(NamedTuple):
    """Everything a coordinate law knows and remembers; unused arrays are empty.

    Attributes
    ----------
    codes
        What the law is: kind, gain, normalization, memory, rescale, number of coordinates.
    params
        Sharpness, and the uniform mixture now in force.
    counts
        Phases and draws recorded so far.
    sums
        The sum of all rewards per coordinate, where it is not the leaf itself.
    extra
        Per coordinate, the rewards times their phase (memory ``"run"``) or the visits (memory
        ``"visits"``); for the exact softmax, the state of its normaliser.
    tree, levels
        The sum tree the draws descend, leaves first, and the offsets of its levels.
    heavy
        The heavy coordinates of the exact softmax.
    """

    codes: Ints
    params: Floats
    counts: Ints
    sums: Floats
    extra: Floats
    tree: Floats
    levels: Ints
    heavy: Ints


def make_law(
    n_coords: int,
    *,
    gain: str = "absolute",
    normalization: str = "l1",
    memory: str = "phase",
    rescale: bool = False,
    sharpness: float = 1.0,
    length: int = 1,
    refresh: str = "touched",
) -> Law:
    r"""Return a law that starts uniform and learns from the gradients it is shown.

    With rewards :math:`r = \text{gain}(g) / d_n` and :math:`N` draws so far, the total gain is
    :math:`G_n^{(k)} = \frac 1 N \sum r` over the draws of :math:`k`, and the weights are

    .. math:: d_n = (1 - \lambda_n) \varphi(G_n) + \lambda_n / p .

    Parameters
    ----------
    n_coords
        The dimension :math:`p`.
    gain
        What a visit earns: the gradient (``"average"``), its absolute value or its square.
    normalization
        ``"l1"``, weights proportional to :math:`|G|`, or ``"softmax"``, to :math:`\exp(\eta G)`.
    memory
        ``"phase"``, the paper: each phase counts its own rewards. ``"run"``, the published code:
        each phase counts all rewards since the start. ``"visits"``: the mean reward per visit.
    rescale
        Replace :math:`G` by :math:`|G| / \max |G|` before normalizing.
    sharpness
        The softmax parameter :math:`\eta`.
    length
        The usual number of draws per phase; only a size hint.
    refresh
        ``"all"`` recomputes every weight at each update, O(p), for any variant; ``"touched"`` only
        where needed.

    Examples
    --------
    >>> law = make_law(4, gain="square")
    >>> coords, probs = np.array([0, 2]), np.array([0.25, 0.25])
    >>> update(law, coords, probs, np.array([1.0, 2.0]), 0.2)
    >>> out = np.empty(4)
    >>> weights(law, out)
    >>> out
    array([0.21, 0.05, 0.69, 0.05])
    """
    tree, levels = empty_tree(n_coords)
    kind = REFILLED
    if refresh == "touched" and memory == "phase" and not rescale:
        kind = TOUCHED if normalization == "l1" else BOUNDED
    codes = [
        kind,
        GAINS.index(gain),
        NORMALIZATIONS.index(normalization),
        MEMORIES.index(memory),
        rescale,
        n_coords,
    ]
    n_sums = 0 if kind == TOUCHED and gain != "average" else n_coords
    n_extra = N_SLOTS if kind == BOUNDED else n_coords if memory != "phase" else 0
    law = Law(
        codes=np.array(codes, dtype=np.int64),
        params=np.array([sharpness, 1.0]),
        counts=np.zeros(2, dtype=np.int64),
        sums=np.zeros(n_sums),
        extra=np.zeros(n_extra),
        tree=tree,
        levels=levels,
        heavy=empty_heavy(length if kind == BOUNDED else 0),
    )
    if kind == BOUNDED:
        rebuild_softmax(law.tree, law.levels, law.sums, law.extra, law.heavy, 0.0)
    return law


def uniform_law(n_coords: int) -> Law:
    """Return the law that draws all coordinates equally often, for ever.

    Examples
    --------
    >>> out = np.empty(4)
    >>> weights(uniform_law(4), out)
    >>> out
    array([0.25, 0.25, 0.25, 0.25])
    """
    return frozen_law(UNIFORM, n_coords, *empty_tree(1))


def fixed_law(weights: Floats) -> Law:
    """Return the law that draws in proportion to given weights, for ever.

    Examples
    --------
    >>> out = np.empty(3)
    >>> weights(fixed_law(np.array([1.0, 0.0, 3.0])), out)
    >>> out
    array([0.25, 0.  , 0.75])
    """
    tree, levels = empty_tree(len(weights))
    tree[: len(weights)] = weights / np.sum(weights)
    refresh(tree, levels)
    return frozen_law(FIXED, len(weights), tree, levels)


def recent_law(n_coords: int, forget: float) -> Law:
    """Return the law of :class:`~scgd.policies.RecentGains`: one sweep, then recent gradients.

    Examples
    --------
    >>> law, coords, probs = recent_law(3, 0.1), np.arange(3), np.full(3, 1 / 3)
    >>> update(law, coords, probs, np.array([1.0, -1.0, 2.0]), 0.2)
    >>> out = np.empty(3)
    >>> weights(law, out)
    >>> out.round(3)
    array([0.267, 0.267, 0.467])
    """
    tree, levels = empty_tree(n_coords)
    sums, extra, heavy = empty_memory(n_coords)
    return Law(
        codes=np.array([RECENT, 0, 0, 0, 0, n_coords], dtype=np.int64),
        params=np.array([0.0, 1.0, forget]),
        counts=np.zeros(2, dtype=np.int64),
        sums=sums,
        extra=extra,
        tree=tree,
        levels=levels,
        heavy=heavy,
    )


def frozen_law(kind: int, n_coords: int, tree: Floats, levels: Ints) -> Law:
    """Return a law without memory."""
    return Law(
        codes=np.array([kind, 0, 0, 0, 0, n_coords], dtype=np.int64),
        params=np.zeros(2),
        counts=np.zeros(2, dtype=np.int64),
        sums=np.empty(0),
        extra=np.empty(0),
        tree=tree,
        levels=levels,
        heavy=np.empty(0, dtype=np.int64),
    )


@njit(cache=True, error_model="numpy")
def mixture(law):  # type: ignore[no-untyped-def]
    """Return (a, b) such that the weight of a leaf v is a v + b, Eq. (7); no gains are uniform."""
    total, mixing, n_coords = law.tree[law.levels[-2]], law.params[MIXING], law.codes[N_COORDS]
    if total > 0.0:
        return (1.0 - mixing) / total, mixing / n_coords
    return 0.0, 1.0 / n_coords


@njit(cache=True, error_model="numpy")
def draw(law, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Fill ``coords`` with independent draws and ``probs`` with their weights."""
    tree, levels, n_coords = law.tree, law.levels, law.codes[N_COORDS]
    if law.codes[KIND] == BOUNDED:
        mixing = law.params[MIXING]
        draw_softmax(tree, levels, law.sums, law.extra, mixing, stream, coords, probs)
        return
    if law.codes[KIND] == RECENT and sweep(law.heavy, stream, coords, probs):
        return
    a, b = mixture(law)
    if a == 0.0:
        for t in range(len(coords)):
            coords[t] = below(stream, n_coords)
        probs[:] = b
        return
    order = np.empty(len(coords), dtype=np.int64)
    total = tree[levels[-2]]
    n_left = sow(stream, coords, probs, order, law.params[MIXING], total, n_coords)
    locate(tree, levels, coords, probs, order[:n_left])
    for t in range(len(coords)):
        probs[t] = a * tree[coords[t]] + b


@njit(cache=True)
def draw_distinct(law, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Fill ``coords`` with distinct coordinates, ``probs`` with inclusion probability / number."""
    if law.codes[KIND] == BOUNDED:
        raise ValueError('distinct draws from softmax weights need make_law(..., refresh="all")')
    if law.codes[KIND] == UNIFORM:
        draw_equal(law.codes[N_COORDS], stream, coords, probs)
    elif law.codes[KIND] != RECENT or not sweep(law.heavy, stream, coords, probs):
        a, b = mixture(law)
        draw_systematic(law.tree, law.levels, law.codes[N_COORDS], a, b, stream, coords, probs)


@njit(cache=True)
def reward(gain, grad, prob):  # type: ignore[no-untyped-def]
    """Return gain(g) / d, Eq. (5) and (6), clipped; an undefined gradient earns nothing."""
    if gain == ABSOLUTE:
        grad = abs(grad)
    elif gain == SQUARE:
        grad = grad * grad
    earned = grad / prob
    return min(max(earned, -LARGEST), LARGEST) if earned == earned else 0.0


@njit(cache=True)
def update(law, coords, probs, grads, mixing):  # type: ignore[no-untyped-def]
    """End a phase: add the rewards of its draws to the gains and set the weights of the next."""
    kind = law.codes[KIND]
    if kind == UNIFORM or kind == FIXED:
        return
    law.counts[N_PHASES] += 1
    law.counts[N_DRAWS] += len(coords)
    law.params[MIXING] = min(max(mixing, 0.0), 1.0)
    if kind == TOUCHED:
        touch(law, coords, probs, grads)
    elif kind == RECENT:
        remember(law.params, law.sums, law.extra, law.tree, coords, grads)
        refresh_above(law.tree, law.levels, coords)
    elif kind == BOUNDED:
        rewards = np.empty(len(coords))
        for t in range(len(coords)):
            rewards[t] = reward(law.codes[GAIN], grads[t], probs[t])
        x = law.params[SHARPNESS] / max(law.counts[N_DRAWS], 1)
        move_softmax(law.tree, law.levels, law.sums, law.extra, law.heavy, x, coords, rewards)
    else:
        record(law, coords, probs, grads)
        refill(law)


@njit(cache=True)
def touch(law, coords, probs, grads):  # type: ignore[no-untyped-def]
    """Keep the leaves |S|: the scale N of the total gain S / N cancels in l1 weights."""
    tree, sums, gain = law.tree, law.sums, law.codes[GAIN]
    for t in range(len(coords)):
        k = coords[t]
        if gain == AVERAGE:
            sums[k] += reward(gain, grads[t], probs[t])
            tree[k] = abs(sums[k])
        else:
            tree[k] += reward(gain, grads[t], probs[t])
    refresh_above(tree, law.levels, coords)


@njit(cache=True)
def record(law, coords, probs, grads):  # type: ignore[no-untyped-def]
    """Add the rewards to the sums and to what else the memory needs."""
    memory, phase = law.codes[MEMORY], law.counts[N_PHASES]
    for t in range(len(coords)):
        k = coords[t]
        earned = reward(law.codes[GAIN], grads[t], probs[t])
        law.sums[k] += earned
        if memory == RUN:
            law.extra[k] += phase * earned
        elif memory == VISITS:
            law.extra[k] += 1.0


@njit(cache=True, error_model="numpy")
def total_gain(law, k):  # type: ignore[no-untyped-def]
    r"""Return G_n of one coordinate.

    Rewards that stay count once per phase since theirs, so :math:`n T G_n = (n + 1) A - B` with
    :math:`A = \sum r` and :math:`B = \sum r \cdot \text{phase}`.
    """
    memory, n_draws = law.codes[MEMORY], max(law.counts[N_DRAWS], 1)
    if memory == RUN:
        return ((law.counts[N_PHASES] + 1) * law.sums[k] - law.extra[k]) / n_draws
    if memory == VISITS:
        return law.sums[k] / max(law.extra[k], 1.0)
    return law.sums[k] / n_draws


@njit(cache=True, error_model="numpy")
def refill(law):  # type: ignore[no-untyped-def]
    """Recompute every leaf from the total gains, O(p)."""
    tree, n_coords = law.tree, law.codes[N_COORDS]
    size = 0.0
    for k in range(n_coords):
        tree[k] = total_gain(law, k)
        size = max(size, abs(tree[k]))
    if law.codes[RESCALE] and size > 0.0:
        for k in range(n_coords):
            tree[k] = abs(tree[k]) / size
    if law.codes[NORMALIZATION] == L1:
        for k in range(n_coords):
            tree[k] = abs(tree[k])
    else:
        exponentiate(tree, law.params[SHARPNESS], n_coords)
    refresh(tree, law.levels)


@njit(cache=True)
def exponentiate(gains, sharpness, n_coords):  # type: ignore[no-untyped-def]
    """Replace gains by their softmax, up to a factor, and return the sum."""
    highest, total = gains[0], 0.0
    for k in range(n_coords):
        highest = max(highest, gains[k])
    for k in range(n_coords):
        gains[k] = exp(sharpness * (gains[k] - highest))
        total += gains[k]
    return total


@njit(cache=True, error_model="numpy")
def weights(law, out):  # type: ignore[no-untyped-def]
    """Write all current weights into ``out``, O(p).

    Examples
    --------
    >>> out = np.empty(2)
    >>> weights(fixed_law(np.array([2.0, 6.0])), out)
    >>> out
    array([0.25, 0.75])
    """
    if law.codes[KIND] == UNIFORM:
        out[:] = 1.0 / law.codes[N_COORDS]
    elif law.codes[KIND] == BOUNDED:
        for k in range(len(out)):
            out[k] = law.sums[k]
        x = law.params[SHARPNESS] / max(law.counts[N_DRAWS], 1)
        a = (1.0 - law.params[MIXING]) / exponentiate(out, x, len(out))
        for k in range(len(out)):
            out[k] = a * out[k] + law.params[MIXING] / len(out)
    else:
        a, b = mixture(law)
        for k in range(len(out)):
            out[k] = a * law.tree[k] + b
