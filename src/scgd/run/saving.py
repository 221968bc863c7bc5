"""Saving a run and taking it up again: where nobody else writes, and only what fits."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import stat
from pathlib import Path
from typing import Any

import numpy as np

from scgd.checkpoint import Checkpoint, CheckpointError, OtherRun
from scgd.checks import LARGEST
from scgd.run.interpreter import OtherPoints
from scgd.run.run import Run

try:
    import fcntl
except ImportError:  # Windows: nothing is locked
    fcntl = None  # type: ignore[assignment]


held: dict[tuple[int, str], int] = {}
"""Files locked by this process, which the system would let it lock twice; by process, for forks."""


FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""How a lock is opened: never through a link, and never waiting for the other end of a pipe."""


class InUse(CheckpointError):
    """Another run writes this checkpoint."""


class Lock:
    """Held from the making of it until :meth:`release`, or until nobody knows it any more.

    Parameters
    ----------
    path
        The checkpoint; a link locks what it points to.

    Attributes
    ----------
    error
        Why there is no lock, if there is none.
    """

    def __init__(self, path: Path) -> None:
        target = Path(os.path.realpath(path))
        self.path, self.file = target.with_name(f".{target.name}.lock"), -1
        self.key = (os.getpid(), str(self.path))
        if self.key in held:
            raise InUse(refusal(path, f"this process ({os.getpid()}), in another run"))
        self.error: OSError | None = None
        try:
            self._take(path)
        except OSError as error:
            self.error = error

    def _take(self, path: Path) -> None:
        while fcntl is not None and self.file < 0:
            file = os.open(self.path, FLAGS, 0o644)
            try:
                self._lock(file, path)
            except BaseException:
                os.close(file)
                raise
            if self.file < 0:
                os.close(file)

    def _lock(self, file: int, path: Path) -> None:
        """Lock an open file, unless its owner removed it between opening and locking."""
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(f"{self.path} is not an ordinary file")
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            owner = os.read(file, 200).decode(errors="replace").strip()
            raise InUse(refusal(path, owner or "another process")) from None
        except OSError:  # a file system without locks
            self._remove(file)
            raise
        if not self._current(file):
            return
        if os.fstat(file).st_nlink > 1:  # a second name of somebody's file, which is not ours
            self._remove(file)
            return
        self.file = held[self.key] = file
        try:
            os.ftruncate(file, 0)
            os.write(file, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        except OSError:  # locked all the same, on a full disk
            pass

    def _remove(self, file: int) -> None:
        """Remove the name of a lock that is of no use."""
        if self._current(file):
            os.unlink(self.path)

    def _current(self, file: int) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(file), os.stat(self.path))
        return False

    def release(self) -> None:
        """Let others have it; a child of a fork has nothing to release."""
        if self.file >= 0 and self.key[0] == os.getpid():
            with contextlib.suppress(OSError):
                os.unlink(self.path)  # before it is unlocked, so that nobody's file is removed
            os.close(self.file)
            held.pop(self.key, None)
        self.file = -1

    def __del__(self) -> None:
        """Release what an error left behind."""
        if getattr(self, "file", -1) >= 0:
            self.release()


def refusal(path: Path, owner: str) -> str:
    """Say who holds the checkpoint, and what to do."""
    return (
        f"checkpoint {path} is in use by {owner}; wait for it or end it, or give this run "
        "another file"
    )


def restore(run: Run, state: dict[str, Any]) -> None:
    """Have a run take up a state, or raise CheckpointError and leave it unusable.

    Compiled loops do not check indices, so a file from elsewhere is checked by those who read it,
    and what the run holds afterwards must be what the file says.
    """
    try:
        rows = state.pop("record", None)
        run.seed.take_up(state["seed"])
        if run.samples.controlled:
            run.samples.key[...] = run.seed.sample_key
        run.load_state_dict(state)
        check_same({**run.state_dict(), "seed": run.seed.text}, state)
        if rows is not None:
            run.record.load_state_dict(rows)
    except OtherPoints as error:
        raise CheckpointError(f"{error} {WAYS_OUT}") from None
    except Exception as error:  # a state from elsewhere can make its readers raise anything
        raise CheckpointError(
            f"the checkpoint does not fit this run ({type(error).__name__}: {error}); delete it to "
            "start afresh"
        ) from None


WAYS_OUT = (
    "(another version of it or of scgd, or another machine's arithmetic). Go on from its best "
    "point with another checkpoint and known=[scgd.Checkpoint(path).best()] of this path; or "
    "delete it"
)
"""What to do with a file whose strategy asked other points."""


