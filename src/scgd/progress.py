"""A live bar for a run, through tqdm where it is installed and plain lines where it is not."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from scgd.run.run import Run

__all__ = ["Progress"]


class Progress:
    """Show how far a run is; a context manager that does nothing when not wanted."""

    def __init__(self, run: Run, wanted: bool) -> None:
        self.run = run
        self.wanted = wanted and sys.stderr is not None  # as in a program without a console
        self.bar: Any = None
        self._next = 0.0

    def __enter__(self) -> Progress:
        """Open the bar."""
        if self.wanted:
            try:
                from tqdm import tqdm
            except ImportError:
                return self
            self.bar = tqdm(total=self.run.max_evals, initial=self.run.nfev, unit="eval")
        return self

    def update(self) -> None:
        """Show the state at the end of a phase, a few times per second."""
        if not self.wanted or time.monotonic() < self._next:
            return
        self._show()

    def _show(self) -> None:
        self._next = time.monotonic() + 0.2
        fun = self.run.ledger.sign * self.run.history.latest
        if self.bar is not None:
            self.bar.set_postfix_str(f"f = {fun:.6g}", refresh=False)
            self.bar.update(self.run.nfev - self.bar.n)
        else:
            sys.stderr.write(f"\r{self.run.nfev} evaluations, f = {fun:.6g}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the bar."""
        if self.wanted:
            self._show()
            if self.bar is not None:
                self.bar.close()
            else:
                sys.stderr.write("\n")
