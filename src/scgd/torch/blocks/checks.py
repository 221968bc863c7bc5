"""Refusing arguments and saved states that do not fit, before anything is changed."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import nn

from scgd.torch.blocks.ledger import Ledger
from scgd.torch.blocks.policies.base import check_count
from scgd.typing import Array

__all__ = ["check_arguments", "check_complete", "check_costs", "check_inner", "check_saved"]


def check_arguments(
    model: Any,
    period: Any,
    active: Any,
    keep_state: Any,
    warmup: Any,
    importance: Any,
    seed: Any,
) -> None:
    """Refuse settings of the block optimizer that make no sense."""
    if not isinstance(model, nn.Module):
        raise ValueError(
            f"model must be a torch.nn.Module, got {type(model).__name__}; blocks are found by the "
            "names of a model's parts, so give the model and not its parameters"
        )
    check_count("period", period, 1)
    check_count("active", active, 1)
    check_count("warmup", warmup)
    if keep_state is not False and not (isinstance(keep_state, str) and keep_state == "cpu"):
        raise ValueError(f"keep_state must be False or 'cpu', got {keep_state!r}")
    if importance is not None and not (isinstance(importance, str) and importance == "relative"):
        raise ValueError(f"importance must be None or 'relative', got {importance!r}")
    if seed is not None:
        check_count("seed", seed)
        if seed >= 2**64:
            raise ValueError(f"seed must be below 2**64, got {seed!r}")


def check_inner(inner: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Refuse what makes no optimizer, and optimizers that call the closure themselves."""
    if not callable(inner):
        raise ValueError(
            f"inner must be an optimizer class such as torch.optim.AdamW, got {inner!r}; its "
            "settings are further keywords"
        )
    step = getattr(inner, "step", None)
    closure = inspect.signature(step).parameters.get("closure") if step is not None else None
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ValueError(f"inner={inner.__name__} needs a closure at each step; use another one")
    return settings


def check_costs(cost: Any, names: tuple[str, ...]) -> Array:
    """Return the costs in the order of the blocks."""
    if not isinstance(cost, Mapping) or set(cost) != set(names):
        raise ValueError(
            f"cost must map each of the blocks {list(names)} to a number, got {cost!r}"
        )
    costs = np.array([cost[name] for name in names], float)
    if not (np.isfinite(costs) & (costs > 0)).all():
        raise ValueError(f"cost must hold positive finite numbers, got {dict(cost)!r}")
    return costs


def check_saved(text: Any, policy: Any, book: Ledger) -> dict[str, Any]:
    """Return a saved position; refuse one of other blocks or another policy."""
    if not isinstance(text, str) or not text:
        raise ValueError("the state was not saved by a BlockOptimizer; it holds no position")
    place: dict[str, Any] = json.loads(text)
    theirs = tuple(place["ledger"]["names"])
    if theirs != book.names:
        raise ValueError(
            f"the state was saved for the blocks {list(theirs)} and this optimizer has "
            f"{list(book.names)}; make it with the same model, blocks=, always= and never="
        )
    if place["policy"] != repr(policy):
        raise ValueError(
            f"the state was saved with policy {place['policy']} and this optimizer has {policy!r}; "
            "make it with the same policy"
        )
    return place


def check_complete(place: Mapping[str, Any], state_dict: Mapping[str, Any]) -> None:
    """Refuse a state from which something on the way has dropped the inner state of parameters."""
    order = [i for group in state_dict["param_groups"] for i in group["params"]]
    lost = [order[i] for i in place["stateful"] if not state_dict["state"].get(order[i])]
    if lost:
        raise ValueError(
            f"the state has lost the inner state of parameters {lost}: DCP's get_state_dict and "
            "set_state_dict skip frozen ones, so with keep_state='cpu' save and load "
            "optimizer.state_dict() itself"
        )
