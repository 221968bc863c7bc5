"""All blocks in a new random order each cycle."""

from dataclasses import dataclass

from scgd.torch.blocks.ledger import Ledger
from scgd.torch.blocks.policies.base import BlockPolicy, uniform_over
from scgd.typing import Array

__all__ = ["Shuffled"]


@dataclass(frozen=True)
class Shuffled(BlockPolicy):
    """Visit every block once per cycle, in an order drawn for each (BAdam's ``random``).

    Reference: Luo, Yu and Li, *BAdam: a memory efficient full parameter optimization method for
    large language models*, NeurIPS 2024.
    """

    def choose(self, book: Ledger, n_active: int) -> list[int]:
        """Return the next blocks of the order; a cycle's rest is not topped up from the next."""
        alive = {int(b) for b in book.blocks}
        queue = [b for b in book.memory.get("queue", []) if b in alive]
        if not queue:
            queue = [int(b) for b in book.generator().permutation(book.blocks)]
        book.memory["queue"] = queue[n_active:]
        return queue[:n_active]

    def weights(self, book: Ledger) -> Array:
        """Return the uniform law over what is left of the cycle."""
        return uniform_over(book, book.memory.get("queue") or book.blocks)
