"""What a policy of blocks is, and the laws that draw at random."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scgd.torch.blocks.ledger import Ledger
from scgd.typing import Array

__all__ = ["BlockLaw", "BlockPolicy", "check_count", "check_share", "uniform_over"]


def check_share(name: str, value: float, low: float = 0.0, high: float = 1.0) -> None:
    """Refuse what is not a number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} must be a number in [{low}, {high}], got {value!r}")


def check_count(name: str, value: int, low: int = 0) -> None:
    """Refuse what is not a whole number from ``low`` on."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
        raise ValueError(f"{name} must be a whole number >= {low}, got {value!r}")


def uniform_over(book: Ledger, blocks: Sequence[int] | Array) -> Array:
    """Return the uniform law over some of the blocks."""
    law = np.zeros(len(book.names))
    law[np.asarray(blocks, int)] = 1.0 / max(len(blocks), 1)
    return law


@dataclass(frozen=True)
class BlockPolicy:
    """Chooses the blocks of a visit from the ledger, which also holds all that it remembers.

    A policy of one's own needs :meth:`choose`, which is called once per visit, and
    :meth:`weights` if it draws from a law. What it wants measured it says
    by ``gain`` (``"square"``, ``"absolute"``, ``"mean-square"``, ``"adam"``, ``"loss"`` or
    ``None``), ``timed`` and ``needs_loss``; ``looks_at_all`` if gains come from probes only.
    """

    gain: ClassVar[str | None] = None
    timed: ClassVar[bool] = False
    needs_loss: ClassVar[bool] = False
    looks_at_all: ClassVar[bool] = False
    forget: ClassVar[float] = 1.0

    def weights(self, book: Ledger) -> Array:
        """Return the law of the next visit, one number per block.

        Unless a policy has a law of its own it is asked what it would choose, with a memory to
        write into that is thrown away.
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
class BlockLaw(BlockPolicy):
    """A random law: scores made probabilities, mixed with the uniform law.

    Parameters
    ----------
    mix
        Share of the uniform law, p = (1 - mix) w + mix / B.
    coverage
        Every block is trained at least once in any ``coverage`` x B visits (0: not forced). Of the
        blocks that wait, the one with the nearest deadline goes first as soon as the deadlines
        leave no other choice.
    first_cycle
        Train every block once before the law decides.
    first_period
        Steps of a visit of that cycle, if fewer than ``period``: what is learned there is old soon.
    """

    mix: float = 0.0
    coverage: int = 4
    first_cycle: bool = True
    first_period: int = 2

    def __post_init__(self) -> None:
        check_share("mix", self.mix)
        check_count("coverage", self.coverage)
        check_count("first_period", self.first_period, 1)

    def scores(self, book: Ledger) -> Array:
        """Return one weight >= 0 per block; NaN where nothing is known."""
        raise NotImplementedError

    def normalise(self, scores: Array) -> Array:
        """Return weights that sum to one."""
        total = scores.sum()
        return scores / total if total > 0 else np.full(len(scores), 1 / len(scores))

    def weights(self, book: Ledger) -> Array:
        """Return the law of the next visit; an unknown block counts as the mean of the known."""
        law, alive = np.zeros(len(book.names)), book.blocks
        scores = np.asarray(self.scores(book), float)[alive]
        known = np.isfinite(scores)
        scores[~known] = scores[known].mean() if known.any() else 1.0
        law[alive] = (1 - self.mix) * self.normalise(scores) + self.mix / len(alive)
        return law

    def choose(self, book: Ledger, n_active: int) -> list[int]:
        """Return blocks that must be visited now, then draws without replacement."""
        chosen = book.unvisited()[:n_active] if self.first_cycle else []
        if len(chosen) < n_active:
            chosen += [b for b in self.due(book) if b not in chosen][: n_active - len(chosen)]
        law, random = self.weights(book), book.generator()
        while len(chosen) < min(n_active, len(book.blocks)):
            law[chosen] = 0.0
            if not law.any():
                law = uniform_over(book, [b for b in book.blocks if b not in chosen])
            chosen.append(int(random.choice(len(law), p=law / law.sum())))
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
