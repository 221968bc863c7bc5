r"""The coordinate distribution :math:`Q(d_n)`: what a policy remembers, draws and learns.

A distribution is a named tuple of arrays, changed in place; there is one type per way of keeping
the weights (:class:`~scgd.policies.fixed.UniformDistribution`,
:class:`~scgd.policies.fixed.FixedDistribution`, :class:`L1Distribution`,
:class:`~scgd.policies.softmax.SoftmaxDistribution`,
:class:`~scgd.policies.recomputed.RecomputedDistribution`). Per phase one calls ``draw``
(coordinates and the weights :math:`d_n` they were drawn with) and then ``update`` with the
gradients seen (:math:`G_{n+1}` and :math:`d_{n+1}`), from Python or from compiled code. The paper's
rules cost O(touched log p) per phase; the published variants (cumulative or rescaled gains) refresh
all weights, O(p).

The kernels do not check their input; policies do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scgd.compiling import njit
from scgd.policies import mixture
from scgd.policies.base import Kernels, register
from scgd.policies.mixture import AVERAGE, GAINS, reward
from scgd.policies.recomputed import RecomputedDistribution, recomputed_distribution
from scgd.policies.softmax import SoftmaxDistribution, softmax_distribution
from scgd.policies.sumtree import empty_tree, refresh_above
from scgd.typing import Floats, Ints


class L1Distribution(NamedTuple):
    """The leaves are |S|, S the sum of all rewards: the scale N of the gain S / N cancels in l1.

    Attributes
    ----------
    n_coords, gain, mixing
        Arrays of one entry: p, the place of the gain in ``GAINS``, the uniform share in force.
    signed
        S itself, for the average gain, whose rewards have signs; else empty.
    tree, levels
        The sum tree over the leaves.
    """

    n_coords: Ints
    gain: Ints
    mixing: Floats
    signed: Floats
    tree: Floats
    levels: Ints


def l1_distribution(n_coords: int, gain: str) -> L1Distribution:
    """Return a distribution that starts uniform."""
    tree, levels = empty_tree(n_coords)
    return L1Distribution(
        n_coords=np.array([n_coords]),
        gain=np.array([GAINS.index(gain)]),
        mixing=np.ones(1),
        signed=np.zeros(n_coords if gain == "average" else 0),
        tree=tree,
        levels=levels,
    )


@njit(cache=True)
def learn(dist, coords, probs, grads, mixing):  # type: ignore[no-untyped-def]
    """Add the rewards of a phase to the sums and set the visited leaves."""
    tree, signed, gain = dist.tree, dist.signed, dist.gain[0]
    dist.mixing[0] = mixture.share(mixing)
    for t in range(len(coords)):
        k = coords[t]
        if gain == AVERAGE:
            signed[k] += reward(gain, grads[t], probs[t])
            tree[k] = abs(signed[k])
        else:
            tree[k] += reward(gain, grads[t], probs[t])
    refresh_above(tree, dist.levels, coords)


def check_l1(dist: L1Distribution, fresh: L1Distribution) -> None:
    """Raise ValueError unless every descent of the tree ends at a coordinate."""
    mixture.check(dist, fresh, ("n_coords", "gain", "levels"))
    if len(dist.signed) and not np.array_equal(np.abs(dist.signed), dist.tree[: len(dist.signed)]):
        raise ValueError("the leaves of the distribution are not the sizes of its sums")


register(
    L1Distribution,
    Kernels(mixture.draw, mixture.draw_distinct, learn, mixture.weights, check_l1),
)


def make_distribution(
    n_coords: int,
    *,
    gain: str = "absolute",
    normalization: str = "l1",
    memory: str = "phase",
    rescale: bool = False,
    sharpness: float = 1.0,
    length: int = 1,
    refresh: str = "touched",
) -> L1Distribution | SoftmaxDistribution | RecomputedDistribution:
    """Return a distribution that starts uniform and learns from the gradients it is shown.

    Parameters
    ----------
    n_coords
        The dimension.
    gain, normalization, memory, rescale, sharpness
        As of :class:`~scgd.Musketeer`.
    length
        The usual number of draws per phase; only a size hint.
    refresh
        ``"all"`` recomputes every weight at each update, O(p), for any variant; ``"touched"`` only
        where needed.

    Examples
    --------
    >>> from scgd.policies.base import update, weights
    >>> dist = make_distribution(4, gain="square")
    >>> coords, probs = np.array([0, 2]), np.array([0.25, 0.25])
    >>> update(dist, coords, probs, np.array([1.0, 2.0]), 0.2)
    >>> out = np.empty(4)
    >>> weights(dist, out)
    >>> out
    array([0.21, 0.05, 0.69, 0.05])
    """
    if refresh == "all" or memory != "phase" or rescale:
        return recomputed_distribution(n_coords, gain, normalization, memory, rescale, sharpness)
    if normalization == "l1":
        return l1_distribution(n_coords, gain)
    return softmax_distribution(n_coords, gain, sharpness, length)
