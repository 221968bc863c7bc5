r"""Draw coordinates in proportion to what they brought lately, after one systematic sweep.

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

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from scgd.checks import number, settle
from scgd.compiling import njit
from scgd.policies import mixture
from scgd.policies.base import CompiledPolicy, Kernels, register
from scgd.policies.sumtree import empty_tree, refresh_above
from scgd.random import below
from scgd.schedules import Schedule
from scgd.typing import Floats, Ints

SHARED_FORGET = 0.002
"""The weight of a visit in the size that is typical of all coordinates: an average over 500 visits,
many times those that one coordinate has."""


class RecentDistribution(NamedTuple):
    r"""Averages over the last visits of each coordinate, and the order of the first pass.

    Attributes
    ----------
    n_coords, mixing, forget, progress
        Arrays of one entry: p, the uniform share in force, the least weight of a visit in an
        average, and the part of the budget that is used.
    order, n_swept, shuffled
        The coordinates in the order of the first pass; how many of them are drawn (a multiple of
        the phase, so possibly more than p at the end); whether the order has been drawn.
    size, mean, square, visits
        Averages of :math:`|g|`, g and :math:`g^2`, and the visits, per coordinate.
    typical, n_visits
        The average of :math:`\sqrt{\overline{g^2}}` over all visits, and their number.
    tree, levels
        The sum tree over the scores.
    """

    n_coords: Ints
    mixing: Floats
    forget: Floats
    progress: Floats
    order: Ints
    n_swept: Ints
    shuffled: Ints
    size: Floats
    mean: Floats
    square: Floats
    visits: Floats
    typical: Floats
    n_visits: Floats
    tree: Floats
    levels: Ints


@dataclass(frozen=True)
class RecentGains(CompiledPolicy):
    r"""Visit every coordinate once, then draw in proportion to recent gradients.

    The scores (:mod:`scgd.policies.recent`) are averages over about the last ten visits: the mean
    slope at the start of a run, the root of the expected decrease at its end. Two weaknesses of the
    published rule go with it: weights that remember a coordinate's first draws for ever, and
    weights of coordinates never seen.

    Parameters
    ----------
    mixing
        The share of uniform draws: every coordinate keeps a probability of at least ``mixing / p``.
    beta
        How slowly a coordinate's averages forget, per visit.

    Examples
    --------
    >>> policy = RecentGains()
    >>> state = policy.init(3)
    >>> policy.weights(state).round(3)
    array([0.333, 0.333, 0.333])
    >>> policy.update(state, np.arange(3), np.full(3, 1 / 3), np.array([1.0, -1.0, 2.0]), 0.2)
    >>> policy.weights(state).round(3)
    array([0.267, 0.267, 0.467])
    """

    mixing: float | Schedule = 0.1
    beta: float = 0.9

    def __post_init__(self) -> None:
        if not callable(self.mixing):
            settle(self, mixing=number(self.mixing, "mixing", 0, 1, ends="(]"))
        settle(self, beta=number(self.beta, "beta", 0, 1, ends="[)"))

    def init(self, n_coords: int, replace: bool = True) -> RecentDistribution:
        """Return a fresh state."""
        tree, levels = empty_tree(n_coords)
        return RecentDistribution(
            n_coords=np.array([n_coords]),
            mixing=np.ones(1),
            forget=np.array([1.0 - self.beta]),
            progress=np.zeros(1),
            order=np.arange(n_coords),
            n_swept=np.zeros(1, np.int64),
            shuffled=np.zeros(1, np.int64),
            size=np.zeros(n_coords),
            mean=np.zeros(n_coords),
            square=np.zeros(n_coords),
            visits=np.zeros(n_coords),
            typical=np.zeros(1),
            n_visits=np.zeros(1),
            tree=tree,
            levels=levels,
        )

    def pace(self, state: RecentDistribution, progress: float) -> None:
        """Turn from the slope to the expected decrease as the budget is used."""
        state.progress[0] = progress


@njit(cache=True)
def sweep(dist, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Fill ``coords`` from the first pass, wrapping at its end; False when it is over."""
    order, n_coords, here = dist.order, dist.n_coords[0], dist.n_swept[0]
    if here >= n_coords:
        return False
    if dist.shuffled[0] == 0:
        dist.shuffled[0] = 1
        for i in range(n_coords - 1, 0, -1):
            j = below(stream, i + 1)
            order[i], order[j] = order[j], order[i]
    for t in range(len(coords)):
        coords[t] = order[(here + t) % n_coords]
        probs[t] = 1.0 / n_coords
    dist.n_swept[0] = here + len(coords)
    return True


@njit(cache=True)
def draw(dist, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Fill ``coords`` from the sweep or, after it, with independent draws."""
    if not sweep(dist, stream, coords, probs):
        mixture.draw(dist, stream, coords, probs)


@njit(cache=True)
def draw_distinct(dist, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Fill ``coords`` from the sweep or, after it, with distinct draws."""
    if not sweep(dist, stream, coords, probs):
        mixture.draw_distinct(dist, stream, coords, probs)


@njit(cache=True)
def update(dist, coords, probs, grads, mixing):  # type: ignore[no-untyped-def]
    """Let the averages of the visited coordinates forget a little and set their leaves."""
    size, mean, square, visits = dist.size, dist.mean, dist.square, dist.visits
    dist.mixing[0] = mixture.share(mixing)
    for i in range(len(coords)):
        k, grad = coords[i], grads[i]
        visits[k] += 1.0
        weight = max(1.0 / visits[k], dist.forget[0])
        size[k] += weight * (abs(grad) - size[k])
        mean[k] += weight * (grad - mean[k])
        square[k] += weight * (grad * grad - square[k])
        dist.n_visits[0] += 1.0
        weight = max(1.0 / dist.n_visits[0], SHARED_FORGET)
        dist.typical[0] += weight * (sqrt(square[k]) - dist.typical[0])
    for i in range(len(coords)):
        k = coords[i]
        dist.tree[k] = score(size[k], mean[k], square[k], dist.typical[0], dist.progress[0])
    refresh_above(dist.tree, dist.levels, coords)


@njit(cache=True)
def score(size, mean, square, typical, progress):  # type: ignore[no-untyped-def]
    """Return what a draw of this coordinate is worth, in units of the gradient."""
    if square == 0.0:
        return 0.0
    late = abs(mean) * sqrt(typical / sqrt(square))
    return size ** (1.0 - progress) * late**progress


def check(dist: RecentDistribution, fresh: RecentDistribution) -> None:
    """Raise ValueError unless the sweep holds every coordinate once and the tree adds up."""
    sizes = ("progress", "n_swept", "size", "square", "visits", "typical", "n_visits")
    mixture.check(dist, fresh, ("n_coords", "forget", "levels"), sizes)
    if dist.shuffled[0] not in (0, 1):
        raise ValueError("the order of the sweep is drawn or not: shuffled is 0 or 1")
    if not np.array_equal(np.sort(dist.order), fresh.order):
        raise ValueError("the order of the sweep does not hold every coordinate once")


register(RecentDistribution, Kernels(draw, draw_distinct, update, mixture.weights, check))
