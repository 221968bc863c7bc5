"""Files of results: there as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

from scgd.errors import CommandError
from scgd.files import replacing

__all__ = ["write_whole"]


def write_whole(path: Path, data: bytes) -> None:
    """Write a file; a kill or a full disk leaves no half of it, and is told in one line."""
    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        raise CommandError(
            f"cannot write {path}: {error.strerror}; make room or choose another folder"
        ) from None
