"""How far a run is, in a line: for a terminal, a notebook or a file."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections import deque
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any

from scgd.history import with_error

if TYPE_CHECKING:
    from scgd.run.run import Run

WIDTH = 10
"""Characters of the bar."""
LOOKS = 50
"""Looks over which the speed is an average: the last ten seconds on a terminal."""
TERMINAL, NOTEBOOK, FILE = 0.2, 0.5, 10.0
"""Seconds between two looks; in a file each one is a line of its own."""


class Progress:
    """Shows value and error, speed, time left and the solver at work.

    Parameters
    ----------
    run
        The run.
    deadline
        When it must end, on the clock of ``time.monotonic``; None for no limit.
    """

    def __init__(self, run: Run, deadline: float | None = None) -> None:
        self.run, self.deadline = run, deadline
        self.wanted = sys.stderr is not None  # else a program without a console
        self.began = self._next = time.monotonic()
        self.seen = deque([(self.began, run.nfev)], maxlen=LOOKS)
        self.display: Any = None
        self.terminal = False
        self.width = 0

    def __enter__(self) -> Progress:
        """Show that it begins."""
        if self.wanted:
            self.terminal = sys.stderr.isatty()
            if "ipykernel" in sys.modules:
                from IPython import get_ipython
                from IPython.display import display

                if hasattr(get_ipython(), "kernel"):
                    self.display = display(self, display_id=True)
            self.update()
        return self

    def update(self) -> None:
        """Show the state, now and then."""
        if self.wanted and time.monotonic() >= self._next:
            self._show()

    def _show(self) -> None:
        now = time.monotonic()
        self.seen.append((now, self.run.nfev))
        if self.display is not None:
            self._next = now + NOTEBOOK
            self.display.update(self)
            return
        self._next = now + (TERMINAL if self.terminal else FILE)
        line = repr(self)
        if self.terminal:
            line = line[: shutil.get_terminal_size().columns - 1]
            line, self.width = f"\r{line.ljust(self.width)}", len(line)
        with suppress(OSError, ValueError):  # nobody reads it any more
            sys.stderr.write(line if self.terminal else f"{line}\n")
            sys.stderr.flush()

    def __exit__(self, *raised: Any) -> None:
        """Show how it ended."""
        if self.wanted and raised[0] is None:  # else it may stand in the middle of something
            self._show()
        if self.terminal and self.display is None:
            with suppress(OSError, ValueError):
                sys.stderr.write("\n")

    # ---- what is shown ---------------------------------------------------------------------------

    @property
    def part(self) -> float | None:
        """The part of the budget that was used; None where there is none."""
        return self.run.nfev / self.run.max_evals if self.run.max_evals else None

    @property
    def facts(self) -> list[str]:
        """Evaluations, value, speed, time left and who is at work."""
        run, (then, before), (now, after) = self.run, self.seen[0], self.seen[-1]
        rate = (after - before) / (now - then) if now > then else 0.0
        of = f" of {run.max_evals:,}" if run.max_evals is not None else ""
        facts = [f"{run.nfev:,}{of}"]
        value, error = run.valued(run.recommended(run.status))
        if math.isfinite(value):
            facts.append(f"f = {with_error(run.ledger.sign * value, error, 6)}")
        if rate > 0:
            facts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s")
        left = [] if self.deadline is None else [max(0.0, self.deadline - now)]
        if run.max_evals is not None and rate > 0:
            left.append((run.max_evals - run.nfev) / rate)
        facts.append(f"{clock(min(left))} left" if left else f"{clock(now - self.began)} gone")
        return [*facts, run.strategy.solver]

    def __repr__(self) -> str:
        """Return a line of text."""
        part = self.part
        bar = "" if part is None else f"[{'#' * int(WIDTH * part):-<{WIDTH}}] "
        return bar + ", ".join(self.facts)

    def _repr_html_(self) -> str:
        """Return a line for a notebook."""
        part = "" if self.part is None else f' value="{self.part:.4f}"'
        return f"<progress{part}></progress> <code>{escape(', '.join(self.facts))}</code>"


def clock(seconds: float) -> str:
    """Return a time for people.

    Examples
    --------
    >>> clock(75.2), clock(3723.0)
    ('1:15', '1:02:03')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
