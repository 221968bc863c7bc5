"""Ask a closure for losses, with the model held still: at the parameters, or with entries moved.

A difference of two losses under different dropout masks is mostly the difference of the masks, and
every forward pass in training mode moves BatchNorm's running statistics. The losses of a step
therefore start from one state of torch's global generators, and buffers of normalisation layers are
put back after each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property
from math import inf, isfinite
from types import TracebackType
from typing import Any
from warnings import catch_warnings, filterwarnings
from weakref import WeakSet

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.module import register_module_forward_pre_hook

from scgd.estimators import sides
from scgd.torch.layout import Layout

BACKWARD = (
    "the closure called backward, but zeroth-order steps run without gradients; "
    "return the loss and nothing more"
)


class Evaluation:
    """The losses of one step: counted, checked, and with the model held still if asked.

    Parameters
    ----------
    closure
        Returns the loss; runs without recording gradients. It may have a method ``probes(layout)``
        that returns a faster way to the losses with single entries moved, or ``None``
        (``scgd_paper.forward_loss``).
    stillness
        Holds dropout and running statistics still (``None``: they move).
    watched
        A parameter whose gradient tells if the closure called backward.
    """

    def __init__(
        self, closure: Callable[[], Any], stillness: Stillness | None, watched: torch.Tensor
    ) -> None:
        self.closure = closure
        self.probes = getattr(closure, "probes", lambda layout: None)
        self.n_calls = 0
        self.stillness = stillness
        self.watched, self.gradient = watched, watched.grad
        self.here: list[float] = []
        self.rounding = 0.0
        """The relative rounding of the type that the losses come in; 0 for plain numbers."""

    @cached_property
    def still(self) -> Still | None:
        """What holds the losses of this step still, begun with the first that needs it."""
        return None if self.stillness is None else self.stillness.begin()

    def bases(self, n: int) -> list[float]:
        """Return losses at the parameters before the step, evaluated for all groups together."""
        while len(self.here) < n:
            self.here.append(self())
        return self.here[:n]

    def __call__(self) -> float:
        """Return the loss at the parameters as they are."""
        self.n_calls += 1
        fast = self.probes(None)
        call = self.closure if fast is None else fast.loss
        compiled = fast is not None and fast.code >= 0
        with nullcontext() if compiled else self.still or nullcontext():
            value = call()
        # Here and not after the step: whoever probes puts the parameters back when this fails.
        if self.watched.grad is not self.gradient and self.watched.grad is not None:
            raise RuntimeError(BACKWARD)
        self.rounding = rounding_of(value)
        return as_loss(value)

    def differences(
        self, layout: Layout, coords: list[int], spots: list[Any], radius: float, central: bool
    ) -> tuple[list[float], list[float]]:
        """Return the losses around each coordinate and how far apart the entries were.

        Forward: the base loss, then one per coordinate; central: (below, above) per coordinate.
        Entries are saved and copied back, also when the closure fails.
        """
        fast = self.probes(layout)
        if fast is not None:
            found = self._fast_differences(fast, coords, radius, central)
            if found is not None:
                return found
        values = [] if central else [self()]
        widths = []
        for entries, index in spots:
            saved = entries[index]
            down, up = sides(central, saved, radius, -inf, inf)
            try:
                if central:
                    entries[index] = down
                    down = entries[index]
                    values.append(self())
                entries[index] = up
                widths.append(entries[index] - down)
                values.append(self())
            finally:
                entries[index] = saved
        return values, widths

    def _fast_differences(
        self, fast: Any, coords: list[int], radius: float, central: bool
    ) -> tuple[list[float], list[float]] | None:
        """Do the same without touching the parameters; None if the loss draws random numbers."""
        known = fast.code >= 0 or self.stillness is None
        before = None if known else generator_states()
        values, widths = fast.differences(coords, radius, central)
        if before is not None and not same(before, generator_states()):
            set_generator_states(before)
            return None
        values = values[central:]
        if fast.code < 0 or not all(map(isfinite, values)):
            values = [as_loss(value) for value in values]
        self.n_calls += len(values)
        return values, widths


def rounding_of(value: Any) -> float:
    """Return the relative rounding of a loss's type; plain numbers do not tell theirs."""
    floating = isinstance(value, torch.Tensor) and value.is_floating_point()
    return torch.finfo(value.dtype).eps if floating else 0.0


def as_loss(value: Any) -> float:
    """Return a loss as a number; refuse what is not one finite number."""
    try:
        loss = float(value)
    except (RuntimeError, TypeError, ValueError):
        if not isinstance(value, torch.Tensor):
            hint = "; does it end without a return?" if value is None else ""
            raise TypeError(f"the closure must return the loss, got {value!r}{hint}") from None
        if value.is_complex():
            raise ValueError(
                f"the closure must return a real number, got {value.dtype}; take its .abs()"
            ) from None
        if value.numel() == 1:
            raise
        raise ValueError(
            f"the closure must return one number, got a tensor of shape {tuple(value.shape)}; "
            "reduce it, for example with .mean()"
        ) from None
    if not isfinite(loss):
        raise FloatingPointError(
            f"the closure returned {loss}; the parameters are as before the step (directions "
            "without keep_copy: up to rounding): lower lr or radius, or look for the cause in the "
            "model"
        )
    return loss


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