def check_same(mine: Any, found: Any, path: str = "") -> None:
    """Check that what was taken up is what was saved: names, types, shapes and values."""
    if isinstance(mine, dict):
        if not isinstance(found, dict) or found.keys() != mine.keys():
            raise ValueError(f"{path or 'the state'} has other names")
        for name, value in mine.items():
            check_same(value, found[name], f"{path}/{name}".lstrip("/"))
    elif isinstance(mine, np.ndarray):
        same = isinstance(found, np.ndarray) and found.dtype == mine.dtype
        nan = mine.dtype.kind == "f"
        if not same or not np.array_equal(mine, found, equal_nan=nan):
            raise ValueError(f"{path} is {found!r}")
    elif not isinstance(found, type(mine)) or not (found == mine or found != found):
        raise ValueError(f"{path} is {found!r}")
    elif isinstance(mine, int) and "rng" not in path and not -1 <= found <= LARGEST:
        raise ValueError(f"{path} is {found}")


def whole_state(run: Run) -> dict[str, Any]:
    """Return the state of a run, its seed, and its evaluations where nothing else keeps them."""
    rows = run.record.state_dict()
    return {**run.state_dict(), "seed": run.seed.text, **({} if rows is None else {"record": rows})}


def go_on(run: Run, wanted: int | None) -> None:
    """Give a run that was taken up the budget that is wanted now."""
    if wanted == run.max_evals:
        return
    if wanted is not None and wanted < run.n_issued:
        run.remark = (
            f"The checkpoint holds {run.n_issued} evaluations, more than max_evals={wanted}; "
            "this is what they found."
        )
    else:
        run.extend(wanted)


class Saved:
    """The checkpoint of a run, locked until :attr:`lock` is released.

    Parameters
    ----------
    checkpoint
        A file or a :class:`~scgd.Checkpoint`.
    run
        The run.
    identity
        What must match.
    """

    def __init__(self, checkpoint: Any, run: Run, identity: dict[str, Any]) -> None:
        self.run, self.identity = run, identity
        self.file = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
        self.lock = Lock(self.file.path)  # no other run on its file
        self.file.unlocked = self.lock.error

    def resume(self) -> bool:
        """Take up the saved run, if there is one; a larger budget goes on with it."""
        wanted = self.run.max_evals
        found = self.file.load(self._take_up)
        if found:
            go_on(self.run, wanted)
        return found

    def _take_up(self, identity: dict[str, Any], state: dict[str, Any]) -> None:
        check_identity(self.file.path, self.identity, identity, seeded=self.run.seed.given)
        restore(self.run, state)

    def save(self, *, force: bool = False) -> None:
        """Write the checkpoint when it is due; never in the middle of a commit."""
        if self.run.whole and (force or self.file.due()):
            identity = {**self.identity, "seed": self.run.seed.text}
            self.file.save(identity, whole_state(self.run))


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


def identity(run: Run, args: tuple[Any, ...] = (), asynchronous: int = 0) -> dict[str, Any]:
    """Return what must match for a saved run to be taken up: the same problem, method and seed.

    Never the source of the user's function: code may be mended between two runs.
    """
    problem, strategy = run.problem, run.strategy
    bounds = "none" if not problem.lower.size else digest(np.stack([problem.lower, problem.upper]))
    known, n = problem.known, strategy.n_known
    points, values = known.points[:n], known.values[:n]
    return {
        "dimension": problem.n_coords,
        "x0": digest(problem.x0),
        "bounds": bounds,
        "scale": "found" if problem.scale is None else digest(problem.scale),
        "noise": "unknown" if problem.noise is None else repr(problem.noise),
        "space": plain(problem.space),
        "args": [shape_of(value) for value in args],
        "sample": run.samples.kind,
        "method": plain(run.method),
        "on_nonfinite": run.ledger.on_nonfinite,
        "maximize": run.ledger.sign < 0,
        "constraints": "none" if run.merit is None else run.merit.constraints.text,
        "known": "none" if not values else digest(np.column_stack((points, values))),
        "seed": run.seed.text,
        "asynchronous": asynchronous,
        "tol": strategy.tol,
        "max_stall": strategy.max_stall,
    }


def check_identity(path: Any, mine: dict[str, Any], found: dict[str, Any], *, seeded: bool) -> None:
    """Refuse the checkpoint of another run, and say in what it differs."""
    for name, value in mine.items():
        theirs = found.get(name)
        if theirs == value or (name == "seed" and not seeded):
            continue
        what = "differs"
        if name not in ("x0", "bounds", "scale", "known"):
            what = f"is {theirs!r} there and {value!r} here"
        raise OtherRun(
            f"checkpoint {path} belongs to another run: its {name} {what}; use another file, or "
            "the same arguments to go on"
        )
