"""numba's ``njit`` with a disk cache that notices edits.

numba keys its cache by the caller's own file, so an edit in a callee of another module goes
unnoticed. Here the cache lives in a folder named by the version and a checksum of all sources of
the package: any edit, and any new version, starts a fresh one. ``NUMBA_CACHE_DIR`` overrides it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

__all__ = ["njit"]


@cache
def cache_folder() -> str:
    """Return the folder for this state of the sources, or "" where numba's own choice stands."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return os.environ["NUMBA_CACHE_DIR"]
    package = Path(__file__).parent
    checksum = 0
    for path in sorted(package.rglob("*.py")):
        checksum = zlib.crc32(path.read_bytes(), checksum)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "scgd" / f"numba-{numba.__version__}-{checksum:08x}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ""
    return str(folder)


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile like ``numba.njit(**options)``, keeping the result in this package's own cache."""

    def decorate(function: Callable[..., Any]) -> Any:
        chosen = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = cache_folder() or chosen
        try:
            return numba.njit(**options)(function)
        finally:
            numba.config.CACHE_DIR = chosen

    return decorate
