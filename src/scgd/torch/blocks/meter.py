"""Measuring a visit: gains of its blocks, seconds of its steps, losses."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor


def values(grad: Tensor) -> Tensor:
    """Return the numbers of a gradient: those stored, if it is sparse."""
    return grad.coalesce().values() if grad.is_sparse else grad


def norms(grads: Sequence[Tensor], order: int = 2) -> tuple[Tensor, ...]:
    """Return the norm of each gradient."""
    return torch._foreach_norm([values(g) for g in grads], order)


def square(grads: Sequence[Tensor], states: Sequence[Mapping[str, Any]]) -> Tensor:
    """Return the squared norm of a block's gradient."""
    return torch.stack([n.double().square() for n in norms(grads)]).sum()


def absolute(grads: Sequence[Tensor], states: Sequence[Mapping[str, Any]]) -> Tensor:
    """Return the l1 norm of a block's gradient."""
    return torch.stack([n.double() for n in norms(grads, 1)]).sum()


def mean_square(grads: Sequence[Tensor], states: Sequence[Mapping[str, Any]]) -> Tensor:
    """Return the squared norm of a block's gradient by its size."""
    return square(grads, states) / sum(g.numel() for g in grads)


def adam(grads: Sequence[Tensor], states: Sequence[Mapping[str, Any]]) -> Tensor:
    """Return the norm of m / sqrt(v), or that of the gradient where the inner state has neither."""
    if not all("exp_avg" in state and "exp_avg_sq" in state for state in states):
        return square(grads, states).sqrt()
    steps = [state["exp_avg"] / state["exp_avg_sq"].sqrt().add(1e-8) for state in states]
    return square(steps, states).sqrt()


Measure = Callable[[Sequence[Tensor], Sequence[Mapping[str, Any]]], Tensor]
MEASURES: dict[str, Measure] = {
    "square": square,
    "absolute": absolute,
    "mean-square": mean_square,
    "adam": adam,
}


class Meter:
    """Sums over the steps of one visit; sums of gains stay on their device until the visit ends.

    ``reached`` holds the blocks that have had a gradient.
    On the CPU time is that of the process, which other programs do not lengthen.
    """

    def __init__(self, on_cpu: bool = False) -> None:
        self.clock = time.process_time if on_cpu else time.perf_counter
        self.steps = 0
        self.sums: dict[int, Tensor] = {}
        self.reached: set[int] = set()
        self.seconds: list[float] = []
        self.losses: list[float | Tensor] = []
        self._before: float | None = None

    def add(self, block: int, gain: Tensor) -> None:
        """Add the gain of one step."""
        self.sums[block] = self.sums[block] + gain if block in self.sums else gain

    def tick(self) -> None:
        """Count a step, and the time since the one before it in the same visit."""
        now = self.clock()
        if self._before is not None:
            self.seconds.append(now - self._before)
        self._before = now
        self.steps += 1

    def gains(self) -> dict[int, float]:
        """Return the mean gain of a step by block."""
        return {b: float(total) / self.steps for b, total in self.sums.items()}

    def cost(self) -> float:
        """Return the seconds of a step: the lower quartile, so that pauses do not count."""
        return float(np.quantile(self.seconds, 0.25)) if self.seconds else float("nan")

    def loss(self) -> float:
        """Return the mean loss."""
        numbers = self._numbers()
        return sum(numbers) / len(numbers) if numbers else float("nan")

    def fall(self) -> float:
        """Return how much the loss fell per step, between the halves of the visit; at least 0."""
        numbers = self._numbers()
        half = len(numbers) // 2
        if half == 0:
            return float("nan")
        early, late = sum(numbers[:half]) / half, sum(numbers[-half:]) / half
        return max(0.0, early - late) / (len(numbers) - half)

    def _numbers(self) -> list[float]:
        self.losses = [float(loss) for loss in self.losses]
        return [float(loss) for loss in self.losses]

    def state(self) -> dict[str, Any]:
        """Return everything as plain numbers."""
        return {
            "steps": self.steps,
            "reached": sorted(self.reached),
            "sums": [[b, float(total)] for b, total in self.sums.items()],
            "seconds": self.seconds,
            "losses": self._numbers(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what :meth:`state` returned."""
        self.steps, self.seconds = state["steps"], list(state["seconds"])
        self.losses, self._before = list(state["losses"]), None
        self.reached = set(state.get("reached", []))
        self.sums = {b: torch.tensor(total, dtype=torch.float64) for b, total in state["sums"]}


class Probe:
    """Hooks on every block's parameters for the first backward of a visit.

    Frozen parameters require gradients until :meth:`close`; each gradient is freed by its hook, so
    at most one of them exists at a time. Under accumulation the first micro-batch is measured.
    """

    def __init__(self, blocks: Mapping[int, Sequence[Tensor]], frozen: set[Tensor]) -> None:
        self.grads: dict[int, dict[int, Tensor]] = {b: {} for b in blocks}
        self.frozen = frozen
        self.hooks: list[Any] = []
        self.blocks = blocks
        self.measure: Measure | None = None

    def open(self, measure: Measure) -> None:
        """Start listening."""
        self.measure = measure
        for b, params in self.blocks.items():
            for i, p in enumerate(params):
                p.requires_grad_(True)
                listen: Any = p.register_post_accumulate_grad_hook
                self.hooks.append(listen(self._hook(b, i)))

    def _hook(self, b: int, i: int) -> Callable[[Tensor], None]:
        def listen(p: Tensor) -> None:
            if i not in self.grads[b] and self.measure is not None and p.grad is not None:
                self.grads[b][i] = self.measure([p.grad], [{}])
            if p in self.frozen:
                p.grad = None

        return listen

    def gains(self) -> dict[int, float]:
        """Return the sum over each block's parameters."""
        return {b: float(sum(parts.values())) for b, parts in self.grads.items() if parts}

    def close(self) -> None:
        """Stop listening; what was frozen is frozen again."""
        for hook in self.hooks:
            hook.remove()
        for p in self.frozen:
            p.requires_grad_(False)
            p.grad = None
