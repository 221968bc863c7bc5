"""The learned law: blocks that have gained much are trained more often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scgd.torch.blocks.ledger import Ledger
from scgd.torch.blocks.policies.base import BlockLaw, check_count, check_share
from scgd.typing import Array

__all__ = ["BlockMusketeer"]

GAINS = ("square", "absolute", "mean-square", "adam", "loss")


@dataclass(frozen=True)
class BlockMusketeer(BlockLaw):
    r"""Draw block b with a probability that grows with its gain :math:`G_b`.

    A phase is a visit. With :math:`g_b` the mean gain of a step of the last visit,
    :math:`G_b \leftarrow (1-\phi) G_b + \phi g_b`, and

    .. math:: p_b = (1-\lambda) \frac{s_b}{\sum_c s_c} + \frac{\lambda}{B},
        \qquad s_b = G_b \text{ (per step) or } G_b / c_b \text{ (per cost)}

    with :math:`c_b` the cost of a step; ``normalization="softmax"`` takes
    :math:`e^{\eta s_b}` in place of :math:`s_b`.

    Parameters
    ----------
    gain
        ``"square"``: squared norm of the block's gradient; ``"absolute"``: its l1 norm, to which
        a step of Adam's kind is proportional; ``"mean-square"``: squared norm by size;
        ``"adam"``: norm of the inner optimizer's scaled step; ``"loss"``: fall of the loss over
        the visit (tell it by ``optimizer.tell(loss)`` or a closure).
    gain_per
        ``"cost"`` or ``"step"``.
    normalization, eta
        ``"l1"`` needs no temperature; ``"softmax"`` takes ``eta``.
    forget
        Share :math:`\phi` of the new visit.
    probe
        Every so many visits one step measures the gradients of all blocks at the same parameters,
        by one full backward whose gradients are dropped as they come, and the law is learned from
        these alone (0: from the visits). Its saved activations are those of full training.
    mix, coverage, first_cycle, first_period
        See :class:`BlockLaw`.
    """

    mix: float = 0.1
    gain: str = "square"  # type: ignore[misc]
    gain_per: str = "cost"
    normalization: str = "l1"
    eta: float = 1.0
    forget: float = 0.5  # type: ignore[misc]
    probe: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = {"gain": GAINS, "gain_per": ("step", "cost")}
        allowed["normalization"] = ("l1", "softmax")
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ValueError(f"{name} must be one of {values}, got {getattr(self, name)!r}")
        check_share("forget", self.forget)
        check_share("eta", self.eta, 0.0, np.inf)
        check_count("probe", self.probe)
        if self.probe and self.gain not in ("square", "absolute"):
            raise ValueError("probe measures gradients; use gain='square' or 'absolute' with it")

    @property
    def timed(self) -> bool:  # type: ignore[override]
        """Whether costs are needed."""
        return self.gain_per == "cost"

    @property
    def needs_loss(self) -> bool:  # type: ignore[override]
        """Whether the loss must be told."""
        return self.gain == "loss"

    def scores(self, book: Ledger) -> Array:
        """Return gains per step or per cost."""
        scores: Array = book.gains / book.costs if self.timed else book.gains
        return scores

    def normalise(self, scores: Array) -> Array:
        """Return weights that sum to one."""
        if self.normalization == "l1":
            return super().normalise(scores)
        powers = np.exp(self.eta * (scores - scores.max()))
        law: Array = powers / powers.sum()
        return law

    @property
    def looks_at_all(self) -> bool:  # type: ignore[override]
        """Whether gains come from looks at all blocks and not from visits."""
        return self.probe > 0

    def probes(self, book: Ledger) -> bool:
        """Whether this visit begins with a look at all blocks."""
        return self.probe > 0 and (book.visit - 1) % self.probe == 0
