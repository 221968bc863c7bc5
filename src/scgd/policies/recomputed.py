"""Every variant of the gains, with all weights recomputed at each update, O(p).

It serves the options that follow the authors' code, and softmax weights where distinct coordinates
are drawn. The cheaper distributions of :mod:`scgd.policies.distribution` and
:mod:`scgd.policies.softmax` agree with it, by test.
"""

from math import exp
from typing import NamedTuple

import numpy as np

from scgd.compiling import njit
from scgd.policies import mixture
from scgd.policies.base import Kernels, register
from scgd.policies.mixture import GAINS, reward
from scgd.policies.sumtree import empty_tree, refresh
from scgd.typing import Floats, Ints

NORMALIZATIONS = ("l1", "softmax")
MEMORIES = ("phase", "run", "visits")
L1, SOFTMAX = range(2)
PHASE, RUN, VISITS = range(3)
# Slots of options and counts.
GAIN, NORMALIZATION, MEMORY, RESCALE = range(4)
N_PHASES, N_DRAWS = range(2)


class RecomputedDistribution(NamedTuple):
    """All rewards summed per coordinate, and a tree filled anew at every update.

    Attributes
    ----------
    n_coords, sharpness, mixing
        Arrays of one entry: p, the softmax parameter, the uniform share in force.
    options
        The codes of gain, normalization, memory and rescale.
    counts
        Phases and draws recorded so far.
    sums
        The sum of all rewards per coordinate.
    extra
        What the memory needs beside it: the sum of rewards times their phase (``"run"``), the
        number of visits (``"visits"``), nothing (``"phase"``).
    tree, levels
        The sum tree the draws descend.
    """

    n_coords: Ints
    options: Ints
    sharpness: Floats
    mixing: Floats
    counts: Ints
    sums: Floats
    extra: Floats
    tree: Floats
    levels: Ints


def recomputed_distribution(
    n_coords: int, gain: str, normalization: str, memory: str, rescale: bool, sharpness: float
) -> RecomputedDistribution:
    """Return a distribution that starts uniform."""
    tree, levels = empty_tree(n_coords)
    options = [GAINS.index(gain), NORMALIZATIONS.index(normalization), MEMORIES.index(memory)]
    return RecomputedDistribution(
        n_coords=np.array([n_coords]),
        options=np.array([*options, int(rescale)]),
        sharpness=np.array([float(sharpness)]),
        mixing=np.ones(1),
        counts=np.zeros(2, np.int64),
        sums=np.zeros(n_coords),
        extra=np.zeros(n_coords if memory != "phase" else 0),
        tree=tree,
        levels=levels,
    )


@njit(cache=True)
def update(dist, coords, probs, grads, mixing):  # type: ignore[no-untyped-def]
    """Add the rewards of a phase to the sums and recompute all weights."""
    dist.counts[N_PHASES] += 1
    dist.counts[N_DRAWS] += len(coords)
    dist.mixing[0] = mixture.share(mixing)
    record(dist, coords, probs, grads)
    refill(dist)


@njit(cache=True)
def record(dist, coords, probs, grads):  # type: ignore[no-untyped-def]
    """Add the rewards to the sums and to what else the memory needs."""
    memory, phase = dist.options[MEMORY], dist.counts[N_PHASES]
    for t in range(len(coords)):
        k = coords[t]
        earned = reward(dist.options[GAIN], grads[t], probs[t])
        dist.sums[k] += earned
        if memory == RUN:
            dist.extra[k] += phase * earned
        elif memory == VISITS:
            dist.extra[k] += 1.0


@njit(cache=True, error_model="numpy")
def total_gain(dist, k):  # type: ignore[no-untyped-def]
    r"""Return G_n of one coordinate.

    Rewards that stay count once per phase since theirs, so :math:`n T G_n = (n + 1) A - B` with
    :math:`A = \sum r` and :math:`B = \sum r \cdot \text{phase}`.
    """
    memory, n_draws = dist.options[MEMORY], max(dist.counts[N_DRAWS], 1)
    if memory == RUN:
        return ((dist.counts[N_PHASES] + 1) * dist.sums[k] - dist.extra[k]) / n_draws
    if memory == VISITS:
        return dist.sums[k] / max(dist.extra[k], 1.0)
    return dist.sums[k] / n_draws


@njit(cache=True, error_model="numpy")
def refill(dist):  # type: ignore[no-untyped-def]
    """Recompute every leaf from the total gains, O(p)."""
    tree, n_coords = dist.tree, dist.n_coords[0]
    size = 0.0
    for k in range(n_coords):
        tree[k] = total_gain(dist, k)
        size = max(size, abs(tree[k]))
    if dist.options[RESCALE] and size > 0.0:
        for k in range(n_coords):
            tree[k] = abs(tree[k]) / size
    if dist.options[NORMALIZATION] == L1:
        for k in range(n_coords):
            tree[k] = abs(tree[k])
    else:
        exponentiate(tree, dist.sharpness[0], n_coords)
    refresh(tree, dist.levels)


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


def check(dist: RecomputedDistribution, fresh: RecomputedDistribution) -> None:
    """Raise ValueError unless every descent of the tree ends at a coordinate."""
    mixture.check(dist, fresh, ("n_coords", "options", "sharpness", "levels"), ("counts",))


register(
    RecomputedDistribution,
    Kernels(mixture.draw, mixture.draw_distinct, update, mixture.weights, check),
)
