"""Every block as often as any other."""

from dataclasses import dataclass

import numpy as np

from scgd.torch.blocks.ledger import Ledger
from scgd.torch.blocks.policies.base import BlockLaw
from scgd.typing import Array

__all__ = ["UniformBlocks"]


@dataclass(frozen=True)
class UniformBlocks(BlockLaw):
    """Draw all blocks with the same probability.

    Parameters
    ----------
    mix, coverage, first_cycle, first_period
        As for :class:`BlockLaw`.
    """

    def scores(self, book: Ledger) -> Array:
        """Return ones."""
        return np.ones(len(book.names))
