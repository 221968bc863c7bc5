"""What must match for a saved run to be taken up: the same problem, method and seed.

Never the source of the user's function: code may be mended between two runs.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import numpy as np

from scgd.checkpoint import OtherRun
from scgd.problem import Problem
from scgd.run.seeds import Seed
from scgd.samples import Samples

__all__ = ["check_identity", "identity"]


def digest(array: Any) -> str:
    """Return a checksum of an array, its type and its shape."""
    array = np.ascontiguousarray(array)
    head = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(head + array.tobytes()).hexdigest()[:16]


def plain(value: Any) -> str:
    """Return the representation of a value without the addresses of functions in it."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def shape_of(value: Any) -> str:
    """Return what an argument looks like: its type, and its shape where it has one."""
    shape = getattr(value, "shape", None)
    return type(value).__name__ + (f"{tuple(shape)}" if isinstance(shape, tuple) else "")


def identity(
    problem: Problem,
    samples: Samples,
    seed: Seed,
    method: Any,
    on_nonfinite: str,
    args: tuple[Any, ...] = (),
    asynchronous: int = 0,
    maximize: bool = False,
    known: tuple[Any, Any] = ((), ()),
    tol: float = 0.0,
    max_stall: int | None = None,
    constraints: str = "none",
) -> dict[str, Any]:
    """Return what a run is, item by item."""
    bounds = "none" if not problem.lower.size else digest(np.stack([problem.lower, problem.upper]))
    return {
        "dimension": problem.n_coords,
        "x0": digest(problem.x0),
        "bounds": bounds,
        "scale": "found" if problem.scale is None else digest(problem.scale),
        "noise": "unknown" if problem.noise is None else repr(problem.noise),
        "space": plain(problem.space),
        "args": [shape_of(value) for value in args],
        "sample": samples.kind,
        "method": plain(method),
        "on_nonfinite": on_nonfinite,
        "maximize": maximize,
        "constraints": constraints,
        "known": "none" if not len(known[1]) else digest(np.column_stack(known)),
        "seed": seed.text,
        "asynchronous": asynchronous,
        "tol": tol,
        "max_stall": max_stall,
    }


def check_identity(path: Any, mine: dict[str, Any], found: dict[str, Any], seed: Seed) -> None:
    """Refuse the checkpoint of another run, and say in what it differs."""
    for name, value in mine.items():
        theirs = found.get(name)
        if theirs == value or (name == "seed" and not seed.given):
            continue
        what = "differs"
        if name not in ("x0", "bounds", "scale", "known"):
            what = f"is {theirs!r} there and {value!r} here"
        raise OtherRun(
            f"checkpoint {path} belongs to another run: its {name} {what}; use another file, or "
            "the same arguments to go on"
        )
