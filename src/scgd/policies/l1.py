"""Musketeer's own law: l1 weights of the paper's gains, O(touched log p) per phase."""

from typing import NamedTuple

import numpy as np

from scgd.compiling import njit
from scgd.policies import mixture
from scgd.policies.gains import AVERAGE, GAINS, reward
from scgd.policies.kinds import Kernels, register
from scgd.policies.sumtree import empty_tree, refresh_above
from scgd.typing import Floats, Ints

__all__ = ["L1Law", "l1_law"]


class L1Law(NamedTuple):
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


def l1_law(n_coords: int, gain: str) -> L1Law:
    """Return a law that starts uniform."""
    tree, levels = empty_tree(n_coords)
    return L1Law(
        n_coords=np.array([n_coords]),
        gain=np.array([GAINS.index(gain)]),
        mixing=np.ones(1),
        signed=np.zeros(n_coords if gain == "average" else 0),
        tree=tree,
        levels=levels,
    )


@njit(cache=True)
def update(law, coords, probs, grads, mixing):  # type: ignore[no-untyped-def]
    """Add the rewards of a phase to the sums and set the visited leaves."""
    tree, signed, gain = law.tree, law.signed, law.gain[0]
    law.mixing[0] = mixture.share(mixing)
    for t in range(len(coords)):
        k = coords[t]
        if gain == AVERAGE:
            signed[k] += reward(gain, grads[t], probs[t])
            tree[k] = abs(signed[k])
        else:
            tree[k] += reward(gain, grads[t], probs[t])
    refresh_above(tree, law.levels, coords)


@njit(cache=True)
def end_phase_and_draw(  # type: ignore[no-untyped-def]
    n_coords, gain, share, signed, tree, levels, stream, coords, probs, grads, mixing
):
    """End a phase and draw the next."""
    law = L1Law(n_coords, gain, share, signed, tree, levels)
    update(law, coords, probs, grads, mixing)
    mixture.draw(law, stream, coords, probs)


def check(law: L1Law, fresh: L1Law) -> None:
    """Raise ValueError unless every descent of the tree ends at a coordinate."""
    for name in ("n_coords", "gain", "levels"):
        if not np.array_equal(getattr(law, name), getattr(fresh, name)):
            raise ValueError(f"the {name} of the law are another policy's")
    n_coords = int(fresh.n_coords[0])
    mixture.check_tree(law.tree, law.levels, law.mixing, n_coords)
    if len(law.signed) and not np.array_equal(np.abs(law.signed), law.tree[:n_coords]):
        raise ValueError("the leaves of the law are not the sizes of its sums")


register(
    L1Law,
    Kernels(
        mixture.draw,
        mixture.draw_distinct,
        update,
        mixture.weights,
        end_phase_and_draw,
        check,
        mixture.draw_block,
    ),
)
