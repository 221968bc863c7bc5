"""Checkpoints: a run's whole state in one ``.npz`` file, written atomically, read without pickle.

The file holds the arrays of a run's ``state_dict()`` under their paths and everything else as one
JSON document. It is written beside the target and renamed over it, so the file on disk is always a
whole checkpoint; the one before is kept as ``.NAME.previous`` for disks that break that promise.
Identity is what must match for a resumed run to be the same run: the shape of the problem, the
configuration, the seed, the sample size and the format version; never the source of the user's
function.
"""

from __future__ import annotations

import io
import json
import math
import os
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from scgd.checks import as_number, shown
from scgd.files import regular, replacing, sweep
from scgd.typing import Array

__all__ = ["Checkpoint", "CheckpointError", "OtherRun"]

FORMAT = 4
FIRST = 1.0
"""Seconds after which a run is saved for the first time."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, with the reason and the remedy."""


class OtherRun(CheckpointError):
    """A checkpoint that belongs to another run, or says that nothing here fits it."""


def flatten(state: dict[str, Any], prefix: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a nested state into arrays by path and a JSON-able rest of the same nesting."""
    arrays: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            arrays[prefix + name] = value
        elif isinstance(value, dict):
            inner, rest[name] = flatten(value, prefix + name + "/")
            arrays.update(inner)
        else:
            rest[name] = value
    return arrays, rest


def unflatten(arrays: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    """Undo :func:`flatten`."""
    state = json.loads(json.dumps(rest))
    for path, array in arrays.items():
        *parents, name = path.split("/")
        place = state
        for parent in parents:
            place = place.setdefault(parent, {})
        place[name] = array
    return dict(state)


class Checkpoint:
    """Where and how often a run saves itself.

    Parameters
    ----------
    path
        The file, by habit ``something.npz``.
    every
        Seconds between writes; the first is made after one second at the latest, and the end of a
        run is always written.

    Examples
    --------
    >>> Checkpoint("run.npz", every=60).every
    60.0
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 30.0) -> None:
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            raise TypeError(f"checkpoint must be the path of a file, got {shown(path)}")
        self.path = Path(path)
        seconds = as_number(every)
        if seconds is None or not seconds >= 0:
            raise ValueError(f"every must be a number of seconds >= 0, got {every!r}")
        self.every = every = seconds
        self._due = time.monotonic() + min(FIRST, every)
        self._warned = False

    def due(self) -> bool:
        """Tell whether it is time to write."""
        return time.monotonic() >= self._due

    def save(self, identity: dict[str, Any], state: dict[str, Any]) -> None:
        """Write the state; on a full or read-only disk warn once and keep the last good file."""
        try:
            write(self.path, identity, state)
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"checkpoint {self.path} could not be written ({error}); the run goes on and "
                    "keeps the last good one",
                    RuntimeWarning,
                    stacklevel=2,
                )
        self._due = time.monotonic() + self.every

    def load(self, take_up: Callable[[dict[str, Any], dict[str, Any]], None]) -> bool:
        """Have a saved run taken up; tell whether there was one.

        ``take_up(identity, state)`` raises CheckpointError for what it cannot use. A file that was
        torn (by power loss, say) gives way to the one before it, if that is whole.
        """
        self._due = time.monotonic() + min(FIRST, self.every)
        sweep(self.path)
        if not self.path.exists():
            return False
        try:
            take_up(*read(self.path))
        except OtherRun:
            raise
        except CheckpointError as error:
            if not previous(self.path).exists():
                raise
            take_up(*read(previous(self.path)))
            warnings.warn(f"{error}; going on from the one before", RuntimeWarning, stacklevel=2)
        return True


def previous(path: Path) -> Path:
    """Return where the checkpoint before the last one is kept."""
    return path.with_name(f".{path.name}.previous")


def write(path: Path, identity: dict[str, Any], state: dict[str, Any]) -> None:
    """Write a checkpoint in the place of ``path``; keep the one before."""
    arrays, rest = flatten(state)
    head = {"format": FORMAT, "arrays": list(arrays)}
    document = json.dumps({**head, "identity": identity, "state": rest})
    contents: dict[str, Any] = {"document": np.array(document), **arrays}
    with replacing(path, previous(path)) as file:
        np.savez(file, **contents)


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the identity and the state of a checkpoint; nothing in the file is executed."""
    if not regular(path):
        raise CheckpointError(f"{path} is not an ordinary file; give another name")
    try:
        with zipfile.ZipFile(path) as file:
            if any(info.compress_type != zipfile.ZIP_STORED for info in file.infolist()):
                raise ValueError("it is compressed, so its size cannot be told")
            arrays = {info.filename: parse(file.read(info)) for info in file.infolist()}
        arrays = {name.removesuffix(".npy"): array for name, array in arrays.items()}
        document = json.loads(str(arrays.pop("document")))
        version = document["format"]
        if version == FORMAT and list(arrays) != document["arrays"]:
            raise ValueError("arrays are missing")
        if version == FORMAT:
            return dict(document["identity"]), unflatten(arrays, document["state"])
    except Exception as error:  # a malformed file can make the parsers raise anything
        raise CheckpointError(
            f"{path} is not a readable checkpoint ({type(error).__name__}: {error}); delete it to "
            "start afresh"
        ) from None
    raise CheckpointError(
        f"checkpoint {path} has format {version!r}, this version reads {FORMAT}; "
        "finish it with the version that wrote it, or delete it"
    )


def parse(data: bytes) -> Array:
    """Return the array of a ``.npy`` file, whose size must be what its header says."""
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an array is not of .npy version 1.0")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.hasobject or dtype.names or dtype.kind not in "bfiuU":
        raise ValueError(f"an array is of type {dtype}")
    if math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"an array of shape {shape} has {len(data)} bytes")
    flat = np.frombuffer(data, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if fortran else "C").copy()
