r"""Draw several distinct coordinates with known inclusion probabilities.

Systematic sampling: lay the weights end to end, throw a comb of equally spaced points with one
random offset, take the coordinates the points fall on. A coordinate at least as wide as the spacing
is taken with certainty and leaves the line, which is then combed for the rest; so the inclusion
probabilities are :math:`\pi_k = 1` or proportional to :math:`d^{(k)}`, and sum to the number drawn.
"""

import numpy as np

from scgd.compiling import njit
from scgd.policies.sumtree import refresh_above
from scgd.random import below, uniform

ROUNDING = 1e-14
"""Per draw, of the spacing: weights as wide as it up to rounding (some 50 units in the last place)
are taken with certainty, or the comb could fall between them."""
FREE = -1
"""An empty slot: no coordinate has this number."""


@njit(cache=True)
def draw_equal(n_coords, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Draw a subset uniformly (Floyd's algorithm) in O(len(coords)) with a small hash table."""
    n_wanted = len(coords)
    if n_wanted > n_coords:
        raise ValueError("cannot draw more distinct coordinates than there are")
    size = 4
    while size < 2 * n_wanted:
        size *= 2
    table = np.full(size, FREE)
    for t in range(n_wanted):
        last = n_coords - n_wanted + t
        k = below(stream, last + 1)
        coords[t] = k if enter(table, k) else last
        if coords[t] != k:
            enter(table, last)
    probs[:] = 1.0 / n_coords


@njit(cache=True)
def enter(table, k):  # type: ignore[no-untyped-def]
    """Put ``k`` into an open-addressing table; False if it was there."""
    mask = len(table) - 1
    slot = (k * 0x9E3779B1) & mask
    while table[slot] != FREE:
        if table[slot] == k:
            return False
        slot = (slot + 1) & mask
    table[slot] = k
    return True


@njit(cache=True)
def draw_systematic(tree, levels, n_coords, a, b, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Comb the weights ``a * leaf + b``, O(len(coords) log p).

    The leaves taken with certainty are zero during the call and put back before it ends.
    """
    n_wanted = len(coords)
    leaves = np.empty(n_wanted)
    certain = np.empty(0, dtype=np.int64)
    # np.int64(0) is no literal: node_mass is compiled once, not for each literal zero anew.
    root = np.int64(0)
    while True:
        n_left = n_wanted - len(certain)
        mass = node_mass(tree, levels, n_coords, a, b, certain, len(levels) - 2, root)
        if n_left == 0 or not mass > 0.0:
            break
        wide = wide_leaves(tree, levels, n_coords, a, b, certain, mass / n_left, n_left)
        if len(wide) == 0:
            break
        for i in range(len(wide)):
            t, k = len(certain) + i, wide[i]
            coords[t], leaves[t] = k, tree[k]
            tree[k] = 0.0
        certain = merge(certain, wide)
        refresh_above(tree, levels, wide)
    n_certain = len(certain)
    for t in range(n_certain):
        probs[t] = 1.0 / n_wanted
    if mass > 0.0:
        comb(tree, levels, n_coords, a, b, certain, mass, stream, coords, probs)
    for t in range(n_certain):
        tree[coords[t]] = leaves[t]
    refresh_above(tree, levels, certain)
    if n_left > 0 and not mass > 0.0:
        raise ValueError("cannot draw more distinct coordinates than have positive weight")


@njit(cache=True)
def merge(left, right):  # type: ignore[no-untyped-def]
    """Merge two sorted arrays."""
    merged = np.empty(len(left) + len(right), dtype=np.int64)
    i = j = 0
    for t in range(len(merged)):
        if j == len(right) or (i < len(left) and left[i] < right[j]):
            merged[t] = left[i]
            i += 1
        else:
            merged[t] = right[j]
            j += 1
    return merged


@njit(cache=True)
def rank(values, bound):  # type: ignore[no-untyped-def]
    """Count the entries of a sorted array below a bound."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def node_mass(tree, levels, n_coords, a, b, certain, level, i):  # type: ignore[no-untyped-def]
    """Return the weight under entry ``i`` of a level, without the certain coordinates."""
    first = i << (3 * level)
    last = min((i + 1) << (3 * level), n_coords)
    count = max(last - first, 0)
    if len(certain) > 0 and count > 0:
        count -= rank(certain, last) - rank(certain, first)
    return a * tree[levels[level] + i] + b * count


@njit(cache=True)
def wide_leaves(tree, levels, n_coords, a, b, certain, spacing, n_most):  # type: ignore[no-untyped-def]
    """Return the coordinates as wide as the spacing, up to rounding: visit only nodes that are."""
    least = spacing * (1.0 - ROUNDING * n_most)
    found = np.zeros(max(n_most, 1), dtype=np.int64)
    n_found = 1
    for level in range(len(levels) - 3, -1, -1):
        wide = np.empty(n_most, dtype=np.int64)
        size = 0
        for j in range(n_found):
            for i in range(8 * found[j], 8 * found[j] + 8):
                mass = node_mass(tree, levels, n_coords, a, b, certain, level, i)
                if mass >= least and size < n_most:
                    wide[size] = i
                    size += 1
        found, n_found = wide, size
    kept = np.empty(n_found, dtype=np.int64)  # a slice would take as long to compile as the rest
    for j in range(n_found):
        kept[j] = found[j]
    return kept


@njit(cache=True)
def comb(tree, levels, n_coords, a, b, certain, mass, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Take the coordinates under equally spaced points of the line of uncertain coordinates."""
    n_wanted, n_certain = len(coords), len(certain)
    n_left = n_wanted - n_certain
    offset, leaves, root = uniform(stream), int(np.int64(0)), int(np.int64(0))
    for t in range(n_left):
        rest = (offset + t) / n_left * mass
        node = root
        for level in range(len(levels) - 3, -1, -1):
            reached, inside = root, rest
            for i in range(8 * node, 8 * node + 8):
                width = node_mass(tree, levels, n_coords, a, b, certain, level, i)
                if width > 0.0:
                    reached, inside = i, rest
                    if rest < width:
                        break
                    rest -= width
            node, rest = reached, inside
        width = node_mass(tree, levels, n_coords, a, b, certain, leaves, node)
        coords[n_certain + t] = node
        probs[n_certain + t] = width * n_left / mass / n_wanted
