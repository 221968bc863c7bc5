"""What every argument of the optimizers must be, and parameters chosen by name.

A pattern is a regular expression that must match whole parts of a dotted name: ``layers.1`` finds
``model.layers.1.weight`` and not ``model.layers.10.weight``; ``head`` finds ``head.weight`` and not
``overhead.weight``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

import numpy as np
import torch

from scgd.checks import flag, natural, number, shown

FLAGS = ("nesterov", "amsgrad", "decoupled_weight_decay", "maximize", "hold_still", "keep_copy")
MAYBE = ("fused", "foreach", "capturable", "differentiable")
"""Flags of torch's optimizers, which also take None."""
WORDS = ("rule", "granularity", "sampling")


def check_arguments(params: Any, given: dict[str, Any]) -> None:
    """Refuse what is no flag where a flag is wanted, no word or no parameters.

    Examples
    --------
    >>> check_arguments([], {"maximize": "yes"})
    Traceback (most recent call last):
    ...
    TypeError: maximize must be True or False, got 'yes'
    """
    if not isinstance(params, Iterable) or getattr(params, "ndim", 1) == 0:
        raise TypeError(
            f"params must be tensors, named pairs or dicts of them, got {shown(params)}"
        )
    for name in (*FLAGS, *MAYBE):
        if name in given and not (given[name] is None and name in MAYBE):
            flag(given[name], name)
    for name in WORDS:
        if not isinstance(given.get(name), str | None):
            raise TypeError(f"{name} must be a word, got {shown(given[name])}")


def check_number(name: str, value: Any, low: float, high: float = inf) -> None:
    """Refuse what is not a number in [low, high)."""
    single = isinstance(value, torch.Tensor) and value.numel() == 1
    number(value.item() if single else value, name, low, high, ends="[)")


def check_lr(lr: Any) -> None:
    """Refuse learning rates that are not one finite number >= 0."""
    if isinstance(lr, torch.Tensor) and lr.numel() != 1:
        raise ValueError(f"Tensor lr must be 1-element, got shape {tuple(lr.shape)}")
    check_number("lr", lr, 0.0)


def check_seed(seed: Any) -> int:
    """Return a seed as a plain number; refuse what is not a whole number >= 0."""
    if seed is None:  # from the operating system; the global generators are not touched
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if np.ndim(seed) or not natural(seed):
        raise ValueError(f"seed must be None or a whole number >= 0, got {seed!r}")
    return int(seed)


def finds(pattern: str, name: str) -> bool:
    """Whether a pattern matches whole parts of a dotted name.

    >>> finds("layers.1", "model.layers.1.weight"), finds("layers.1", "model.layers.10.weight")
    (True, False)
    """
    return re.search(whole(pattern), name) is not None


def whole(pattern: str) -> str:
    """Return a pattern that matches whole parts of a dotted name only."""
    return rf"(?:^|\.)(?:{pattern})(?:\.|$)"


def as_patterns(argument: str, patterns: Any) -> list[str]:
    """Return patterns as a list; one alone may be given as a string."""
    if not isinstance(patterns, Iterable) or getattr(patterns, "ndim", 1) == 0:
        raise TypeError(f"{argument} must be regular expressions, got {patterns!r}")
    listed = [patterns] if isinstance(patterns, str) else list(patterns)
    for pattern in listed:
        try:
            if not isinstance(pattern, str):
                raise TypeError("not a string")
            re.compile(whole(pattern))
        except (re.error, TypeError) as error:
            raise ValueError(
                f"{argument} holds {pattern!r}, no regular expression ({error}); write a backslash "
                "before signs such as ( that are part of a name"
            ) from error
    return listed


def select(params: Any, only: str | Sequence[str] | None) -> Any:
    """Return the named parameters (or groups of them) that a pattern finds.

    Examples
    --------
    >>> select([("model.layers.1.weight", 1), ("model.layers.10.weight", 2)], "layers.1")
    [('model.layers.1.weight', 1)]
    """
    if only is None:
        return params
    patterns, params = as_patterns("only", only), list(params)
    seen: list[str] = []
    if params and isinstance(params[0], dict):
        chosen = [{**g, "params": matching(g["params"], patterns, seen)} for g in params]
        found = [pair for group in chosen for pair in group["params"]]
    else:
        found = chosen = matching(params, patterns, seen)
    if not found:
        raise ValueError(
            f"only={only!r} finds no whole part of a name; there are {', '.join(seen)}"
        )
    return chosen


def matching(pairs: Iterable[Any], patterns: Sequence[str], seen: list[str]) -> list[Any]:
    """Return the pairs whose names match."""
    chosen = []
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)):
            raise ValueError("only needs names: pass model.named_parameters()")
        seen.append(pair[0])
        if any(finds(pattern, pair[0]) for pattern in patterns):
            chosen.append(pair)
    return chosen
