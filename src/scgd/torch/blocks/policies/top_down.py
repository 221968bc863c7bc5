"""From the top down, one block further whenever the gains of the present one stall."""

from dataclasses import dataclass
from typing import Any, ClassVar

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
        """Return neighbouring blocks, downwards from where the policy stands now."""
        book.memory = self._after(book)
        order = [int(b) for b in book.blocks[::-1]]
        return [order[(book.memory["at"] + i) % len(order)] for i in range(n_active)][: len(order)]

    def _after(self, book: Ledger) -> dict[str, Any]:
        """Return place, best gain and visits stalled, as they are after the last visit."""
        at = min(book.memory.get("at", 0), len(book.blocks) - 1)
        best, stalled = book.memory.get("best"), book.memory.get("stalled", 0)
        if not book.current:
            return {"at": at, "best": None, "stalled": 0}
        gain = float(book.gains[book.current].sum())
        if best is None or gain < (1 - self.fall) * best:
            return {"at": at, "best": gain, "stalled": 0}
        if stalled + 1 < self.patience:
            return {"at": at, "best": best, "stalled": stalled + 1}
        return {"at": (at + 1) % len(book.blocks), "best": None, "stalled": 0}

    def weights(self, book: Ledger) -> Array:
        """Return one for the block at which the policy will stand."""
        return uniform_over(book, [int(book.blocks[::-1][self._after(book)["at"]])])
