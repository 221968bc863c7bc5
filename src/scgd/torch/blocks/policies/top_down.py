"""From the top down, one block further whenever the gains of the present one stall."""

from dataclasses import dataclass
from typing import ClassVar

from scgd.torch.blocks.ledger import Ledger
from scgd.torch.blocks.policies.base import BlockPolicy, check_count, check_share, uniform_over
from scgd.typing import Array

__all__ = ["TopDown"]


@dataclass(frozen=True)
class TopDown(BlockPolicy):
    """Stay with a block while its gradient falls, then go one down; after the lowest, to the top.

    Parameters
    ----------
    fall
        The squared gradient norm must fall by this share from one visit to the next.
    patience
        Visits in a row without such a fall before the policy moves on.
    """

    fall: float = 0.05
    patience: int = 2
    gain: ClassVar[str | None] = "square"

    def __post_init__(self) -> None:
        check_share("fall", self.fall)
        check_count("patience", self.patience, 1)

    def choose(self, book: Ledger, n_active: int) -> list[int]:
        """Return a window of neighbouring blocks whose upper end is ``at``."""
        order = [int(b) for b in book.blocks[::-1]]
        at = min(book.memory.get("at", 0), len(order) - 1)
        if book.current:
            at = self._move(book, at, len(order))
        window = [order[(at + i) % len(order)] for i in range(min(n_active, len(order)))]
        book.memory["at"] = at
        return window

    def _move(self, book: Ledger, at: int, n_blocks: int) -> int:
        gain, best = float(book.gains[book.current].sum()), book.memory.get("best")
        if best is None or gain < (1 - self.fall) * best:
            book.memory.update(best=gain, stalled=0)
            return at
        book.memory["stalled"] = book.memory.get("stalled", 0) + 1
        if book.memory["stalled"] < self.patience:
            return at
        book.memory.update(best=None, stalled=0)
        return (at + 1) % n_blocks

    def weights(self, book: Ledger) -> Array:
        """Return one for the block at which the policy stands."""
        order = book.blocks[::-1]
        return uniform_over(book, [int(order[min(book.memory.get("at", 0), len(order) - 1)])])
