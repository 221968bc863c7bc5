"""MISA: modules by a softmax of their mean squared gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scgd.torch.blocks.ledger import Ledger
from scgd.torch.blocks.policies.base import BlockPolicy, check_share
from scgd.typing import Array

__all__ = ["MISA"]


@dataclass(frozen=True)
class MISA(BlockPolicy):
    r"""Draw modules with :math:`p_b \propto e^{\eta G_b}`; use it with ``blocks="module"``.

    :math:`G_b` is a running mean, over the visits of the module, of its squared gradient norm by
    size. With ``share`` modules are drawn until they hold that share of the parameters, as
    published (.03); without, ``active`` of them.

    Reference: *MISA: memory-efficient LLMs optimization with module-wise importance sampling*,
    NeurIPS 2025 (arXiv 2511.00056); eta = 1 for fine-tuning, 500 for pre-training there.

    Parameters
    ----------
    eta
        Sharpness of the softmax.
    forget
        Weight of a new visit in the running mean.
    share
        Share of the parameters to train at a time; ``None``: as many modules as ``active`` says.
    """

    eta: float = 1.0
    forget: float = 0.1  # type: ignore[misc]
    share: float | None = None
    gain: ClassVar[str | None] = "mean-square"

    def __post_init__(self) -> None:
        check_share("eta", self.eta, 0.0, np.inf)
        check_share("forget", self.forget)
        if self.share is not None:
            check_share("share", self.share)

    def weights(self, book: Ledger) -> Array:
        """Return the softmax; a module never visited has gained nothing."""
        law, alive = np.zeros(len(book.names)), book.blocks
        gains = np.nan_to_num(book.gains[alive])
        powers = np.exp(self.eta * (gains - gains.max()))
        law[alive] = powers / powers.sum()
        return law

    def choose(self, book: Ledger, n_active: int) -> list[int]:
        """Return modules drawn one after another without replacement."""
        law, random = self.weights(book), book.generator()
        chosen: list[int] = []
        while len(chosen) < len(book.blocks) and not self._enough(book, chosen, n_active):
            chosen.append(int(random.choice(len(law), p=law / law.sum())))
            law[chosen[-1]] = 0.0
        return chosen

    def _enough(self, book: Ledger, chosen: list[int], n_active: int) -> bool:
        if self.share is None:
            return len(chosen) >= n_active
        return bool(chosen) and book.sizes[chosen].sum() >= self.share * book.sizes.sum()
