"""The user's optimizer on the parameters in training, and its state.

Half precision parameters are trained through a float32 copy, which exists, like gradients and
state, only while their block is active.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

__all__ = ["HALF", "Inner", "move"]

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
    """

    def __init__(
        self, make: Callable[..., Any], settings: dict[str, Any], copies_wanted: bool
    ) -> None:
        self.make, self.settings, self.copies_wanted = make, settings, copies_wanted
        self.optimizer: Any = None
        self.copies: dict[Tensor, Tensor] = {}
        self.pairs: list[tuple[Tensor, Tensor]] = []
        self.sources: list[tuple[dict[str, Any], bool]] = []

    def worker(self, p: Tensor) -> Tensor:
        """Return the tensor the inner optimizer moves for a parameter."""
        if not (self.copies_wanted and p.dtype in HALF):
            return p
        if p not in self.copies:
            self.copies[p] = p.detach().to(torch.float32, copy=True)
        self.copies[p] = self.copies[p].to(p.device)
        return self.copies[p]

    def rebuild(self, groups: list[tuple[dict[str, Any], bool, list[Tensor]]], state: Any) -> None:
        """Make the optimizer for (outer group, whether of an active block, parameters)."""
        groups = [row for row in groups if row[2]]
        self.sources = [(group, visiting) for group, visiting, _ in groups]
        self.pairs = [(p, self.worker(p)) for _, _, params in groups for p in params]
        listed = [{"params": [self.worker(p) for p in params]} for _, _, params in groups]
        self.optimizer = self.make(listed, **self.settings)
        for p, worker in self.pairs:
            if p in state:
                state[p] = move(state[p], worker.device)
                self.optimizer.state[worker] = state[p]

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

    def step(self, factor: float) -> None:
        """Step with the rates of the outer groups, those of the active blocks times a factor."""
        for (group, visiting), mine in zip(self.sources, self.optimizer.param_groups, strict=True):
            mine.update({k: v for k, v in group.items() if k in self.optimizer.defaults})
            if visiting and factor != 1.0:
                mine["lr"] = mine["lr"] * factor
        for p, worker in self.pairs:
            if worker is not p:
                adopt(p, worker)
                worker.grad = None if p.grad is None else p.grad.to(torch.float32)
        self.optimizer.step()
        with torch.no_grad():
            for p, worker in self.pairs:
                if worker is not p:
                    p.copy_(worker)
                    worker.grad = None

    def link(self, state: Any) -> None:
        """Let the outer optimizer see the state of its parameters."""
        for p, worker in self.pairs:
            if worker in self.optimizer.state and p not in state:
                state[p] = self.optimizer.state[worker]

    def rehearse(self, state: Any) -> None:
        """Make the optimizer create its state, by a step of rate zero along gradients of zero."""
        with torch.no_grad():
            kept = [(worker, worker.grad, worker.clone()) for _, worker in self.pairs]
            for worker, _, _ in kept:
                worker.grad = torch.zeros_like(worker)
            for group in self.optimizer.param_groups:
                if group.get("lr") is not None:
                    group["lr"] = group["lr"] * 0.0
            self.optimizer.step()
            for worker, grad, value in kept:
                worker.grad = grad
                worker.copy_(value)
        self.link(state)
