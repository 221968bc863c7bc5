"""A lock on a checkpoint, which dies with the process that holds it.

The lock is the operating system's, on a file beside the checkpoint that says who holds it. It is
not inherited by children, ends with its process however that ends, and its file is removed when it
is released; what a killed process leaves is taken over and removed by the next run.
"""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

from scgd.checkpoint import CheckpointError

try:
    import fcntl
except ImportError:  # Windows: nothing is locked
    fcntl = None  # type: ignore[assignment]

__all__ = ["Lock"]

held: dict[tuple[int, str], int] = {}
"""Files locked by this process, which the system would let it lock twice; by process, for forks."""


class InUse(CheckpointError):
    """Another run writes this checkpoint."""


class Lock:
    """Held from the making of it until :meth:`release`, or until nobody knows it any more.

    Parameters
    ----------
    path
        The checkpoint; a link locks what it points to.
    """

    def __init__(self, path: Path) -> None:
        target = Path(os.path.realpath(path))
        self.path, self.file = target.with_name(f".{target.name}.lock"), -1
        self.key = (os.getpid(), str(self.path))
        if self.key in held:
            raise InUse(refusal(path, f"this process ({os.getpid()}), in another run"))
        with contextlib.suppress(FileNotFoundError, PermissionError, NotADirectoryError):
            self._take(path)

    def _take(self, path: Path) -> None:
        while fcntl is not None and self.file < 0:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                owner = os.read(file, 200).decode(errors="replace").strip()
                os.close(file)
                if not isinstance(error, BlockingIOError | PermissionError):
                    return  # a file system without locks
                raise InUse(refusal(path, owner or "another process")) from None
            if self._current(file):
                self.file = held[self.key] = file
                os.ftruncate(file, 0)
                os.write(file, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
            else:  # its owner removed it between opening and locking
                os.close(file)

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
