r"""Weights that mix what a tree holds with the uniform distribution, Eq. (7).

Distributions whose leaves are weights up to a factor share these functions. Their states have the
fields ``tree`` and ``levels`` (:mod:`scgd.policies.sumtree`), ``mixing`` (the uniform share in
force) and ``n_coords``, the last two as arrays of one entry.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from scgd.compiling import njit
from scgd.policies.distinct import draw_systematic
from scgd.policies.sumtree import locate, refresh, split_uniform
from scgd.random import below
from scgd.typing import Floats, Ints

GAINS = ("average", "absolute", "square")
AVERAGE, ABSOLUTE, SQUARE = range(3)
LARGEST = 1e280
"""Rewards are clipped here, so that 1e28 of them still have a finite sum."""


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
def share(mixing):  # type: ignore[no-untyped-def]
    """Return the mixing as a share, between 0 and 1."""
    return min(max(mixing, 0.0), 1.0)


@njit(cache=True, error_model="numpy")
def mixture(dist):  # type: ignore[no-untyped-def]
    """Return (a, b) such that the weight of a leaf v is a v + b, Eq. (7); no gains are uniform."""
    total, mixing, n_coords = dist.tree[dist.levels[-2]], dist.mixing[0], dist.n_coords[0]
    if total > 0.0:
        return (1.0 - mixing) / total, mixing / n_coords
    return 0.0, 1.0 / n_coords


@njit(cache=True, error_model="numpy")
def draw(dist, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Fill ``coords`` with independent draws and ``probs`` with their weights."""
    tree, levels, n_coords = dist.tree, dist.levels, dist.n_coords[0]
    a, b = mixture(dist)
    if a == 0.0:
        for t in range(len(coords)):
            coords[t] = below(stream, n_coords)
        probs[:] = b
        return
    order = np.empty(len(coords), dtype=np.int64)
    total = tree[levels[-2]]
    n_left = split_uniform(stream, coords, probs, order, dist.mixing[0], total, n_coords)
    locate(tree, levels, coords, probs, order[:n_left])
    for t in range(len(coords)):
        probs[t] = a * tree[coords[t]] + b


@njit(cache=True)
def draw_distinct(dist, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Fill ``coords`` with distinct coordinates, ``probs`` with inclusion probability / number."""
    a, b = mixture(dist)
    draw_systematic(dist.tree, dist.levels, dist.n_coords[0], a, b, stream, coords, probs)


@njit(cache=True, error_model="numpy")
def weights(dist, out):  # type: ignore[no-untyped-def]
    """Write all current weights into ``out``, O(p)."""
    a, b = mixture(dist)
    for k in range(len(out)):
        out[k] = a * dist.tree[k] + b


def check(dist: Any, fresh: Any, fixed: Sequence[str], sizes: Sequence[str] = ()) -> None:
    """Raise ValueError unless every descent of the tree ends at a coordinate.

    All arrays must be finite, those named ``fixed`` the fresh ones, and ``sizes`` not negative.
    """
    for name, array, new in zip(dist._fields, dist, fresh, strict=True):
        if name in fixed and not np.array_equal(array, new):
            raise ValueError(f"the {name} of the distribution are another policy's")
        if not np.all(np.isfinite(array)):
            raise ValueError(f"the {name} of the distribution are not finite")
        if name in sizes and np.any(array < 0):
            raise ValueError(f"the {name} of the distribution are negative")
    check_tree(dist.tree, dist.levels, dist.mixing, int(dist.n_coords[0]))


def check_tree(tree: Floats, levels: Ints, mixing: Floats, n_coords: int) -> None:
    """Raise ValueError unless every descent of the tree ends at a coordinate."""
    if not 0 <= mixing[0] <= 1:
        raise ValueError(f"the mixing of the distribution is not a share: {mixing[0]}")
    if np.any(tree < 0) or np.any(tree[n_coords : levels[1]]):
        raise ValueError("the tree of the distribution has weights out of place")
    again = tree.copy()
    refresh(again, levels)
    if not np.allclose(again, tree, rtol=1e-9, atol=0.0):
        raise ValueError("the tree of the distribution does not add up")
