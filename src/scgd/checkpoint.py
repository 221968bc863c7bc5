"""Checkpoints: a run's whole state in one ``.npz`` file, written atomically, read without pickle.

The file holds the arrays of ``Optimizer.state_dict()`` under their paths and everything else as one
JSON document. It is written beside the target and renamed over it, so the file on disk is always a
whole checkpoint. Identity is what must match for a resumed run to be the same run: the shape of the
problem, the configuration, the seed, the sample size and the format version; never the source of
the user's function.
"""

from __future__ import annotations

import json
import os
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Checkpoint", "CheckpointError"]

FORMAT = 1
UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    zipfile.BadZipFile,
)


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
        """Return the saved state, None when there is no file; refuse another run's."""
        if not self.path.exists():
            return None
        found, state = read(self.path)
        for name, mine in json.loads(json.dumps(identity)).items():
            theirs = found.get(name)
            if mine is not None and theirs != mine:
                raise CheckpointError(
                    f"checkpoint {self.path} belongs to another run: its {name} is {theirs!r}, "
                    f"here it is {mine!r}; use another file, or the same arguments to go on"
                )
        return state


def write(path: Path, identity: dict[str, Any], state: dict[str, Any]) -> None:
    """Write a checkpoint beside ``path`` and rename it into place."""
    arrays, rest = flatten(state)
    document = json.dumps({"format": FORMAT, "identity": identity, "state": rest})
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            contents: dict[str, Any] = {"document": np.array(document), **arrays}
            np.savez(file, **contents)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the identity and the state of a checkpoint."""
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        document = json.loads(str(arrays.pop("document")))
        version = document["format"]
        if version == FORMAT:
            return document["identity"], unflatten(arrays, document["state"])
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        EOFError,
        zipfile.BadZipFile,
    ) as error:
        raise CheckpointError(
            f"{path} is not a readable checkpoint ({error}); delete it to start afresh"
        ) from None
    raise CheckpointError(
        f"checkpoint {path} has format {version}, this version reads {FORMAT}; "
        "finish it with the version that wrote it, or delete it"
    )
