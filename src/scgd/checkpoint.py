"""Checkpoints: a run's whole state in one ``.npz`` file, written atomically, read without pickle.

The file holds the arrays of ``Optimizer.state_dict()`` under their paths and everything else as one
JSON document. It is written beside the target and renamed over it, so the file on disk is always a
whole checkpoint; the one before is kept as ``.NAME.previous`` for disks that break that promise.
Identity is what must match for a resumed run to be the same run: the shape of the problem, the
configuration, the seed, the sample size and the format version; never the source of the user's
function.
"""

from __future__ import annotations

import contextlib
import glob
import io
import json
import math
import os
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from scgd.typing import Array

__all__ = ["Checkpoint", "CheckpointError"]

FORMAT = 1


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, with the reason and the remedy."""


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
        Seconds between writes; the end of a run is always written.
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 30.0) -> None:
        self.path = Path(path)
        if not every >= 0:
            raise ValueError(f"every must be a number of seconds >= 0, got {every!r}")
        self.every = every
        self._last = time.monotonic()
        self._warned = False

    def due(self) -> bool:
        """Tell whether it is time to write."""
        return time.monotonic() - self._last >= self.every

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
        self._last = time.monotonic()

    def load(self, identity: dict[str, Any]) -> dict[str, Any] | None:
        """Return the saved state, None when there is no file; refuse another run's.

        A file that was torn (by power loss, say) gives way to the one before it, if that is whole.
        """
        self._sweep()
        if not self.path.exists():
            return None
        try:
            found, state = read(self.path)
        except CheckpointError as error:
            if not previous(self.path).exists():
                raise
            found, state = read(previous(self.path))
            warnings.warn(f"{error}; going on from the one before", RuntimeWarning, stacklevel=2)
        for name, mine in json.loads(json.dumps(identity)).items():
            theirs = found.get(name)
            if mine is not None and theirs != mine:
                raise CheckpointError(
                    f"checkpoint {self.path} belongs to another run: its {name} is {theirs!r}, "
                    f"here it is {mine!r}; use another file, or the same arguments to go on"
                )
        return state

    def _sweep(self) -> None:
        """Remove what writers left behind that were killed."""
        for leftover in self.path.parent.glob(f".{glob.escape(self.path.name)}.*.tmp"):
            with contextlib.suppress(OSError):
                leftover.unlink()


def previous(path: Path) -> Path:
    """Return where the checkpoint before the last one is kept."""
    return path.with_name(f".{path.name}.previous")


def write(path: Path, identity: dict[str, Any], state: dict[str, Any]) -> None:
    """Write a checkpoint beside ``path`` and rename it into place; keep the one before."""
    arrays, rest = flatten(state)
    head = {"format": FORMAT, "arrays": list(arrays)}
    document = json.dumps({**head, "identity": identity, "state": rest})
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            contents: dict[str, Any] = {"document": np.array(document), **arrays}
            np.savez(file, **contents)
            file.flush()
            os.fsync(file.fileno())
        keep_previous(path)
        os.replace(temporary, path)
        sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def keep_previous(path: Path) -> None:
    """Give the present file a second name; where the file system has no links, do without."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.link.tmp")
    with contextlib.suppress(OSError):
        os.link(path, temporary)
        os.replace(temporary, previous(path))


def sync_folder(folder: Path) -> None:
    """Have the renaming survive a power loss, where folders can be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the identity and the state of a checkpoint; nothing in the file is executed."""
    try:
        with zipfile.ZipFile(path) as file:
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
