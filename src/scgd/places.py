"""Whether a file can be written, asked before the work and not after it."""

from __future__ import annotations

import os
from pathlib import Path

from scgd.errors import UsageError

__all__ = ["check_folder", "check_place"]


def check_place(
    path: Path | None, option: str, suffixes: tuple[str, ...] = (), *others: Path | None
) -> None:
    """Refuse a file that cannot be written, or that is another file of the command."""
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        raise UsageError(f"{option} must end in {' or '.join(suffixes)}, got {path}")
    if not path.parent.is_dir():
        raise UsageError(f"{option}: there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        raise UsageError(f"{option}: {path} is not a file")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{option}: {path} cannot be written")
    if any(other is not None and other.resolve() == path.resolve() for other in others):
        raise UsageError(f"{option}: {path} is already in use by this command; choose another name")


def check_folder(path: Path, option: str) -> None:
    """Refuse a folder that cannot be made or written in."""
    for place in (path, *path.parents):
        if place.exists():
            if not place.is_dir():
                raise UsageError(f"{option}: {place} is not a folder")
            if not os.access(place, os.W_OK):
                raise UsageError(f"{option}: {place} cannot be written")
            return
