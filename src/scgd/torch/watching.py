"""Steps that torch's hooks and profiler can watch, at no cost while nobody does."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

__all__ = ["watchable"]

Step = TypeVar("Step", bound=Callable[..., Any])


def watchable(step: Step) -> Step:
    """Return a step that goes through torch's wrapper only where hooks or a profiler ask for it.

    The wrapper, which torch puts around every ``step``, costs as much as a small step itself.
    """
    watched = torch.optim.Optimizer.profile_hook_step(step)

    @functools.wraps(step)
    def either(self: Any, closure: Any = None) -> Any:
        if self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks or is_watched():
            return watched(self, closure)
        return step(self, closure)

    either.hooked = True  # type: ignore[attr-defined]
    return either  # type: ignore[return-value]


def is_watched() -> bool:
    """Whether a profiler runs or hooks for all optimizers are registered."""
    hooks = _global_optimizer_post_hooks or _global_optimizer_pre_hooks
    return bool(hooks) or torch.autograd._profiler_enabled()  # type: ignore[attr-defined]
