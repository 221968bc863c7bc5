r"""The coordinate law :math:`Q(d_n)`: what a policy remembers, how it draws, how it learns.

A law is a named tuple of arrays, changed in place; there is one type per way of keeping the weights
(:class:`~scgd.policies.frozen.UniformLaw`, :class:`~scgd.policies.frozen.FixedLaw`,
:class:`~scgd.policies.l1.L1Law`, :class:`~scgd.policies.softmax.SoftmaxLaw`,
:class:`~scgd.policies.recomputed.RecomputedLaw`). Per phase one calls ``draw`` (coordinates and the
weights :math:`d_n` they were drawn with) and then ``update`` with the gradients seen
(:math:`G_{n+1}` and :math:`d_{n+1}`), from Python or from compiled code. The paper's rules cost
O(touched log p) per phase; the published variants (cumulative or rescaled gains) refresh all
weights, O(p).

The kernels do not check their input; policies do.
"""

from __future__ import annotations

from scgd.policies.frozen import FixedLaw, UniformLaw, fixed_law, uniform_law
from scgd.policies.gains import ABSOLUTE, AVERAGE, GAINS, SQUARE
from scgd.policies.kinds import draw, draw_distinct, update, weights
from scgd.policies.l1 import L1Law, l1_law
from scgd.policies.mixture import mixture
from scgd.policies.recomputed import (
    MEMORIES,
    N_DRAWS,
    N_PHASES,
    NORMALIZATIONS,
    RecomputedLaw,
    recomputed_law,
    record,
    refill,
)
from scgd.policies.softmax import SoftmaxLaw, softmax_law

__all__ = [
    "ABSOLUTE",
    "AVERAGE",
    "GAINS",
    "MEMORIES",
    "NORMALIZATIONS",
    "N_DRAWS",
    "N_PHASES",
    "SQUARE",
    "Law",
    "draw",
    "draw_distinct",
    "fixed_law",
    "make_law",
    "mixture",
    "record",
    "refill",
    "uniform_law",
    "update",
    "weights",
]

Law = UniformLaw | FixedLaw | L1Law | SoftmaxLaw | RecomputedLaw


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
) -> L1Law | SoftmaxLaw | RecomputedLaw:
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
    >>> import numpy as np
    >>> law = make_law(4, gain="square")
    >>> coords, probs = np.array([0, 2]), np.array([0.25, 0.25])
    >>> update(law, coords, probs, np.array([1.0, 2.0]), 0.2)
    >>> out = np.empty(4)
    >>> weights(law, out)
    >>> out
    array([0.21, 0.05, 0.69, 0.05])
    """
    if refresh == "all" or memory != "phase" or rescale:
        return recomputed_law(n_coords, gain, normalization, memory, rescale, sharpness)
    if normalization == "l1":
        return l1_law(n_coords, gain)
    return softmax_law(n_coords, gain, sharpness, length)
