"""What a policy of blocks is, and those that draw blocks at random."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scgd.checks import number, whole
from scgd.torch.blocks.ledger import Ledger
from scgd.typing import Array


def uniform_over(book: Ledger, blocks: Sequence[int] | Array) -> Array:
    """Return equal probabilities over some of the blocks."""
    probs = np.zeros(len(book.names))
    probs[np.asarray(blocks, int)] = 1.0 / max(len(blocks), 1)
    return probs


@dataclass(frozen=True)
class BlockPolicy:
    """Chooses the blocks of a visit from the ledger, which also holds all that it remembers.

    A policy of one's own needs :meth:`choose`, which is called once per visit, and
    :meth:`weights` if it draws at random. What it wants measured it says
    by ``gain`` (``"square"``, ``"absolute"``, ``"mean-square"``, ``"adam"``, ``"loss"`` or
    ``None``), ``timed`` and ``needs_loss``; ``looks_at_all`` if gains come from probes only.

    Examples
    --------
    The lowest block at every second visit, the others in turn:

    >>> class BottomTwice(BlockPolicy):
    ...     def choose(self, book, n_active):
    ...         others = sorted(book.blocks[1:], key=lambda b: book.last[b])
    ...         return [0] if book.visit % 2 else [int(others[0])]
    >>> book = Ledger(("embeddings", "layer", "head"), np.ones(3), seed=0)
    >>> policy = BottomTwice()
    >>> for _ in range(6):
    ...     blocks = policy.choose(book, 1)
    ...     book.begin(blocks, policy.weights(book))
    ...     print(blocks[0], end=" ")
    1 0 2 0 1 0
    """

    gain: ClassVar[str | None] = None
    timed: ClassVar[bool] = False
    needs_loss: ClassVar[bool] = False
    looks_at_all: ClassVar[bool] = False
    forget: ClassVar[float] = 1.0

    def weights(self, book: Ledger) -> Array:
        """Return the probabilities of the next visit, one number per block.

        Unless a policy has probabilities of its own it is asked what it would choose, with a memory
        to write into that is thrown away.
        """
        twin = copy.copy(book)
        twin.memory = copy.deepcopy(book.memory)
        return uniform_over(book, self.choose(twin, 1))

    def choose(self, book: Ledger, n_active: int) -> list[int]:
        """Return the blocks of the next visit."""
        raise NotImplementedError

    def length(self, book: Ledger, period: int) -> int:
        """Return the number of steps of the visit that has begun."""
        return period

    def probes(self, book: Ledger) -> bool:
        """Whether the first step of the visit measures the gradients of all blocks."""
        return False


@dataclass(frozen=True)
class RandomBlockPolicy(BlockPolicy):
    """Draws blocks at random: scores made probabilities, mixed with equal ones.

    Parameters
    ----------
    mix
        Share of equal probabilities, p = (1 - mix) w + mix / B.
    coverage
        Every block is trained at least once in any ``coverage`` x B visits (0: not forced). Of the
        blocks that wait, the one with the nearest deadline goes first as soon as the deadlines
        leave no other choice.
    first_cycle
        Train every block once before anything is drawn.
    first_period
        Steps of a visit of that cycle, if fewer than ``period``: what is learned there is old soon.
    """

    mix: float = 0.0
    coverage: int = 4
    first_cycle: bool = True
    first_period: int = 2

    def __post_init__(self) -> None:
        number(self.mix, "mix", 0, 1)
        whole(self.coverage, "coverage")
        whole(self.first_period, "first_period", 1)

    def scores(self, book: Ledger) -> Array:
        """Return one weight >= 0 per block; NaN where nothing is known."""
        raise NotImplementedError

    def normalise(self, scores: Array) -> Array:
        """Return weights that sum to one."""
        total = scores.sum()
        return scores / total if total > 0 else np.full(len(scores), 1 / len(scores))

    def weights(self, book: Ledger) -> Array:
        """Return probabilities; an unknown block counts as the mean of the known."""
        probs, alive = np.zeros(len(book.names)), book.blocks
        scores = np.asarray(self.scores(book), float)[alive]
        known = np.isfinite(scores)
        scores[~known] = scores[known].mean() if known.any() else 1.0
        probs[alive] = (1 - self.mix) * self.normalise(scores) + self.mix / len(alive)
        return probs

    def choose(self, book: Ledger, n_active: int) -> list[int]:
        """Return blocks that must be visited now, then draws without replacement."""
        chosen = book.unvisited()[:n_active] if self.first_cycle else []
        if len(chosen) < n_active:
            chosen += [b for b in self.due(book) if b not in chosen][: n_active - len(chosen)]
        probs, random = self.weights(book), book.generator()
        while len(chosen) < min(n_active, len(book.blocks)):
            probs[chosen] = 0.0
            if not probs.any():
                probs = uniform_over(book, [b for b in book.blocks if b not in chosen])
            chosen.append(int(random.choice(len(probs), p=probs / probs.sum())))
        return chosen

    def due(self, book: Ledger) -> list[int]:
        """Return the block with the nearest deadline if waiting longer would break the promise."""
        if self.coverage == 0:
            return []
        order = book.blocks[np.argsort(book.last[book.blocks], kind="stable")]
        visits_left = book.last[order] + self.coverage * len(order) - book.visit
        return [int(order[0])] if (visits_left <= np.arange(len(order))).any() else []

    def length(self, book: Ledger, period: int) -> int:
        """Return the number of steps of a visit, fewer in the first cycle."""
        new = self.first_cycle and max(book.counts[book.current]) == 1
        return min(period, self.first_period) if new else period
