"""Noticing that the active block gets no gradient, and mending it.

Only forwards in training mode count. Reentrant gradient checkpointing records nothing when no input
of the checkpointed part requires a gradient: then the embeddings' outputs (without embeddings, the
model's inputs) are made to require one. Otherwise the output does not depend on the block, this
time (a layer dropped at random, an expert not asked) or ever (a pooler nobody reads): the output is
bridged to the block by gradients of zero, so that backward runs, and the step passes the block by.
"""

from __future__ import annotations

import copy
import dataclasses
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn


@dataclasses.dataclass
class Sight:
    """What was seen since the last step: forwards to train on, reaching their block or bridged."""

    trained: bool = False
    reached: bool = False
    bridged: bool = False


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
    """Whether gradients can flow back from an output; one without floats is not judged."""
    found = [t for t in tensors(output) if t.is_floating_point()]
    return not found or any(t.requires_grad for t in found)


def replaced(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return an output with its tensors changed; the one given stays as it is."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple | list):
        items = [replaced(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, Mapping):  # Hugging Face's outputs too, which are data classes as well
        same: Any = copy.copy(value)
        for name, item in value.items():
            same[name] = replaced(item, change)
        return same
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        same = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(same, field.name, replaced(getattr(value, field.name), change))
        return same
    return value


def bridge(output: Any, params: list[Tensor]) -> Any:
    """Return an output of the same numbers from which gradients of zero flow to parameters."""
    nothing = [p.flatten()[:0].sum() for p in params]

    def bridged(t: Tensor) -> Tensor:
        return sum((zero.to(t) for zero in nothing), start=t) if t.is_floating_point() else t

    return replaced(output, bridged)


class Watch:
    """A forward hook of the model; copies and files of the model get an idle one."""

    def __init__(self, optimizer: Any = None) -> None:
        self.optimizer = None if optimizer is None else weakref.ref(optimizer)

    def __call__(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        """Return another output if gradients cannot flow back from this one."""
        optimizer = None if self.optimizer is None else self.optimizer()
        if optimizer is None or not module.training:
            return None
        if not torch.is_grad_enabled() or torch.compiler.is_compiling():
            return None
        optimizer.seen.trained = True
        optimizer.follow_freezing()
        missed_before = optimizer.meter.steps > 0
        if optimizer.is_unreached and (missed_before or not reaches(output)):
            output = mend(optimizer, module, args, kwargs, output)
        if reaches(output) or not optimizer.book.current:
            optimizer.seen.reached = True
            return output
        optimizer.seen.bridged = True
        return bridge(output, optimizer.active_params())

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


def mend(optimizer: Any, model: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
    """Run the model again to see if the active block ran without recording; return the output."""
    if optimizer.input_hooks:
        return output
    # Called without the model's hooks, of which this is one.
    run = partial(model.forward, *args, **kwargs)
    output, unrecorded = ran_without_grad(optimizer.owners(), run)
    if unrecorded:
        optimizer.input_hooks = require_input_grads(model)
        args, kwargs = mark_inputs(model, args, kwargs)
        output = model.forward(*args, **kwargs)
    return output
