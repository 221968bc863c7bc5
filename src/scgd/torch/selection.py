"""Choose parameters by name: ``only="encoder.layers.[45].*"``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from scgd.torch.arguments import check_names

__all__ = ["select"]


def select(params: Any, only: str | Sequence[str] | None) -> Any:
    """Return the named parameters (or groups of them) whose whole name matches a pattern.

    Examples
    --------
    >>> select([("layers.1.weight", 1), ("layers.10.weight", 2)], r"layers[.]1[.].*")
    [('layers.1.weight', 1)]
    """
    if only is None:
        return params
    patterns = (only,) if isinstance(only, str) else check_names(only, "only")
    if not isinstance(params, Iterable):
        raise TypeError(f"params must be named parameters or groups of them, got {params!r}")
    try:
        wanted = [re.compile(pattern) for pattern in patterns]
    except (re.error, TypeError) as error:
        raise ValueError(f"only must be regular expressions, got {only!r}: {error}") from None
    params = list(params)
    seen: list[str] = []
    if params and isinstance(params[0], dict):
        chosen = [{**g, "params": matching(g["params"], wanted, seen)} for g in params]
        empty = not any(group["params"] for group in chosen)
    else:
        chosen = matching(params, wanted, seen)
        empty = not chosen
    if empty:
        raise ValueError(f"only={only!r} matches no whole name; there are {', '.join(seen)}")
    return chosen


def matching(pairs: Iterable[Any], wanted: list[re.Pattern[str]], seen: list[str]) -> list[Any]:
    """Return the pairs whose names match."""
    chosen = []
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)):
            raise ValueError("only needs names: pass model.named_parameters()")
        seen.append(pair[0])
        if any(pattern.fullmatch(pair[0]) for pattern in wanted):
            chosen.append(pair)
    return chosen
