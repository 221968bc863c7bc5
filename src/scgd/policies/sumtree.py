"""An 8-ary sum tree: draw from changing weights in O(log n).

The tree is one array of levels. The leaves come first, so ``tree[k]`` is the weight of coordinate
``k``; entry ``i`` of level ``l`` (at ``levels[l] + i``) sums entries ``8 i`` to ``8 i + 7`` of the
level below; the last level is the total alone. Eight floats are one cache line, so a step
down reads one line. Parents are always recomputed from their children, never incremented, so the
tree does not drift. Many draws descend together, level by level and without branches, so that
their cache misses overlap.
"""

import numpy as np

from scgd.compiling import njit
from scgd.random import uniform
from scgd.typing import Floats, Ints

BELOW_ONE = 1.0 - 2.0**-53
"""The largest number below 1: a target at the very end of a node stays inside it."""
FLOATS_PER_LINE = 8
"""A cache line has 64 bytes: a node and its eight children are one line each."""


def empty_tree(n_leaves: int) -> tuple[Floats, Ints]:
    """Return a tree of zeros aligned to cache lines, and the offsets of its levels.

    Examples
    --------
    >>> tree, levels = empty_tree(20)
    >>> levels
    array([ 0, 24, 32, 40])
    >>> tree[:20] = 1.0
    >>> refresh(tree, levels)
    >>> tree[24:27], float(tree[32])
    (array([8., 8., 4.]), 20.0)
    """
    offsets, size = [0], n_leaves
    while size > 1 or len(offsets) == 1:
        offsets.append(offsets[-1] + -(-size // 8) * 8)
        size = -(-size // 8)
    length = offsets[-1] + 8
    room = np.zeros(length + FLOATS_PER_LINE)
    start = (-room.ctypes.data % 64) // 8
    return room[start : start + length], np.array([*offsets, length])


@njit(cache=True)
def sum_of_eight(tree, start):  # type: ignore[no-untyped-def]
    """Add eight entries from left to right, the order in which a descent meets them."""
    total = tree[start]
    for j in range(1, 8):
        total += tree[start + j]
    return total


@njit(cache=True)
def refresh(tree, levels):  # type: ignore[no-untyped-def]
    """Recompute every parent, O(n)."""
    for level in range(1, len(levels) - 1):
        refresh_level(tree, levels, level)


@njit(cache=True)
def refresh_level(tree, levels, level):  # type: ignore[no-untyped-def]
    """Recompute all entries of one level from the level below."""
    below, here = levels[level - 1], levels[level]
    for i in range((here - below) >> 3):
        tree[here + i] = sum_of_eight(tree, below + 8 * i)


@njit(cache=True)
def refresh_above(tree, levels, coords):  # type: ignore[no-untyped-def]
    """Recompute the parents of some leaves, O(len(coords) log n)."""
    for level in range(1, len(levels) - 1):
        below, here = levels[level - 1], levels[level]
        if (here - below) >> 3 <= len(coords):
            refresh_level(tree, levels, level)
            continue
        for t in range(len(coords)):
            i = coords[t] >> (3 * level)
            tree[here + i] = sum_of_eight(tree, below + 8 * i)


@njit(cache=True, error_model="numpy")
def split_uniform(stream, coords, targets, order, mixing, total, n_coords):  # type: ignore[no-untyped-def]
    """Settle the uniform part of the mixture and list the draws left to the tree in ``order``.

    One uniform per draw serves both the coin and what follows it. Returns the length of the list.
    """
    flat = n_coords / mixing if mixing > 0.0 else 0.0
    steep = total / (1.0 - mixing) if mixing < 1.0 else 0.0
    n_left = 0
    for t in range(len(coords)):
        u = uniform(stream)
        coords[t] = min(np.int64(u * flat), n_coords - 1) if u < mixing else 0
        targets[t] = (u - mixing) * steep
        order[n_left] = t
        n_left += u >= mixing
    return n_left


@njit(cache=True)
def locate(tree, levels, coords, targets, order):  # type: ignore[no-untyped-def]
    """Send the draws in ``order`` down from the root: ``coords`` becomes the leaves reached.

    A target in [0, total) falls into the leaf whose interval of the cumulative sum contains it.
    Clipping it below the child's sum keeps rounding from ever reaching a leaf of weight zero.
    Read as unsigned integers, floats keep their order and negative ones are largest: so the sign
    bit counts the children passed and an integer minimum finds what is left of the target, where a
    comparison of floats would compile to a branch (three times slower).
    """
    for level in range(len(levels) - 2, 0, -1):
        below, here = levels[level - 1], levels[level]
        for i in range(len(order)):
            t = np.uint64(order[i])
            node = coords[t]
            rest = min(targets[t], tree[np.uint64(here + node)] * BELOW_ONE)
            start, child = np.uint64(below + 8 * node), np.uint64(8 * node + 7)
            reach, left = 0.0, np.float64(rest).view(np.uint64)
            for j in range(np.uint64(7)):
                reach += tree[start + np.uint64(j)]
                bits = np.float64(rest - reach).view(np.uint64)
                child -= bits >> np.uint64(63)
                left = min(left, bits)
            coords[t] = child
            targets[t] = np.uint64(left).view(np.float64)
