"""Who waits in front of a terminal or a notebook for compiled code is told so, once."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from numba.core import event

PATIENCE = 2.0
"""Seconds of compiling that nobody needs to be told about."""


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
