"""Refusing arguments and saved states that do not fit, before anything is changed."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from scgd.checks import whole
from scgd.torch.blocks.ledger import Ledger
from scgd.typing import Array


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
    whole(period, "period", 1)
    whole(active, "active", 1)
    whole(warmup, "warmup")
    check_choice_of("keep_state", keep_state, (False, "cpu"))
    check_choice_of("importance", importance, (None, "relative"))
    if seed is not None:
        whole(seed, "seed")
        if seed >= 2**64:
            raise ValueError(f"seed must be below 2**64, got {seed!r}")


def check_in_backward(in_backward: bool, model: Any, policy: Any) -> None:
    """Refuse steps during backward where gradients are reduced later, or measured together."""
    if not in_backward:
        return
    if isinstance(model, DistributedDataParallel):
        raise ValueError(
            "in_backward=True steps before DistributedDataParallel has reduced the gradients; "
            "leave in_backward out"
        )
    if policy.looks_at_all or policy.gain == "adam":
        raise ValueError(
            f"in_backward=True frees gradients one by one, and {policy!r} needs those of a block "
            "together; use gain='square' or 'absolute' without probe"
        )


def check_inner(inner: Any) -> None:
    """Refuse what makes no optimizer."""
    if not callable(inner):
        raise ValueError(
            f"inner must be an optimizer class such as torch.optim.AdamW, got {inner!r}; its "
            "settings are further keywords"
        )


def check_groups(groups: Any) -> dict[str, Mapping[str, Any]]:
    """Return the settings by pattern."""
    if groups is not None and not isinstance(groups, Mapping):
        raise TypeError(f"groups must map patterns to settings, got {groups!r}")
    for pattern, own in (groups or {}).items():
        if not isinstance(own, Mapping):
            raise TypeError(
                f"groups[{pattern!r}] must map settings of inner to values, as in "
                f"{{{pattern!r}: {{'lr': 0.1}}}}, got {own!r}"
            )
    return dict(groups or {})


def try_inner(
    inner: Any,
    settings: dict[str, Any],
    members: Iterable[Mapping[str, Tensor]],
    groups: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Make the inner optimizer for each block in turn and drop it; return its default settings.

    It refuses settings and parameters itself (Muon takes matrices only), and does so before
    anything of the user's is touched; those that create state have it for one block at a time.
    """
    trial: Any = None
    for params in members:
        make = partial(inner, **settings)
        try:
            trial = make([{"params": list(params.values())}])
        except ValueError as error:
            check_each(make, params, error)
            raise
        check_made(inner, trial)
    defaults: dict[str, Any] = trial.defaults
    for pattern, own in groups.items():
        try_group(partial(make, [{"params": list(params.values())}]), pattern, own, defaults)
    return defaults


def check_each(make: Any, params: Mapping[str, Tensor], error: ValueError) -> None:
    """Say which parameters of a block an optimizer refuses, if it takes some."""
    refused = []
    for name, p in {"": torch.zeros(2, 2), **params}.items():
        try:
            make([{"params": [p]}])
        except ValueError:
            refused.append(name)
    if refused and "" not in refused:
        raise ValueError(
            f"inner refuses {refused} ({error}); leave such parameters out by never=, or give "
            "inner a function that makes another optimizer for them"
        ) from error


def check_made(inner: Any, made: Any) -> None:
    """Refuse what is no optimizer, and optimizers that call the closure themselves."""
    if not isinstance(made, torch.optim.Optimizer):
        raise TypeError(f"inner must make a torch optimizer, got {made!r} from {inner!r}")
    closure = inspect.signature(made.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        name = type(made).__name__
        raise ValueError(f"inner={name} needs a closure at each step; use another one")


def try_group(
    make: Callable[..., Any], pattern: str, own: Mapping[str, Any], defaults: Mapping[str, Any]
) -> None:
    """Refuse settings of a group that the inner optimizer refuses; torch asks the defaults only."""
    known = {name: value for name, value in own.items() if name in defaults}
    try:
        inspect.signature(make).bind(**known)
    except TypeError:
        return  # a function that takes no such keyword cannot be asked
    try:
        make(**known)
    except (TypeError, ValueError) as error:
        raise ValueError(f"groups[{pattern!r}] = {dict(own)!r}: {error}") from error


def check_rates(warmup: int, importance: Any, groups: Iterable[Mapping[str, Any]]) -> None:
    """Refuse factors of the rate for an inner optimizer that has none."""
    wanted = [f"warmup={warmup}"] if warmup else []
    wanted += [f"importance={importance!r}"] if importance else []
    if wanted and any(group.get("lr") is None for group in groups):
        raise ValueError(
            f"{' and '.join(wanted)} multiplies the rate lr, which the inner optimizer does not "
            "have; give lr=, or leave it out"
        )


def check_choice(policy: Any, chosen: Any, n_blocks: int) -> list[int]:
    """Return the blocks a policy has chosen; refuse what are no numbers of blocks."""
    listed: list[Any] = list(chosen) if isinstance(chosen, Iterable) else [chosen]
    good = all(
        isinstance(b, int | np.integer) and not isinstance(b, bool) and 0 <= b < n_blocks
        for b in listed
    )
    if not isinstance(chosen, Iterable) or not good or len(set(listed)) < len(listed) or not listed:
        raise ValueError(
            f"{policy!r}.choose must return a list of one or more different block numbers from 0 "
            f"to {n_blocks - 1} (those of book.blocks can be trained), got {chosen!r}"
        )
    return [int(b) for b in listed]


def check_choice_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuse what is not one of a few values."""
    if not any(type(value) is type(one) and value == one for one in allowed):
        words = " or ".join(map(repr, allowed))
        raise ValueError(f"{name} must be {words}, got {value!r}")


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
