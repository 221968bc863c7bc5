"""What every argument of the optimizers must be, before torch or a law sees it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scgd.checks import flag, shown

__all__ = ["check_arguments", "check_names"]

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


def check_names(given: Any, name: str) -> tuple[str, ...]:
    """Return patterns or names as a tuple of words.

    Examples
    --------
    >>> check_names("head", "always")
    Traceback (most recent call last):
    ...
    TypeError: always must be a list of words, got 'head'
    """
    listed = (
        isinstance(given, Iterable) and getattr(given, "ndim", 1) > 0 and not isinstance(given, str)
    )
    found = tuple(given) if listed else ()
    if not listed or not all(isinstance(word, str) for word in found):
        raise TypeError(f"{name} must be a list of words, got {shown(given)}")
    return found
