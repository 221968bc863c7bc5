"""Visits: which blocks are in training, what is freed and made at a switch, what is learned."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from scgd.torch.arguments import finds
from scgd.torch.blocks.checks import check_choice
from scgd.torch.blocks.hold import forget, held, hold
from scgd.torch.blocks.inner import Inner
from scgd.torch.blocks.ledger import GRACE, PATIENCE, RETRY, Ledger
from scgd.torch.blocks.meter import MEASURES, Meter, Probe, values
from scgd.torch.blocks.partition import Parts
from scgd.torch.blocks.policy import BlockPolicy, uniform_over
from scgd.torch.blocks.watch import Sight, Watch
from scgd.torch.distributed import Ranks, narrow
from scgd.typing import Array

MEMORY = "scgd"
"""Key of the first parameter group under which a saved state holds the position of the run."""


class Visits(torch.optim.Optimizer):
    """The part of the block optimizer that goes from block to block."""

    model: Any
    wrapper: DistributedDataParallel | None
    policy: BlockPolicy
    parts: Parts
    book: Ledger
    meter: Meter
    inner: Inner
    ranks: Ranks
    probe: Probe | None
    period: int
    n_active: int
    keep_state: bool | str
    importance: str | None
    factor: float
    input_hooks: list[Any]
    seen: Sight
    frozen: set[Tensor]
    owner: dict[Tensor, int]
    warmup: int
    is_ready = False  # torch adds the first groups before there are visits

    @property
    def active_blocks(self) -> list[str]:
        """The blocks in training."""
        return [self.book.names[b] for b in self.book.current]

    def _params(self, blocks: Iterable[int]) -> list[Tensor]:
        listed = list(self.parts.blocks.values())
        params = [self.parts.params[name] for b in blocks for name in listed[b]]
        return [p for p in params if p not in self.frozen]

    def _take_hold(self) -> None:
        """Freeze every block, and what is never trained."""
        self.constant = [self.parts.params[n] for n in self.parts.always]
        constant = set(self.constant)
        # What another optimizer has frozen is held already.
        for p in constant & held(self.model):
            p.requires_grad_(True)
        hold(self.model, {p for p in self.parts.params.values() if p.requires_grad} - constant)
        hook = self.model.register_forward_hook(Watch(self), with_kwargs=True)
        self.watch_hook = hook
        self.param_groups[0][MEMORY] = ""

    def _next(self) -> tuple[list[int], Array]:
        """Return the blocks of the next visit, those named first, and all probabilities.

        ``choose`` is called once: a policy may count visits in the ledger's memory.
        """
        draws = type(self.policy).weights is not BlockPolicy.weights
        probs = self.policy.weights(self.book) if draws else None
        new = (self.book.counts == 0) & (self.book.alive == 1)
        waiting = [b for b in self.book.first if new[b]]
        chosen = waiting[: self.n_active] or self._choice()
        probs = uniform_over(self.book, chosen) if probs is None else probs
        return chosen, probs

    def _choice(self) -> list[int]:
        chosen = self.policy.choose(self.book, self.n_active)
        return check_choice(self.policy, chosen, len(self.book.names))

    def _visit(self) -> None:
        """Begin a visit."""
        self.book.revive()
        chosen, probs = self._next()
        self.book.begin(chosen, probs)
        self.meter = self._meter()
        weight = float(probs[chosen].mean()) if chosen else 0.0
        relative = self.importance == "relative" and weight > 0
        self.factor = 1 / (len(self.book.blocks) * weight) if relative else 1.0
        self._activate(chosen)
        self._set_factor()
        if self.policy.probes(self.book):
            self._open_probe()

    def _set_factor(self) -> None:
        """Set the factor on the rate of the next step."""
        done, warmup = self.meter.steps, self.warmup
        self.inner.factor = self.factor * ((done + 1) / warmup if done < warmup else 1.0)

    def _meter(self) -> Meter:
        return Meter(all(p.device.type == "cpu" for p in self.parts.params.values()))

    def _activate(self, chosen: list[int], force: bool = False) -> None:
        """Free what leaves, unfreeze what comes, and make the inner optimizer for it."""
        entering = set(self._params(chosen))
        fixed = set(self.constant)
        in_training = {p for p, _ in self.inner.pairs} - fixed
        leaving = in_training - entering
        if self.inner.units and in_training == entering and not force:
            return  # the same blocks again: nothing is emptied
        for p in leaving:
            p.grad = None
            p.requires_grad_(False)
        self.inner.release(leaving, self.state, self.keep_state)
        for p in entering - in_training:
            p.requires_grad_(True)
        self._rebuild(entering, fixed)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters of another model, or of none: they are always trained."""
        super().add_param_group(param_group)
        if self.is_ready:
            self._always_train(self.param_groups[-1]["params"])

    def _always_train(self, params: list[Tensor]) -> None:
        self.constant += params
        for p in params:
            p.requires_grad_(True)
        self._activate(self.book.current, force=True)

    def _rebuild(self, entering: set[Tensor], fixed: set[Tensor]) -> None:
        self.owner = {p: b for b in self.book.current for p in self._params([b])}
        rows = []
        for g, group in enumerate(self.param_groups):
            for visiting, members in ((True, entering), (False, fixed)):
                rows.append((g, visiting, [p for p in group["params"] if p in members]))
        me = weakref.ref(self)  # hooks must not keep the optimizer alive

        def listen(p: Tensor) -> bool | None:
            optimizer = me()
            return None if optimizer is None else optimizer._arrived(p)

        self.inner.rebuild(self.param_groups, rows, self.state, listen)
        if self.wrapper is not None:
            narrow(self.wrapper)

    def _arrived(self, p: Tensor) -> bool:
        """Note a gradient that has come during backward; tell whether it is one to step along."""
        if self.seen.bridged and not self.seen.reached:
            return False
        b = self.owner.get(p)
        if b is not None:
            self.meter.reached.add(b)
            gain, size = self.policy.gain or "", 1.0
            if gain == "mean-square":
                gain, size = "square", float(self.book.sizes[b])
            if gain in MEASURES and p.grad is not None:
                self.meter.add(b, MEASURES[gain]([p.grad], [{}]) / size)
        return True

    def _measure(self) -> None:
        """Add the gains of this step."""
        measure = MEASURES.get(self.policy.gain or "")
        if measure is None or self.policy.looks_at_all:
            return
        for b in self.book.current:
            params = [p for p in self._params([b]) if p.grad is not None]
            if params:
                grads = [p.grad for p in params if p.grad is not None]
                self.meter.add(b, measure(grads, [self.state.get(p, {}) for p in params]))

    def _end_visit(self) -> None:
        """Learn from the visit, and agree with the other processes."""
        book, meter = self.book, self.meter
        if meter.losses:
            book.losses = [*book.losses[-99:], meter.loss()]
        gains = meter.gains()
        if self.policy.gain == "loss":
            gains = dict.fromkeys(book.current, meter.fall())
        if self.policy.timed:
            for b in book.current:
                if np.isnan(book.costs[b]):
                    book.costs[b] = meter.cost() / len(book.current)
        book.learn(gains, self.policy.forget)
        book.miss(meter.reached, meter.steps)
        book.accept(self.ranks.agree(book.share()))
        self._give_up()

    # What the user freezes

    def freeze(self, *patterns: str) -> None:
        """Freeze parameters found by regular expressions, from now on.

        A block that waits for its visit is frozen anyway, so its ``requires_grad`` tells nothing;
        that of what is in training is followed, both ways.
        """
        found = {p for n, p in self.parts.params.items() if any(finds(x, n) for x in patterns)}
        if not found:
            raise ValueError(f"freeze{patterns!r} finds no parameter")
        self._freeze(found)

    def _freeze(self, params: set[Tensor]) -> None:
        """Take parameters out of the blocks; go on to the next visit if its blocks are gone."""
        for p in params:
            p.requires_grad_(False)
            p.grad = None
        self.frozen |= params
        self.constant = [p for p in self.constant if p not in params]
        forget(self.model, params)
        self._count_alive()
        if self.book.current and not self._params(self.book.current):
            self._visit()
        else:
            self._activate(self.book.current, force=True)

    def _count_alive(self) -> None:
        """Leave out blocks that are frozen as a whole; take back those that no longer are."""
        for b in range(len(self.book.names)):
            empty = not self._params([b])
            if empty:
                self.book.alive[b], self.book.last[b] = 0.0, np.inf
            elif np.isinf(self.book.last[b]):
                self.book.alive[b], self.book.last[b] = 1.0, -1.0
        if not len(self.book.blocks):
            raise RuntimeError("every block is frozen; unfreeze some parameters before the step")

    def follow_freezing(self) -> None:
        """Notice what the user has frozen, or unfrozen again, among what is in training."""
        back = {p for p in self.frozen if p.requires_grad}
        if back:
            self.frozen -= back
            hold(self.model, back)
            self._count_alive()
        gone = {p for p, _ in self.inner.pairs if not p.requires_grad}
        if gone:
            self._freeze(gone)

    # Probes

    def _open_probe(self) -> None:
        alive = {int(b): self._params([int(b)]) for b in self.book.blocks}
        frozen = {p for params in alive.values() for p in params if not p.requires_grad}
        self.probe = Probe(alive, frozen)
        self.probe.open(MEASURES[self.policy.gain or ""])

    def _close_probe(self) -> None:
        """Learn from the look at all blocks."""
        if self.probe is not None:
            self.book.learn(self.probe.gains(), self.policy.forget)
            self._drop_probe()

    def _drop_probe(self) -> None:
        if self.probe is not None:
            self.probe.close()
            self.probe = None

    # Blocks without gradients

    def owners(self) -> list[nn.Module]:
        """Return the modules that own parameters of the active blocks."""
        active = set(self.active_params())
        modules = self.model.modules()
        return [m for m in modules if not active.isdisjoint(m.parameters(recurse=False))]

    @property
    def is_unreached(self) -> bool:
        """Whether no gradient has come to the active blocks in this visit."""
        return bool(self.book.current) and not self.meter.reached

    def active_params(self) -> list[Tensor]:
        """Return the parameters of the active blocks."""
        return self._params(self.book.current)

    def _note_gradients(self) -> bool:
        """Note which active blocks have a gradient; tell whether the step is one to count."""
        seen, self.seen = self.seen, Sight()
        for b in self.book.current:
            grads = [p.grad for p in self._params([b]) if p.grad is not None]
            if grads and (b in self.meter.reached or self._is_real(grads, seen)):
                self.meter.reached.add(b)
        if seen.bridged and not seen.reached and not self.ranks.several:
            for p in self.active_params():
                p.grad = None  # zeros would let momentum and weight decay move the block
        arrived = self.inner.moved or any(p.grad is not None for p, _ in self.inner.pairs)
        return seen.trained or bool(arrived)

    def _is_real(self, grads: list[Tensor], seen: Sight) -> bool:
        """Whether gradients are more than the zeros that a bridge leaves behind.

        Other processes may have sent a gradient; what all of them see after the reduction is equal.
        """
        if self.ranks.several:
            return any(bool(values(g).any()) for g in grads)
        return seen.reached or not seen.bridged

    def _is_over(self) -> bool:
        """Whether the visit has had its steps, or no gradient in the first of them."""
        idle = self.is_unreached and self.meter.steps >= GRACE
        return idle or self.meter.steps >= self._length()

    def _length(self) -> int:
        """Return the steps of this visit: two at least while they measure costs.

        The time of a step is the one since the step before it in the same visit.
        """
        length = self.policy.length(self.book, self.period)
        unknown = self.policy.timed and np.isnan(self.book.costs[self.book.current]).any()
        return max(length, 2) if unknown else length

    def _give_up(self) -> None:
        """Set aside blocks that no gradient has reached for long, and say so."""
        lost = [self.book.names[b] for b in self.book.give_up()]
        if not lost:
            return
        warnings.warn(
            f"no gradient reaches {lost}: the loss did not depend on them in {PATIENCE} steps in a "
            f"row; they are tried again every {RETRY * len(self.book.names)} visits (never=[...] "
            "leaves them out from the start)",
            stacklevel=2,
        )
        if not len(self.book.blocks):
            # Whoever mends the model can go on with all blocks.
            self.book.alive[:], self.book.missed[:] = 1.0, 0.0
            raise RuntimeError("no gradient reaches any block: does the loss depend on the model?")
