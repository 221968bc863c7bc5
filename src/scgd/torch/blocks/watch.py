"""Noticing that the active block gets no gradient, and mending it.

Two causes are common. A block that the output does not depend on (a pooler nobody reads) cannot be
trained: it is dropped with a warning. Reentrant gradient checkpointing records nothing when no
input of the checkpointed part requires a gradient: then the embeddings' outputs (without
embeddings, the model's inputs) are made to require one.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["Watch"]


def tensors(value: Any) -> Iterator[Tensor]:
    """Iterate over the tensors in a model's output."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from tensors(getattr(value, field.name))


def reaches(output: Any) -> bool:
    """Whether gradients can flow back from an output; one without tensors is not judged."""
    found = list(tensors(output))
    return not found or any(t.requires_grad for t in found)


class Watch:
    """A forward hook of the model; copies and files of the model get an idle one."""

    def __init__(self, optimizer: Any = None) -> None:
        self.optimizer = None if optimizer is None else weakref.ref(optimizer)

    def __call__(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        """Return another output if gradients cannot flow back from this one."""
        optimizer = None if self.optimizer is None else self.optimizer()
        if optimizer is None or not torch.is_grad_enabled() or torch.compiler.is_compiling():
            return None
        if reaches(output) and not optimizer.suspect:
            return None
        return mend(optimizer, module, args, kwargs)

    def __deepcopy__(self, memo: Any) -> Watch:
        return Watch()

    def __reduce__(self) -> Any:
        return (Watch, ())


def ran_without_grad(owners: list[nn.Module], run: Any) -> tuple[Any, bool]:
    """Run the model; tell whether an owner of active parameters ran without recording."""
    seen: list[bool] = []
    hooks = [
        owner.register_forward_pre_hook(lambda *_: seen.append(torch.is_grad_enabled()))
        for owner in owners
    ]
    try:
        output = run()
    finally:
        for hook in hooks:
            hook.remove()
    return output, not all(seen)


def mark(module: nn.Module, args: Any, output: Any) -> None:
    """Make an output require a gradient."""
    if torch.is_grad_enabled() and isinstance(output, Tensor) and not output.requires_grad:
        output.requires_grad_()


def mark_inputs(module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Give floating point inputs as tensors that require gradients."""

    def marked(value: Any) -> Any:
        floating = isinstance(value, Tensor) and value.is_floating_point()
        return value.detach().requires_grad_() if floating and not value.requires_grad else value

    return tuple(map(marked, args)), {name: marked(v) for name, v in kwargs.items()}


def require_input_grads(model: nn.Module) -> list[Any]:
    """Return hooks that make embeddings (or a model's inputs, without any) require gradients."""
    embeddings = [m for m in model.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag)]
    if embeddings:
        return [m.register_forward_hook(mark) for m in embeddings]
    return [model.register_forward_pre_hook(mark_inputs, with_kwargs=True)]


def mend(optimizer: Any, model: nn.Module, args: Any, kwargs: Any) -> Any:
    """Run the model again until gradients can flow back to the active block; return its output."""
    suspect, optimizer.suspect = optimizer.suspect, False
    while True:
        if optimizer.input_hooks:
            args, kwargs = mark_inputs(model, args, kwargs)
        # Called without the model's hooks, of which this is one.
        run = partial(model.forward, *args, **kwargs)
        output, unrecorded = ran_without_grad(optimizer.owners(), run)
        if unrecorded and not optimizer.input_hooks:
            optimizer.input_hooks = require_input_grads(model)
            suspect = False
        elif reaches(output) and not suspect:
            return output
        else:
            optimizer.drop()
            suspect = False
