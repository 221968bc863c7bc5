"""What the doors ask of an argument, each with an error that names it, its value and the remedy.

Numbers are Python's or NumPy's, alone or as an array without dimensions. A truth value is no
number, and neither is text that looks like one.
"""

from __future__ import annotations

import math
import numbers
import reprlib
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np

from scgd.errors import meant
from scgd.typing import Array

Part = TypeVar("Part")
LARGEST = 2**62
"""Counts beyond this do not fit the counters of compiled code."""


def registry(*rows: tuple[str, Part]) -> dict[str, Part]:
    """Return parts by name; a name may stand for one only.

    Examples
    --------
    >>> registry(("one", 1), ("one", 2))
    Traceback (most recent call last):
    ...
    ValueError: two parts are called 'one': 1 and 2; give one of them another name
    """
    found: dict[str, Part] = {}
    for name, part in rows:
        if name in found:
            raise ValueError(
                f"two parts are called {name!r}: {found[name]} and {part}; give one of them "
                "another name"
            )
        found[name] = part
    return found


def as_number(value: Any) -> float | None:
    """Return the number that a value is, or None where it is none."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and type(value) is np.ndarray:
        value = value[()]
    other = isinstance(value, bool | np.bool_ | np.timedelta64)  # NumPy counts the last as integers
    if other or not isinstance(value, numbers.Real | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if str(value)[0] != "-" else -math.inf


def number(
    value: Any,
    name: str,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    ends: str = "[]",
    wanted: str = "",
) -> float:
    """Return a finite number between two limits, or say what was wanted.

    Parameters
    ----------
    value, name
        The argument.
    low, high, ends
        The limits, and whether they belong: ``"[]"``, ``"(]"``, ``"[)"``, ``"()"``.
    wanted
        The end of the sentence "name must ..."; by default it follows from the limits.

    Examples
    --------
    >>> number(1, "beta", 0, 1, ends="[)")
    Traceback (most recent call last):
    ...
    ValueError: beta must lie in [0, 1), got 1
    """
    found = as_number(value)
    wanted = wanted or limits(low, high, ends)
    if found is None:
        raise TypeError(f"{name} must {wanted}, got {shown(value)}")
    above = found > low if ends[0] == "(" else found >= low
    below = found < high if ends[1] == ")" else found <= high
    if not (math.isfinite(found) and above and below):
        raise ValueError(f"{name} must {wanted}, got {shown(value)}")
    return found


def limits(low: float, high: float, ends: str) -> str:
    """Say what limits ask for."""
    if math.isfinite(low) and math.isfinite(high):
        return f"lie in {ends[0]}{low:g}, {high:g}{ends[1]}"
    if low == 0:
        return "be positive and finite" if ends[0] == "(" else "be finite and not negative"
    return "be a finite number" + (f" >= {low:g}" if math.isfinite(low) else "")


def whole(value: Any, name: str, least: int = 0, wanted: str = "") -> int:
    """Return a whole number that is large enough, or say what is wrong with it.

    Examples
    --------
    >>> whole(2.5, "n")
    Traceback (most recent call last):
    ...
    ValueError: n must be a whole number >= 0, got 2.5
    """
    if type(value) is int and least <= value <= LARGEST:
        return value
    found = as_number(value)
    wanted = wanted or f"be a whole number >= {least}"
    if found is None or found != found or not least <= found <= LARGEST or found != int(found):
        raise ValueError(f"{name} must {wanted}, got {shown(value)}")
    return int(value)


def count(value: Any, name: str) -> int:
    """Return a positive whole number, or say what is wrong with it."""
    return whole(value, name, 1)


def flag(value: Any, name: str) -> bool:
    """Return a truth value, or say that it is none."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def function(value: Any, name: str) -> Any:
    """Return something that can be called, or say that it cannot."""
    if not callable(value):
        raise TypeError(f"{name} must be callable, got {type(value).__name__}")
    return value


def choice(value: Any, name: str, known: Iterable[str]) -> str:
    """Return one of some words, or say which there are."""
    known = tuple(known)
    if not isinstance(value, str) or value not in known:
        hint = meant(value, known) if isinstance(value, str) else ""
        raise ValueError(f"{name} must be one of {known}, got {shown(value)}{hint}")
    return value


def reals(value: Any, name: str, wanted: str = "be an array of real numbers") -> Array:
    """Return real numbers as a float64 array of whatever shape; always a copy.

    Masked entries, complex numbers, dates and words are refused, not converted.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be masked; pass {name}.filled(...) or drop the entries")
    try:
        found = np.asarray(value.detach() if hasattr(value, "detach") else value)
        kind = found.dtype.kind
        if kind == "c":
            raise TypeError(f"{name} must be real, got complex numbers")
        array = np.array(found, np.float64) if kind in "fiuO" or found.size == 0 else None
    except (TypeError, ValueError, RuntimeError) as error:
        if str(error).startswith(f"{name} must be real"):
            raise
        array = None
    if array is None:
        raise TypeError(f"{name} must {wanted}, got {shown(value)}")
    return array


def natural(seed: Any) -> bool:
    """Whether a seed is a whole number or a list of them; NumPy takes more, and nests for ever."""
    if isinstance(seed, list | tuple | range) or (type(seed) is np.ndarray and seed.ndim == 1):
        return all(natural(word) and np.ndim(word) == 0 for word in seed)
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool | np.timedelta64)
    return whole and seed >= 0


def settle(described: Any, **values: Any) -> None:
    """Set fields of a frozen dataclass to what was checked, while it is being made."""
    for name, value in values.items():
        object.__setattr__(described, name, value)


def shown(value: Any) -> str:
    """Return a short text for a value: itself, or its type where it is long."""
    if isinstance(value, bool | int | float | complex | str | bytes | None):
        return reprlib.repr(value)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return repr(value)
    text = reprlib.repr(value)
    return text if len(text) <= 40 and "\n" not in text else type(value).__name__
