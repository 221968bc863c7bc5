"""Files that are whole or not there: written beside their place and renamed into it."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], previous: Path | None = None) -> Iterator[IO[bytes]]:
    """Open a new file that takes the place of another when it is complete.

    The file keeps the permissions of the one it replaces; where ``path`` is a link, what it points
    to is replaced. Names of temporary files cannot be guessed, and are opened exclusively.

    Parameters
    ----------
    path
        What to replace.
    previous
        Another name under which the replaced file is kept, where the file system has links.
    """
    target = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(".tmp", f".{target.name}.", target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.chmod(name, permissions(target))
            yield file
            file.flush()
            os.fsync(file.fileno())
        if previous is not None:
            link(target, previous)
        os.replace(name, target)
        sync_folder(target.parent)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)


def permissions(target: Path) -> int:
    """Return those of a file, or those that a new one would get."""
    with contextlib.suppress(OSError):
        return stat.S_IMODE(os.stat(target).st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def link(target: Path, previous: Path) -> None:
    """Give a file a second name, in the place of another; do without where there are no links."""
    name = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    with contextlib.suppress(OSError):
        try:
            os.link(target, name)
            os.replace(name, previous)
        finally:
            os.unlink(name)  # renaming does nothing where both are the same file already


def sync_folder(folder: Path) -> None:
    """Have the renaming survive a power loss, where folders can be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sweep(path: Path) -> None:
    """Remove what writers of this file left behind that were killed."""
    target = Path(os.path.realpath(path))
    for leftover in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
        with contextlib.suppress(OSError):
            leftover.unlink()


def settled(path: str | os.PathLike[str], name: str) -> Path:
    """Return a path that stays where it is when the working folder changes.

    Refuses what is there and is no ordinary file: a pipe would be waited for, a folder or a loop
    of links would end a run when it is written at last.
    """
    try:
        found = Path(os.path.abspath(path))
    except OSError:
        raise FileNotFoundError(
            f"{name}: {path} is relative to a folder that is gone; give an absolute path"
        ) from None
    if os.path.lexists(found) and not regular(found) and not dangling(found):
        raise ValueError(f"{name}: {path} is not an ordinary file; give another name")
    return found


def dangling(path: Path) -> bool:
    """Tell whether a path is a link to a file that is yet to be made."""
    with contextlib.suppress(OSError):
        os.stat(path)
        return False
    return path.is_symlink() and not os.path.islink(os.path.realpath(path))


def regular(path: Path) -> bool:
    """Tell whether a path is an ordinary file (or a link to one), which can be read to its end."""
    with contextlib.suppress(OSError):
        return stat.S_ISREG(os.stat(path).st_mode)
    return False
