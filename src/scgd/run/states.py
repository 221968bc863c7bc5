"""What objects remember, as arrays and plain values that a checkpoint can keep."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["decoded", "encoded"]


def encoded(value: Any) -> Any:
    """Return a value as a checkpoint keeps it."""
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list):
        return np.array(value, np.float64)
    if isinstance(value, np.ndarray):
        return value.astype(np.int64 if value.dtype == np.bool_ else value.dtype)
    return value.state_dict() if hasattr(value, "state_dict") else value


def decoded(value: Any, mine: Any) -> Any:
    """Return a value from a checkpoint in the place of mine; arrays are filled where they are."""
    if isinstance(mine, np.random.Generator):
        mine.bit_generator.state = value
        return mine
    if isinstance(mine, bool | int | float | str):
        if type(value) is not type(mine):
            raise ValueError(f"{value!r} stands in the place of {mine!r}")
        return value
    if isinstance(mine, list | np.ndarray) and not isinstance(value, np.ndarray):
        raise ValueError(f"{value!r} stands in the place of an array")
    if isinstance(mine, list):
        return value.tolist()
    if isinstance(mine, np.ndarray) and isinstance(value, np.ndarray):
        if mine.shape == value.shape and mine.flags.writeable:
            mine[...] = value
            return mine
        return value.astype(mine.dtype)
    if hasattr(mine, "load_state_dict"):
        mine.load_state_dict(value)
        return mine
    return value
