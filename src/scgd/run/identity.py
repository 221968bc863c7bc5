"""What must match for a saved run to be taken up: the same problem, method and seed.

Never the source of the user's function: code may be mended between two runs.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import numpy as np

from scgd.checkpoint import OtherRun
from scgd.checks import natural, shown
from scgd.problem import Problem
from scgd.samples import Samples
from scgd.typing import Array

__all__ = ["Seed", "check_identity", "identity"]

SEARCHES, SAMPLES = range(2)


class Seed:
    """The seed of a run.

    Parameters
    ----------
    seed
        None, a whole number, a sequence of them, or a ``SeedSequence`` (which is not advanced).

    Examples
    --------
    >>> Seed(7).text
    '7 []'
    """

    def __init__(self, seed: Any = None) -> None:
        self.given = seed is not None
        if not (seed is None or isinstance(seed, np.random.SeedSequence) or natural(seed)):
            raise ValueError(
                f"seed must be None, a whole number >= 0 or a SeedSequence, got {shown(seed)}"
            )
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self._set(root.entropy, root.spawn_key)

    def _set(self, entropy: Any, spawn_key: Any) -> None:
        self.text = f"{json.dumps(entropy, default=as_plain)} {json.dumps(list(spawn_key))}"
        self.entropy, self.spawn_key = entropy, tuple(spawn_key)

    def child(self, *key: int) -> np.random.SeedSequence:
        """Return a sequence of our own, by key and not by spawn(), which would count elsewhere."""
        return np.random.SeedSequence(self.entropy, spawn_key=(*self.spawn_key, *key))

    @property
    def searches(self) -> np.random.SeedSequence:
        """Where searches take their streams from."""
        return self.child(SEARCHES)

    @property
    def sample_key(self) -> Array:
        """The key of the samples."""
        return self.child(SAMPLES).generate_state(2, np.uint64)

    def take_up(self, text: str) -> None:
        """Become the seed of a saved run."""
        decoder = json.JSONDecoder()
        entropy, end = decoder.raw_decode(text)
        spawn_key = json.loads(text[end:])
        np.random.SeedSequence(entropy, spawn_key=tuple(spawn_key))
        self._set(entropy, spawn_key)


def as_plain(value: Any) -> Any:
    """Return whole numbers of NumPy as JSON has them."""
    return np.asarray(value).tolist()


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
