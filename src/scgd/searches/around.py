"""What a search around another has of it."""

from __future__ import annotations

from scgd.searches.base import Relevance, Search
from scgd.typing import Floats

__all__ = ["ROUNDING", "Around"]

ROUNDING = 1e-12
"""Relative differences that sums in another order may make."""


class Around(Search):
    """A search that asks what another one asks, and looks at the answers first.

    Parameters
    ----------
    inner
        The search inside.
    """

    def __init__(self, inner: Search) -> None:
        super().__init__(inner.point)
        self.inner = inner
        self.name = inner.name  # type: ignore[misc]  # what people read is what ran

    def settle(self) -> None:
        """Take note of what the search did."""
        self.inner.settle()
        more = self.n_evals - self.inner.n_evals
        self.journal.extend((n + more, value) for n, value in self.inner.journal)
        self.inner.journal.clear()

    @property
    def level(self) -> float:
        """The value that the search has reached."""
        return self.inner.level

    @property
    def weights(self) -> Floats | None:
        """What the search knows of the shares of coordinates."""
        return self.inner.weights

    @property
    def relevance(self) -> Relevance | None:
        """What the search knows of their effects."""
        return self.inner.relevance

    @property
    def member(self) -> str:
        """The name under which its evaluations are noted."""
        return self.inner.active.member

    @property
    def members(self) -> dict[str, int]:
        """Who asked how much, and what it took to look again."""
        known, n_again = self.inner.members, self.n_evals - self.inner.n_evals
        return {**known, "again": n_again} if known and n_again else known

    @property
    def farthest(self) -> float:
        """How far the search has looked."""
        return self.inner.farthest

    @property
    def sentence(self) -> str:
        """What the search tells."""
        return self.inner.sentence
