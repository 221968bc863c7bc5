"""What made a table, noted beside it: quick or full runs, and the machine and packages they ran on.

A report may be written long after the runs and elsewhere, so it says what was noted then.
"""

from __future__ import annotations

import json
import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from scgd import __version__
from scgd.errors import CommandError
from scgd_paper.files import write_whole

__all__ = ["environment", "read_note", "record", "write_note"]

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "torch")


def environment() -> dict[str, str]:
    """Return what the figures depend on besides the code."""
    packages = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "scgd": __version__,
        "Python": platform.python_version(),
        **packages,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": str(n_cores),
    }


def read_note(path: Path) -> dict[str, Any]:
    """Return the note beside a table; empty if there is none."""
    if not path.exists():
        return {}
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(note["quick"], bool) or not isinstance(note.get("made", []), list):
            raise ValueError
        return dict(note)
    except (ValueError, KeyError, TypeError):
        raise CommandError(f"{path} is damaged; remove it and run again") from None


def write_note(path: Path, note: dict[str, Any]) -> None:
    """Write a note; a kill leaves the old one or the new one, never half of it."""
    write_whole(path, (json.dumps(note) + "\n").encode())


def record(path: Path) -> None:
    """Add this machine to a note, with the day, unless it is there already."""
    note, here = read_note(path), environment()
    made = note.get("made", [])
    if here not in [entry["environment"] for entry in made]:
        made = [*made, {"day": time.strftime("%Y-%m-%d"), "environment": here}]
        write_note(path, note | {"made": made})
