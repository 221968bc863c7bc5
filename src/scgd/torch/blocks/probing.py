"""One full backward whose gradients are measured and dropped as they come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

__all__ = ["Probe"]

Measure = Callable[[Sequence[Tensor], Sequence[Mapping[str, Any]]], Tensor]


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
