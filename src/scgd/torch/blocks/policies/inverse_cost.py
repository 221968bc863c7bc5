"""Cheap blocks more often."""

from dataclasses import dataclass
from typing import ClassVar

from scgd.torch.blocks.ledger import Ledger
from scgd.torch.blocks.policies.base import BlockLaw
from scgd.typing import Array

__all__ = ["InverseCost"]


@dataclass(frozen=True)
class InverseCost(BlockLaw):
    """Draw a block with probability proportional to 1 / (cost of one of its steps).

    In the mean the same work goes into every block. The upper blocks are the cheap ones,
    because backward stops at the lowest block in training.

    Parameters
    ----------
    mix, coverage, first_cycle, first_period
        As for :class:`BlockLaw`.
    """

    timed: ClassVar[bool] = True

    def scores(self, book: Ledger) -> Array:
        """Return 1 / cost."""
        return 1.0 / book.costs
