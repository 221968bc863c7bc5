"""One block after another."""

from dataclasses import dataclass

from scgd.torch.blocks.ledger import Ledger
from scgd.torch.blocks.policies.base import BlockPolicy

__all__ = ["Cyclic"]


@dataclass(frozen=True)
class Cyclic(BlockPolicy):
    """Visit the blocks in turn (BAdam's ``ascending`` and ``descending``).

    Parameters
    ----------
    order
        ``"descending"`` from the top of the model down, ``"ascending"`` from the bottom up.
    """

    order: str = "descending"

    def __post_init__(self) -> None:
        if self.order not in ("ascending", "descending"):
            raise ValueError(f"order must be 'ascending' or 'descending', got {self.order!r}")

    def choose(self, book: Ledger, n_active: int) -> list[int]:
        """Return the blocks that have waited longest; ties in the order given."""
        order = [int(b) for b in book.blocks[:: -1 if self.order == "descending" else 1]]
        return sorted(order, key=lambda b: book.last[b])[:n_active]
