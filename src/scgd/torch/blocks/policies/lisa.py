"""LISA: a few layers at random, embeddings and head always."""

from dataclasses import dataclass

from scgd.torch.blocks.ledger import Ledger
from scgd.torch.blocks.policies.base import BlockPolicy, uniform_over
from scgd.typing import Array

__all__ = ["LISA"]


@dataclass(frozen=True)
class LISA(BlockPolicy):
    """Draw ``active`` inner layers uniformly for each visit; the ends of the model always train.

    Nothing forces coverage, as published. The ends are the lowest and the uppermost block, unless
    ``ends_always`` is false.

    Reference: Pan et al., *LISA: layerwise importance sampling for memory-efficient large language
    model fine-tuning*, NeurIPS 2024.

    Parameters
    ----------
    ends_always
        Whether the lowest and the uppermost block are trained at every visit.
    """

    ends_always: bool = True

    def ends(self, book: Ledger) -> tuple[int, ...]:
        """Return the lowest and the uppermost block."""
        last = len(book.names) - 1
        return (0, last) if self.ends_always and last > 1 else ()

    def _inner(self, book: Ledger) -> list[int]:
        return [int(b) for b in book.blocks if b not in self.ends(book)]

    def weights(self, book: Ledger) -> Array:
        """Return the uniform law over the inner layers."""
        return uniform_over(book, self._inner(book))

    def choose(self, book: Ledger, n_active: int) -> list[int]:
        """Return layers drawn without replacement."""
        inner = self._inner(book)
        drawn = book.generator().choice(inner, min(n_active, len(inner)), replace=False)
        return [int(b) for b in drawn]
