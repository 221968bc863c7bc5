"""The top of the model and nothing else."""

from dataclasses import dataclass

from scgd.torch.blocks.ledger import Ledger
from scgd.torch.blocks.policies.base import BlockPolicy

__all__ = ["Top"]


@dataclass(frozen=True)
class Top(BlockPolicy):
    """Train the ``active`` uppermost blocks for the whole run: the baseline to try first.

    Nothing is ever switched, so the state of the inner optimizer is never emptied.
    """

    def choose(self, book: Ledger, n_active: int) -> list[int]:
        """Return the uppermost blocks."""
        return [int(b) for b in book.blocks[::-1][:n_active]]
