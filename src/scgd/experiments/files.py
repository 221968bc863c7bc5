"""Files that are there as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

from scgd.errors import CommandError

__all__ = ["write_whole"]


def write_whole(path: Path, data: bytes) -> None:
    """Write a file under another name first: a kill or a full disk leaves no half of it."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        try:
            partial.unlink(missing_ok=True)
        except OSError:
            pass  # the folder itself is at fault, which the error says
        raise CommandError(
            f"cannot write {path}: {error.strerror}; make room or choose another folder"
        ) from None
