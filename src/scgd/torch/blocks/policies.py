"""The policies of blocks, and their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from scgd.checks import number, whole
from scgd.torch.blocks.ledger import Ledger
from scgd.torch.blocks.policy import BlockPolicy, RandomBlockPolicy, uniform_over
from scgd.typing import Array


@dataclass(frozen=True)
class UniformBlocks(RandomBlockPolicy):
    """Draw all blocks with the same probability.

    Parameters
    ----------
    mix, coverage, first_cycle, first_period
        As for :class:`RandomBlockPolicy`.
    """

    def scores(self, book: Ledger) -> Array:
        """Return ones."""
        return np.ones(len(book.names))


@dataclass(frozen=True)
class InverseCost(RandomBlockPolicy):
    """Draw a block with probability proportional to 1 / (cost of one of its steps).

    In the mean the same work goes into every block. The upper blocks are the cheap ones,
    because backward stops at the lowest block in training.

    Parameters
    ----------
    mix, coverage, first_cycle, first_period
        As for :class:`RandomBlockPolicy`.
    """

    timed: ClassVar[bool] = True

    def scores(self, book: Ledger) -> Array:
        """Return 1 / cost."""
        return 1.0 / book.costs


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
        """Return equal probabilities over what is left of the cycle."""
        return uniform_over(book, book.memory.get("queue") or book.blocks)


@dataclass(frozen=True)
class Top(BlockPolicy):
    """Train the ``active`` uppermost blocks for the whole run: the baseline to try first.

    Nothing is ever switched, so the state of the inner optimizer is never emptied.
    """

    def choose(self, book: Ledger, n_active: int) -> list[int]:
        """Return the uppermost blocks."""
        return [int(b) for b in book.blocks[::-1][:n_active]]


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
        number(self.fall, "fall", 0, 1)
        whole(self.patience, "patience", 1)

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


GAINS = ("square", "absolute", "mean-square", "adam", "loss")


@dataclass(frozen=True)
class BlockMusketeer(RandomBlockPolicy):
    r"""Draw block b with a probability that grows with its gain :math:`G_b`.

    A phase is a visit. With :math:`g_b` the mean gain of a step of the last visit,
    :math:`G_b \leftarrow (1-\phi) G_b + \phi g_b`, and

    .. math:: p_b = (1-\lambda) \frac{s_b}{\sum_c s_c} + \frac{\lambda}{B},
        \qquad s_b = G_b \text{ (per step) or } G_b / c_b \text{ (per cost)}

    with :math:`c_b` the cost of a step; ``normalization="softmax"`` takes
    :math:`e^{\eta s_b}` in place of :math:`s_b`.

    Parameters
    ----------
    gain
        ``"square"``: squared norm of the block's gradient; ``"absolute"``: its l1 norm, to which
        a step of Adam's kind is proportional; ``"mean-square"``: squared norm by size;
        ``"adam"``: norm of the inner optimizer's scaled step; ``"loss"``: fall of the loss over
        the visit (tell it by ``optimizer.tell(loss)`` or a closure).
    gain_per
        ``"step"``, or ``"cost"``: better where blocks are whole layers, whose costs differ more.
    normalization, eta
        ``"l1"`` needs no temperature; ``"softmax"`` takes ``eta``.
    forget
        Share :math:`\phi` of the new visit.
    probe
        Every so many visits one step measures the gradients of all blocks at the same parameters,
        by one full backward whose gradients are dropped as they come, and gains are learned from
        these alone (0: from the visits). Its saved activations are those of full training.
    mix, coverage, first_cycle, first_period
        See :class:`RandomBlockPolicy`.
    """

    mix: float = 0.1
    gain: str = "square"  # type: ignore[misc]
    gain_per: str = "step"
    normalization: str = "l1"
    eta: float = 1.0
    forget: float = 0.5  # type: ignore[misc]
    probe: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = {"gain": GAINS, "gain_per": ("step", "cost")}
        allowed["normalization"] = ("l1", "softmax")
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ValueError(f"{name} must be one of {values}, got {getattr(self, name)!r}")
        number(self.forget, "forget", 0, 1)
        number(self.eta, "eta", 0)
        whole(self.probe, "probe")
        if self.probe and self.gain not in ("square", "absolute"):
            raise ValueError("probe measures gradients; use gain='square' or 'absolute' with it")

    @property
    def timed(self) -> bool:  # type: ignore[override]
        """Whether costs are needed."""
        return self.gain_per == "cost"

    @property
    def needs_loss(self) -> bool:  # type: ignore[override]
        """Whether the loss must be told."""
        return self.gain == "loss"

    def scores(self, book: Ledger) -> Array:
        """Return gains per step or per cost."""
        scores: Array = book.gains / book.costs if self.timed else book.gains
        return scores

    def normalise(self, scores: Array) -> Array:
        """Return weights that sum to one."""
        if self.normalization == "l1":
            return super().normalise(scores)
        powers = np.exp(self.eta * (scores - scores.max()))
        probs: Array = powers / powers.sum()
        return probs

    @property
    def looks_at_all(self) -> bool:  # type: ignore[override]
        """Whether gains come from looks at all blocks and not from visits."""
        return self.probe > 0

    def probes(self, book: Ledger) -> bool:
        """Whether this visit begins with a look at all blocks."""
        return self.probe > 0 and (book.visit - 1) % self.probe == 0


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
        number(self.eta, "eta", 0)
        number(self.forget, "forget", 0, 1)
        if self.share is not None:
            number(self.share, "share", 0, 1)

    def weights(self, book: Ledger) -> Array:
        """Return the softmax; a module never visited has gained nothing."""
        probs, alive = np.zeros(len(book.names)), book.blocks
        gains = np.nan_to_num(book.gains[alive])
        powers = np.exp(self.eta * (gains - gains.max()))
        probs[alive] = powers / powers.sum()
        return probs

    def choose(self, book: Ledger, n_active: int) -> list[int]:
        """Return modules drawn one after another without replacement."""
        probs, random = self.weights(book), book.generator()
        chosen: list[int] = []
        while len(chosen) < len(book.blocks) and not self._enough(book, chosen, n_active):
            chosen.append(int(random.choice(len(probs), p=probs / probs.sum())))
            probs[chosen[-1]] = 0.0
        return chosen

    def _enough(self, book: Ledger, chosen: list[int], n_active: int) -> bool:
        if self.share is None:
            return len(chosen) >= n_active
        return bool(chosen) and book.sizes[chosen].sum() >= self.share * book.sizes.sum()


BLOCK_POLICIES: dict[str, type[BlockPolicy]] = {
    "inverse-cost": InverseCost,
    "cyclic": Cyclic,
    "shuffled": Shuffled,
    "uniform": UniformBlocks,
    "top": Top,
    "top-down": TopDown,
    "musketeer": BlockMusketeer,
    "misa": MISA,
}


def find_policy(policy: object) -> BlockPolicy:
    """Return a policy by name, or the object given."""
    if isinstance(policy, BlockPolicy):
        return policy
    if isinstance(policy, str) and policy in BLOCK_POLICIES:
        return BLOCK_POLICIES[policy]()
    raise ValueError(
        f"policy must be one of {tuple(BLOCK_POLICIES)} or a BlockPolicy object, got {policy!r}"
    )
