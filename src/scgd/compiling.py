"""numba's ``njit`` with a disk cache that notices edits.

numba keys its cache by the caller's own file, so an edit in a callee of another module goes
unnoticed. Here the cache lives in a folder named by the version and a checksum of all sources of
the package: any edit, and any new version, starts a fresh one. ``NUMBA_CACHE_DIR`` overrides it.
Who waits in front of a terminal or a notebook for compiled code is told so, once.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import event

__all__ = ["njit"]

PATIENCE = 2.0


class Notice(event.Listener):  # type: ignore[misc]
    """Says that code is being compiled when that has taken longer than a moment."""

    def __init__(self) -> None:
        self.depth, self.spent, self.began = 0, 0.0, 0.0
        self.timer: threading.Timer | None = None
        self.said = False

    def on_start(self, event: Any) -> None:
        """Start the clock with the outermost function."""
        self.depth += 1
        if self.depth == 1 and not self.said:
            self.began = time.perf_counter()
            self.timer = threading.Timer(max(PATIENCE - self.spent, 0.0), self.say)
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: Any) -> None:
        """Stop the clock."""
        self.depth -= 1
        if self.depth == 0 and self.timer is not None:
            self.timer.cancel()
            self.timer, self.spent = None, self.spent + time.perf_counter() - self.began

    def say(self) -> None:
        """Tell a person, not a file."""
        if not self.said and (sys.stderr.isatty() or "ipykernel" in sys.modules):
            print("scgd: compiling for the first use; later runs start at once", file=sys.stderr)
        self.said = True


event.register("numba:compile", Notice())


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
