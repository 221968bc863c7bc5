"""Ask a closure for losses: at the parameters as they are, or with single entries moved."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite
from typing import Any

import torch

from scgd.estimators import sides
from scgd.torch.forward_loss import ForwardLoss, StackProbes
from scgd.torch.layout import Layout

__all__ = ["BACKWARD", "Evaluation"]

BACKWARD = (
    "the closure called backward, but zeroth-order steps run without gradients; "
    "return the loss and nothing more"
)


class Evaluation:
    """The losses of one step: counted, checked, and run from one state of the generators if asked.

    Parameters
    ----------
    closure
        Returns the loss; runs without recording gradients.
    fix_model_rng
        Whether every call starts from the same state of torch's global generators.
    """

    def __init__(self, closure: Callable[[], Any], fix_model_rng: bool) -> None:
        self.closure = closure
        self.opaque = not isinstance(closure, ForwardLoss)
        self.n_calls = 0
        self.states = generator_states() if fix_model_rng else None

    def __call__(self) -> float:
        """Return the loss at the parameters as they are."""
        if self.states is not None:
            set_generator_states(self.states)
        self.n_calls += 1
        fast = None if self.opaque else self._fast(None)
        return as_loss(self.closure() if fast is None else fast.loss())

    def _fast(self, layout: Layout | None) -> StackProbes | None:
        """Return the fast way to losses, if there is one that does what the closure does."""
        fast = self.closure.probes(layout)  # type: ignore[attr-defined]
        random = self.states is not None and fast is not None and fast.code < 0
        return None if random else fast

    def differences(
        self, layout: Layout, coords: list[int], spots: list[Any], radius: float, central: bool
    ) -> tuple[list[float], list[float]]:
        """Return the losses around each coordinate and how far apart the entries were.

        Forward: the base loss, then one per coordinate; central: (below, above) per coordinate.
        Entries are saved and copied back, also when the closure fails.
        """
        fast = None if self.opaque else self._fast(layout)
        if fast is not None:
            return self._fast_differences(fast, coords, radius, central)
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
        self, fast: StackProbes, coords: list[int], radius: float, central: bool
    ) -> tuple[list[float], list[float]]:
        """Do the same without touching the parameters."""
        values, widths = fast.differences(coords, radius, central)
        values = [as_loss(value) for value in values[central:]]
        self.n_calls += len(values)
        return values, widths


def as_loss(value: Any) -> float:
    """Return a loss as a number; refuse what is not one finite number."""
    try:
        loss = float(value)
    except (RuntimeError, TypeError, ValueError):
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"the closure must return the loss, got {value!r}") from None
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


def generator_states() -> list[Any]:
    """Return the states of torch's global generators."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None
    return [torch.get_rng_state(), cuda]


def set_generator_states(states: list[Any]) -> None:
    """Put torch's global generators into earlier states."""
    torch.set_rng_state(states[0])
    if states[1] is not None:
        torch.cuda.set_rng_state_all(states[1])
