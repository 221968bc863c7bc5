"""Several perturbed copies of a model in one forward pass, by ``torch.func``.

A :class:`~scgd.torch.ForwardLoss` tells the model, so the layers that differ between the losses of
a step can be stacked and the model mapped over them (``torch.func.vmap``); what does not differ is
shared. Models that cannot be mapped (in-place buffers, data-dependent control flow) are found out
once and then evaluated one loss after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import torch
from torch import nn
from torch.func import functional_call, vmap

__all__ = ["losses_together", "stack"]

MOST = 1 << 24
"""Entries that may be stacked: 64 megabytes in single precision."""
Change = list[tuple[torch.Tensor, torch.Tensor]]
"""Parameters and what they are to be."""
UNMAPPED: WeakSet[nn.Module] = WeakSet()


def stack(model: nn.Module, changes: Sequence[Change]) -> dict[str, torch.Tensor] | None:
    """Return the parameters that change, a row per change, or None where they cannot be mapped."""
    if model in UNMAPPED:
        return None
    names = {id(p): name for name, p in model.named_parameters()}
    moved = {id(p): p for change in changes for p, _ in change}
    if not moved or not moved.keys() <= names.keys():
        return None
    if len(changes) * sum(p.numel() for p in moved.values()) > MOST:
        return None
    stacked = {}
    for key, p in moved.items():
        rows = [dict((id(q), new) for q, new in change).get(key, p.detach()) for change in changes]
        stacked[names[key]] = torch.stack(rows)
    return stacked


def losses_together(closure: Any, stacked: dict[str, torch.Tensor]) -> torch.Tensor | None:
    """Return the loss under each change of the parameters, or None if the model does not allow it.

    Examples
    --------
    >>> from scgd.torch import ForwardLoss
    >>> model = nn.Linear(1, 1, bias=False)
    >>> with torch.no_grad():
    ...     _ = model.weight.fill_(2.0)
    >>> x = torch.ones(3, 1)
    >>> closure = ForwardLoss(model, nn.functional.mse_loss, x, 0 * x)
    >>> stacked = stack(model, [[], [(model.weight, torch.full((1, 1), 3.0))]])
    >>> losses_together(closure, stacked)
    tensor([4., 9.])
    """
    model = closure.model

    def loss(changed: dict[str, torch.Tensor]) -> torch.Tensor:
        value: torch.Tensor = closure.loss(
            functional_call(model, changed, (closure.inputs,)), closure.targets
        )
        return value

    try:
        found: torch.Tensor = vmap(loss, randomness="same")(stacked)
    except (RuntimeError, ValueError, TypeError, NotImplementedError):
        UNMAPPED.add(model)  # the usual path tells what is wrong, if something is
        return None
    return found if found.shape == (len(next(iter(stacked.values()))),) else None
