"""Choose parameters by name: ``only="layers.[45]"``.

A pattern matches whole parts of a dotted name, as in :mod:`scgd.torch.blocks`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from scgd.torch.arguments import check_names
from scgd.torch.blocks.partition import finds

__all__ = ["select"]


def select(params: Any, only: str | Sequence[str] | None) -> Any:
    """Return the named parameters (or groups of them) that a pattern finds.

    Examples
    --------
    >>> select([("model.layers.1.weight", 1), ("model.layers.10.weight", 2)], "layers.1")
    [('model.layers.1.weight', 1)]
    """
    if only is None:
        return params
    patterns = (only,) if isinstance(only, str) else check_names(only, "only")
    if not isinstance(params, Iterable):
        raise TypeError(f"params must be named parameters or groups of them, got {params!r}")
    try:
        for pattern in patterns:
            re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ValueError(f"only must be regular expressions, got {only!r}: {error}") from None
    params = list(params)
    seen: list[str] = []
    if params and isinstance(params[0], dict):
        chosen = [{**g, "params": matching(g["params"], patterns, seen)} for g in params]
        empty = not any(group["params"] for group in chosen)
    else:
        chosen = matching(params, patterns, seen)
        empty = not chosen
    if empty:
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
