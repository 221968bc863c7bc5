"""The arguments of an optimizer as a file can keep them, and back; nothing in a file is executed.

Numbers, names and arrays are kept as they are, and parts of a method by the name of their class and
their fields. What is code (a function, an object of a class of the user's own) is only marked:
whoever loads the file hands it in again.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from scgd.checkpoint import CheckpointError
from scgd.estimators import ESTIMATORS
from scgd.method import SCGD
from scgd.methods import METHODS, Named
from scgd.options import Failures, Rows
from scgd.policies import POLICIES
from scgd.schedules import SCHEDULES, Relative
from scgd.spaces import Choice, Float, Int, Space
from scgd.steps import STEPS
from scgd.strategies.screening import Screen

OTHERS: dict[str, Any] = {"m": SCGD, "u": Relative, "r": Rows, "f": Float, "i": Int, "s": Screen}
CLASSES: dict[str, Any] = {
    cls.__name__: cls
    for registry in (POLICIES, ESTIMATORS, STEPS, SCHEDULES, OTHERS)
    for cls in registry.values()
}
AGAIN = {"kind": "again"}


def to_file(value: Any) -> Any:
    """Return a value as nested dicts of arrays and plain values.

    Examples
    --------
    >>> from scgd.schedules import Linear
    >>> from_file(to_file({"method": "auto", "radius": Linear(0.5)}), {})
    {'method': 'auto', 'radius': Linear(scale=0.5, end=0.0, power=1.0, start=0, total=None)}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {"kind": "dict", "items": {name: to_file(item) for name, item in value.items()}}
    if isinstance(value, Named) and METHODS.get(value.name) is value:
        return value.name
    if isinstance(value, Named) and isinstance(value.strategy, Screen):
        value = value.strategy
    if isinstance(value, Failures):  # exceptions to catch are for calls, which nobody makes here
        return value.nonfinite
    if isinstance(value, Space):
        return {"kind": "space", "items": {k: to_file(v) for k, v in value.parameters.items()}}
    if isinstance(value, Choice):
        others = {"ordered": value.ordered, "default": value.default, "when": value.when}
        return {"kind": "choice", "options": to_file(value.options), "others": to_file(others)}
    if is_dataclass(value) and CLASSES.get(type(value).__name__) is type(value):
        parts = {f.name: to_file(getattr(value, f.name)) for f in fields(value) if f.init}
        return {"kind": "part", "class": type(value).__name__, "fields": parts}
    if hasattr(value, "A") and hasattr(value, "lb"):  # a linear constraint
        matrix = value.A.toarray() if hasattr(value.A, "toarray") else np.asarray(value.A)
        limits = {"lb": to_file(np.asarray(value.lb)), "ub": to_file(np.asarray(value.ub))}
        return {"kind": "linear", "A": to_file(matrix), **limits}
    if hasattr(value, "lb") and hasattr(value, "ub") and not hasattr(value, "fun"):
        return {"kind": "bounds", "lb": to_file(value.lb), "ub": to_file(value.ub)}
    if isinstance(value, list | tuple):
        parts = {str(i): to_file(item) for i, item in enumerate(value)}
        return {"kind": "tuple", "items": parts}
    if isinstance(value, np.ndarray) and value.dtype.kind in "bfiu":
        return {"kind": "array", "array": value}
    return dict(AGAIN)


def from_file(kept: Any, again: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that were kept, with those in their place that are handed in again."""
    found = {name: value for name, value in kept["items"].items() if name not in again}
    for name, value in found.items():
        if needs_code(value):
            raise CheckpointError(
                f"{name} is a function or an object of a class of your own, which no file keeps; "
                f"pass load(path, {name}=...) once more"
            )
    return {**{name: decoded(value) for name, value in found.items()}, **again}


def needs_code(kept: Any) -> bool:
    """Tell whether anything in there has to be handed in again."""
    return isinstance(kept, dict) and (kept == AGAIN or any(map(needs_code, kept.values())))


def decoded(kept: Any) -> Any:
    """Undo :func:`to_file`."""
    if not isinstance(kept, dict):
        return kept
    kind = kept["kind"]
    if kind == "array":
        return kept["array"]
    if kind == "tuple":
        return tuple(decoded(kept["items"][str(i)]) for i in range(len(kept["items"])))
    if kind in ("bounds", "linear"):
        from scipy.optimize import Bounds, LinearConstraint

        if kind == "linear":
            return LinearConstraint(*(decoded(kept[name]) for name in ("A", "lb", "ub")))
        return Bounds(decoded(kept["lb"]), decoded(kept["ub"]))
    if kind == "choice":
        return Choice(*decoded(kept["options"]), **decoded(kept["others"]))
    if kind == "space":
        return Space({name: decoded(value) for name, value in kept["items"].items()})
    parts = kept["fields"] if kind == "part" else kept["items"]
    values = {name: decoded(value) for name, value in parts.items()}
    return CLASSES[kept["class"]](**values) if kind == "part" else values
