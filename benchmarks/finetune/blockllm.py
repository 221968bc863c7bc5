"""BlockLLM: the blocks with the largest scaled gradients, favouring those rarely visited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scgd.checks import whole
from scgd.torch.blocks.ledger import Ledger
from scgd.torch.blocks.policy import BlockPolicy
from scgd.typing import Array

__all__ = ["BlockLLM"]


@dataclass(frozen=True)
class BlockLLM(BlockPolicy):
    r"""Keep the blocks while the loss falls; then take the largest :math:`\|\tilde g_b\| / f_b`.

    :math:`\tilde g_b` is the step of the inner optimizer of Adam's kind, :math:`f_b` the share of
    the visits that went to the block. Blocks not yet seen come first, from the top down. The loss
    must be told (``optimizer.tell(loss)`` or a closure).

    Reference: Ramesh et al., *BlockLLM: memory-efficient adaptation of LLMs by selecting and
    optimizing the right coordinate blocks* (arXiv 2406.17296).

    Parameters
    ----------
    patience
        The mean loss of the last visit is compared with that of so many visits before it.
    """

    patience: int = 3
    gain: ClassVar[str | None] = "adam"
    needs_loss: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole(self.patience, "patience", 1)

    def scores(self, book: Ledger) -> Array:
        """Return scaled gradients over frequencies; infinite for blocks not yet seen."""
        frequency = book.counts / max(book.counts.sum(), 1.0)
        scores = np.full(len(book.names), np.inf)
        seen = book.counts > 0
        scores[seen] = np.nan_to_num(book.gains[seen]) / frequency[seen]
        scores[book.alive == 0] = -np.inf
        return scores

    def stalled(self, book: Ledger) -> bool:
        """Whether the last visit's loss is no better than the mean of those before it."""
        recent = book.losses[-1 - self.patience :]
        return len(recent) < 2 or not recent[-1] < np.mean(recent[:-1])

    def choose(self, book: Ledger, n_active: int) -> list[int]:
        """Return the present blocks, or the best ones when the loss stalls."""
        current = [b for b in book.current if book.alive[b]]
        if current and not self.stalled(book):
            return current
        order = np.argsort(-self.scores(book)[::-1], kind="stable")
        top_first = [len(book.names) - 1 - int(i) for i in order]
        return top_first[: min(n_active, len(book.blocks))]
