"""The user's optimizer on the parameters in training, and its state.

Half precision parameters are trained through a float32 copy, which exists, like gradients and
state, only while their block is active.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

HALF = (torch.bfloat16, torch.float16)
COPY = "fp32"
"""Name of the float32 copy in a saved state."""


def move(state: dict[str, Any], device: Any) -> dict[str, Any]:
    """Return a parameter's state with its tensors on a device; counters stay where they are."""
    return {
        name: v.to(device) if isinstance(v, Tensor) and v.dim() > 0 else v
        for name, v in state.items()
    }


@torch.no_grad()
def adopt(p: Tensor, worker: Tensor) -> None:
    """Take over what somebody else has written into a parameter since the last step.

    Where the copy rounds to the parameter it stays, with its finer digits; no answer is waited for
    on a GPU. A loaded checkpoint, averaged weights or ``p.data`` are written without a trace
    elsewhere: version counters miss the last.
    """
    worker.copy_(torch.where(p == worker.to(p.dtype), worker, p.to(worker.dtype)))


@dataclass
class Unit:
    """An optimizer, the outer group (and whether of an active block) of each of its groups."""

    optimizer: Any
    sources: list[tuple[int, bool]]
    pairs: list[tuple[Tensor, Tensor]]


class Inner:
    """An inner optimizer that is made anew at each switch, on the parameters in training.

    Parameters
    ----------
    make
        The optimizer class, or a function of parameter groups.
    settings
        What it is called with.
    copies_wanted
        Whether half precision parameters get a float32 copy.
    in_backward
        Whether each parameter has an optimizer of its own, which steps as soon as the gradient is
        there and frees it.
    """

    def __init__(
        self,
        make: Callable[..., Any],
        settings: dict[str, Any],
        copies_wanted: bool,
        in_backward: bool = False,
    ) -> None:
        self.make, self.settings, self.copies_wanted = make, settings, copies_wanted
        self.in_backward = in_backward
        self.units: list[Unit] = []
        self.copies: dict[Tensor, Tensor] = {}
        self.hooks: list[Any] = []
        self.moved: set[Tensor] = set()
        self.factor = 1.0
        self.outer: list[dict[str, Any]] = []
        self.counters: dict[tuple[int, bool], dict[str, Any]] = {}

    @property
    def pairs(self) -> list[tuple[Tensor, Tensor]]:
        """The parameters in training and the tensors that stand for them."""
        return [pair for unit in self.units for pair in unit.pairs]

    def worker_dtype(self, p: Tensor) -> torch.dtype:
        """Return the precision in which a parameter is trained."""
        return torch.float32 if self.copies_wanted and p.dtype in HALF else p.dtype

    def worker(self, p: Tensor) -> Tensor:
        """Return the tensor the inner optimizer moves for a parameter."""
        if self.worker_dtype(p) == p.dtype:
            return p
        if p not in self.copies:
            self.copies[p] = p.detach().to(torch.float32, copy=True)
        self.copies[p] = self.copies[p].to(p.device)
        return self.copies[p]

    def rebuild(
        self,
        outer: list[dict[str, Any]],
        rows: list[tuple[int, bool, list[Tensor]]],
        state: Any,
        listen: Callable[[Tensor], bool | None],
    ) -> None:
        """Make the optimizer for (number of the outer group, whether of an active block, params).

        With ``in_backward``, ``listen`` says of each parameter whose gradient has come whether to
        step; ``None`` leaves the gradient where it is.
        """
        self.outer, rows = outer, [row for row in rows if row[2]]
        self.counters = {k: v for k, v in self.counters.items() if not k[1]}  # a visit starts anew
        self.units = []
        cuts = [[(g, own, [p])] for g, own, ps in rows for p in ps] if self.in_backward else [rows]
        for parts in filter(None, cuts):
            listed = [{"params": [self.worker(p) for p in params]} for _, _, params in parts]
            pairs = [(p, self.worker(p)) for _, _, params in parts for p in params]
            optimizer = self.make(listed, **self.settings)
            self.units.append(Unit(optimizer, [(g, own) for g, own, _ in parts], pairs))
        for unit in self.units:
            for p, worker in unit.pairs:
                if p in state:
                    state[p] = move(state[p], worker.device)
                    unit.optimizer.state[worker] = state[p]
        self.unhook()
        if self.in_backward:
            for unit in self.units:
                hook: Any = unit.pairs[0][0].register_post_accumulate_grad_hook
                self.hooks.append(hook(partial(self._arrived, unit, listen, state)))

    def unhook(self) -> None:
        """Wait for gradients no more."""
        for hook in self.hooks:
            hook.remove()
        self.hooks.clear()

    @torch.no_grad()
    def _arrived(self, unit: Unit, listen: Any, state: Any, p: Tensor) -> None:
        """Step on a parameter whose gradient has come, and free that."""
        if p in self.moved:
            raise RuntimeError(
                "in_backward=True steps during backward, so call optimizer.step() after each "
                "backward; leave in_backward out to accumulate gradients"
            )
        wanted = listen(p)
        if wanted:
            self.move(unit)
            self.link(state, [unit])
            self.moved.add(p)
        if wanted is not None:
            p.grad = None

    def release(self, params: Iterable[Tensor], state: Any, keep: bool | str) -> None:
        """Forget the state of parameters that leave, or put it into CPU memory."""
        for p in params:
            if keep:
                if p in state:
                    state[p] = move(state[p], "cpu")
                if p in self.copies:
                    self.copies[p] = self.copies[p].cpu()
            else:
                state.pop(p, None)
                self.copies.pop(p, None)

    def step(self) -> None:
        """Step with the rates of the outer groups, those of the active blocks times a factor."""
        if self.in_backward:
            self.moved.clear()
            return
        for unit in self.units:
            self.move(unit)

    def move(self, unit: Unit) -> None:
        """Step with one optimizer; what it counts in its groups is kept for the next."""
        groups = unit.optimizer.param_groups
        before = []
        for (g, visiting), mine in zip(unit.sources, groups, strict=True):
            mine.update({k: v for k, v in self.outer[g].items() if k in unit.optimizer.defaults})
            if visiting and self.factor != 1.0:
                mine["lr"] = mine["lr"] * self.factor
            mine.update(self.counters.get((g, visiting), {}))
            before.append({k: v for k, v in mine.items() if isinstance(v, int | float)})
        for p, worker in unit.pairs:
            if worker is not p:
                adopt(p, worker)
                worker.grad = None if p.grad is None else p.grad.to(torch.float32)
        unit.optimizer.step()
        with torch.no_grad():
            for p, worker in unit.pairs:
                if worker is not p:
                    p.copy_(worker)
                    worker.grad = None
        for source, mine, old in zip(unit.sources, groups, before, strict=True):
            now = {k: v for k, v in mine.items() if isinstance(v, int | float)}
            changed = {k: v for k, v in now.items() if k not in old or old[k] != v}
            if changed and not self.in_backward:
                self.counters.setdefault(source, {}).update(changed)

    def link(self, state: Any, units: list[Unit] | None = None) -> None:
        """Let the outer optimizer see the state of its parameters, or of those of some units."""
        for unit in self.units if units is None else units:
            for p, worker in unit.pairs:
                if worker in unit.optimizer.state and p not in state:
                    state[p] = unit.optimizer.state[worker]

    def rehearse(self, state: Any) -> None:
        """Make the optimizers create their state, by a step of rate zero along zeros."""
        with torch.no_grad():
            kept = [(worker, worker.grad, worker.clone()) for _, worker in self.pairs]
            for worker, _, _ in kept:
                worker.grad = torch.zeros_like(worker)
            for unit in self.units:
                for group in unit.optimizer.param_groups:
                    if group.get("lr") is not None:
                        group["lr"] = group["lr"] * 0.0
                unit.optimizer.step()
            for worker, grad, value in kept:
                worker.grad = grad
                worker.copy_(value)
        self.link(state)
