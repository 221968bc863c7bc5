"""Hold a model still while it is probed: the same dropout in all losses, BatchNorm left as it was.

A difference of two losses under different dropout masks is mostly the difference of the masks, and
every forward pass in training mode moves BatchNorm's running statistics. The losses of a step
therefore start from one state of torch's global generators, and buffers of normalisation layers are
put back after each of them.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any
from warnings import catch_warnings, filterwarnings
from weakref import WeakSet

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.module import register_module_forward_pre_hook

__all__ = ["Still", "Stillness", "generator_states", "same", "set_generator_states"]


class Stillness:
    """What moves by itself in the models a closure calls, found while the first losses are run."""

    def __init__(self) -> None:
        self.norms: WeakSet[nn.Module] = WeakSet()
        self.looked = False

    def begin(self) -> Still:
        """Return what holds the losses of one step still."""
        return Still(self)


class Still:
    """One step: every loss is run as a ``with`` block."""

    def __init__(self, owner: Stillness) -> None:
        self.owner = owner
        self.states: list[Any] | None = generator_states()
        self.n_runs = 0
        self.hook: Any = None
        self.saved: list[tuple[torch.Tensor, torch.Tensor]] = []

    def __enter__(self) -> None:
        if self.n_runs > 0 and self.states is not None:
            set_generator_states(self.states)
        self.saved = [(b, b.clone()) for b in self.buffers()]
        if not self.owner.looked and self.hook is None:
            self.hook = register_module_forward_pre_hook(self._look)
            self.quiet = catch_warnings()
            self.quiet.__enter__()
            # Compiled models tell that they run hooks for all modules twice: once is enough here.
            filterwarnings("ignore", message="Using `torch.compile.module.` when there are global")

    def _look(self, module: nn.Module, inputs: Any) -> None:
        """Save the buffers of a layer before it runs for the first time."""
        if isinstance(module, _NormBase) and module not in self.owner.norms:
            self.owner.norms.add(module)
            self.saved += [(b, b.clone()) for b in moving(module)]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self.hook is not None:
            self.quiet.__exit__(kind, error, at)
            self.hook.remove()
            self.hook, self.owner.looked = None, kind is None  # else some layers have not run
        with torch.no_grad():
            for buffer, old in self.saved:
                buffer.copy_(old)
        self.saved = []
        self.n_runs += 1
        if self.n_runs == 1 and self.states is not None and same(self.states, generator_states()):
            self.states = None  # nothing was drawn: nothing to go back to

    def buffers(self) -> list[torch.Tensor]:
        """Return the running statistics that a forward pass would move now."""
        return [buffer for norm in self.owner.norms for buffer in moving(norm)]


def moving(norm: Any) -> list[torch.Tensor]:
    """Return the buffers that a layer in training mode moves."""
    return list(norm.buffers()) if norm.training and norm.track_running_stats else []


def generator_states() -> list[Any]:
    """Return the states of torch's global generators."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None
    return [torch.get_rng_state(), cuda]


def same(one: list[Any], two: list[Any]) -> bool:
    """Whether two states of the generators agree."""
    if not torch.equal(one[0], two[0]):
        return False
    return one[1] is None or all(torch.equal(a, b) for a, b in zip(one[1], two[1], strict=True))


def set_generator_states(states: list[Any]) -> None:
    """Put torch's global generators into earlier states."""
    torch.set_rng_state(states[0])
    if states[1] is not None:
        torch.cuda.set_rng_state_all(states[1])
