"""A lock on a checkpoint, which dies with the process that holds it.

The lock is the operating system's, on a file beside the checkpoint that says who holds it. It is
not inherited by children, ends with its process however that ends, and its file is removed when it
is released; what a killed process leaves is taken over and removed by the next run. Where that
fails (a disk that is full or read-only, a file system without locks) the run goes on without.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from pathlib import Path

from scgd.checkpoint import CheckpointError

try:
    import fcntl
except ImportError:  # Windows: nothing is locked
    fcntl = None  # type: ignore[assignment]

__all__ = ["Lock"]

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
