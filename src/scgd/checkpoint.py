"""Checkpoints: a run's whole state in one ``.npz`` file, written atomically, read without pickle.

The file holds the arrays of a run's ``state_dict()`` under their paths, everything else as one JSON
document, and a checksum of both: a file that was altered anywhere is refused. It is written beside
the target and renamed over it, so the file on disk is always a whole checkpoint; the one before is
kept as ``.NAME.previous`` for disks that break that promise.
Identity is what must match for a resumed run to be the same run: the shape of the problem, the
configuration, the seed, the sample size and the format version; never the source of the user's
function.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import time
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scgd.checks import as_number, shown
from scgd.files import regular, replacing, settled, sweep
from scgd.typing import Array, Floats

FORMAT = 6
ARRAY = ESCAPE = "~"
"""Stands in the place of an array, and before names that begin like that."""
FIRST = 1.0
"""Seconds after which a run is saved for the first time."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, with the reason and the remedy."""


class OtherRun(CheckpointError):
    """A checkpoint that belongs to another run, or says that nothing here fits it."""


def pack(state: Any, columns: dict[str, list[Array]]) -> Any:
    """Return a state as JSON has it; its arrays go to the end of one column per type.

    An array leaves its type and its shape in its place. The state of a run has thousands of small
    ones where many trials are open, and a file of its own for each would be mostly heads.
    """
    if isinstance(state, dict):
        return {
            ESCAPE * name.startswith(ARRAY) + name: pack(v, columns) for name, v in state.items()
        }
    if not isinstance(state, np.ndarray):
        return state
    columns.setdefault(state.dtype.str, []).append(state.ravel())
    return {ARRAY: [state.dtype.str, *state.shape]}


def unpack(packed: Any, columns: dict[str, Array]) -> Any:
    """Undo :func:`pack`; what was taken leaves the columns."""
    if not isinstance(packed, dict):
        return packed
    if ARRAY not in packed:
        return {name.removeprefix(ESCAPE): unpack(value, columns) for name, value in packed.items()}
    kind, *shape = packed[ARRAY]
    size = math.prod(shape)
    found, columns[kind] = np.split(columns[kind], [size])
    return found.reshape(shape).copy()


class Checkpoint:
    """Where and how often a run saves itself.

    Parameters
    ----------
    path
        The file, by habit ``something.npz``.
    every
        Seconds between writes; the first is made after one second at the latest, and the end of a
        run is always written.

    Attributes
    ----------
    path
        The file, as an absolute path: it stays where it is when the working folder changes.
    unlocked
        Why the file could not be locked, if it could not; see :mod:`scgd.run.saving`.

    Examples
    --------
    >>> Checkpoint("run.npz", every=60).every
    60.0
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 30.0) -> None:
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            raise TypeError(f"checkpoint must be the path of a file, got {shown(path)}")
        try:
            self.path = settled(path, "checkpoint")
        except ValueError as error:
            raise CheckpointError(str(error)) from None
        self.unlocked: OSError | None = None
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
        trouble = ""
        try:
            write(self.path, identity, state)
        except OSError as error:
            trouble = f"written ({error}); the run goes on and keeps the last good one"
        else:
            if self.unlocked is not None:
                trouble = f"locked ({self.unlocked}); take care that no other run writes it"
        if trouble and not self._warned:
            self._warned = True
            words = f"checkpoint {self.path} could not be {trouble}"
            warnings.warn(words, RuntimeWarning, stacklevel=2)
        self._due = time.monotonic() + self.every

    def best(self) -> tuple[Floats, float]:
        """Return the best point of a saved run and its value: a pair for ``known=``.

        A run whose values depend on samples gives the point where it stood, and what it saw last.
        """
        identity, state = read(self.path)
        best, engine = state["ledger"]["best"], state["strategy"]["engine"]
        if best is None and engine is not None:
            seen = [*state["history"]["entries"], *state["history"]["pending"]] or [[math.nan]]
            best = {"x": engine["x"], "value": float(seen[-1][0])}
        if best is None or not math.isfinite(best["value"]):
            raise CheckpointError(f"{self.path} holds no point with a value; start afresh")
        return best["x"], -best["value"] if identity["maximize"] else best["value"]

    def load(self, taken: Callable[[dict[str, Any], dict[str, Any]], None]) -> bool:
        """Have a saved run taken up; tell whether there was one.

        ``taken(identity, state)`` raises CheckpointError for what it cannot use. A file that was
        torn (by power loss, say) gives way to the one before it, if that is whole.
        """
        self._due = time.monotonic() + min(FIRST, self.every)
        sweep(self.path)
        if not self.path.exists():
            return False
        try:
            taken(*read(self.path))
        except OtherRun:
            raise
        except CheckpointError as error:
            if not previous(self.path).exists():
                raise
            taken(*read(previous(self.path)))
            warnings.warn(f"{error}; going on from the one before", RuntimeWarning, stacklevel=2)
        return True


def previous(path: Path) -> Path:
    """Return where the checkpoint before the last one is kept."""
    return path.with_name(f".{path.name}.previous")


def write(path: Path, identity: dict[str, Any], state: dict[str, Any]) -> None:
    """Write a checkpoint in the place of ``path``; keep the one before."""
    parts: dict[str, list[Array]] = {}
    packed = pack(state, parts)
    columns = {kind: np.concatenate(arrays) for kind, arrays in parts.items()}
    head = {"format": FORMAT, "columns": list(columns)}
    document = json.dumps({**head, "identity": identity, "state": packed})
    contents: dict[str, Any] = {"document": np.frombuffer(document.encode(), np.uint8)}
    contents |= {f"column{i}": column for i, column in enumerate(columns.values())}
    contents["digest"] = np.array(digest(document, columns))
    with replacing(path, previous(path)) as file:
        np.savez(file, **contents)


def text_of(document: Array) -> str:
    """Return the text that an entry of the file holds; formats before 5 kept it as such."""
    return document.tobytes().decode() if document.dtype == np.uint8 else str(document)


def digest(document: str, arrays: dict[str, Any]) -> str:
    """Return a checksum of everything that a checkpoint says."""
    found = hashlib.sha256(document.encode())
    for name, array in arrays.items():
        found.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


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
        text, known = text_of(arrays.pop("document")), str(arrays.pop("digest", ""))
        document = json.loads(text)
        version = document["format"]
        if version == FORMAT:
            columns = dict(zip(document["columns"], arrays.values(), strict=True))
            if known != digest(text, columns):
                raise ValueError("its content is not what was written")
            return dict(document["identity"]), unpack(document["state"], columns)
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


def state_of(thing: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return some attributes as a checkpoint keeps them."""
    return {name: encoded(getattr(thing, name)) for name in names}


def take_up(
    thing: Any, names: Sequence[str], state: dict[str, Any], loose: Sequence[str] = ()
) -> None:
    """Set these attributes to what a checkpoint kept, of the same kinds.

    Arrays keep their shape, but for the ``loose`` ones.
    """
    for name in names:
        mine = getattr(thing, name)
        found = decoded(state[name], mine)
        if isinstance(mine, np.ndarray) and name not in loose and found.shape != mine.shape:
            raise ValueError(f"{name} has another shape")
        setattr(thing, name, found)


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
        if value.ndim != 1:
            raise ValueError(f"an array of shape {value.shape} stands in the place of a list")
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
