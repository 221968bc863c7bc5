"""Signals and clocks: a run is stopped between steps, never in the middle of one.

Ctrl-C and SIGTERM raise a flag that every loop looks at before its next step. Only while the user's
own function runs is it interrupted at once, because nothing of ours is half done then. A second
signal ends the run without saving. A signal that the user ignores or handles is left alone.

A run inside another run's function hands on what it was interrupted by, because its answer is not
whole: only the outermost one makes a result of an interrupt.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from scgd.calling import inside_user
from scgd.typing import Array


@dataclass(eq=False)
class Stop:
    """A flag that is raised from outside and looked at between steps.

    ``raised`` is a list for loops in Python, which test it in a few nanoseconds, and ``array`` is
    for compiled ones. ``over`` says that there is no time left for another evaluation: a loop then
    gives up the step in hand.
    """

    raised: list[int] = field(default_factory=list)
    over: list[int] = field(default_factory=list)
    array: Array = field(default_factory=lambda: np.zeros(1, np.uint8))

    def set(self) -> None:
        """Have every loop stop before its next step."""
        self.array[0] = 1
        self.raised.append(1)

    def end(self) -> None:
        """Have every loop stop before its next evaluation."""
        self.over.append(1)
        self.set()

    def clear(self) -> None:
        """Let loops run."""
        self.raised.clear()
        self.array[0] = 0


class Late(Exception):
    """There was no time for the rest of a step, which therefore has not happened."""


class Terminate:
    """A handler of SIGTERM that means: end the run, and let me go on from there.

    Where nobody handles SIGTERM, a run saves itself and then the program ends, as it would have
    without us. A program that has something to do first installs this.
    """

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """End the program, outside of a run."""
        raise SystemExit(128 + number)


USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


@dataclass(eq=False, repr=False)  # signal.signal makes a text of each handler
class Interrupts:
    """Have SIGINT and SIGTERM raise a flag while a run lasts.

    Parameters
    ----------
    stop
        The flag.

    Attributes
    ----------
    seen
        The number of the signal that came, or 0.
    abandoned
        Whether a second one came, so that nothing is to be saved.
    """

    stop: Stop
    seen: int = 0
    abandoned: bool = False
    _previous: dict[int, Any] = field(default_factory=dict)

    def __enter__(self) -> Interrupts:
        """Take over the signals that nobody else handles, and those of the run around this one."""
        if threading.current_thread() is threading.main_thread():
            try:
                self._take_over()
            except BaseException:  # of a handler that is not ours, in the middle of it
                self._give_back()
                raise
        return self

    def _take_over(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            now = signal.getsignal(number)
            outer = None if now is USUAL[number] else run_of(now)
            if now is USUAL[number] or isinstance(now, Terminate) or outer is not None:
                self._previous[number] = now
                signal.signal(number, self._handle)
            if outer is not None and outer.seen:  # before this run took over
                self._note(outer.seen)

    def hand_on(self, *, cut: bool) -> None:
        """End the program as it would have ended; ``cut``: end the run around this one, too."""
        if self.seen == signal.SIGTERM and signal.getsignal(self.seen) is signal.SIG_DFL:
            signal.raise_signal(self.seen)
        if cut:
            raise KeyboardInterrupt

    def _note(self, number: int) -> None:
        """Take note of a signal, and have the runs around this one do so."""
        self.seen = number
        self.stop.set()
        for handler in self._previous.values():
            if (outer := run_of(handler)) is not None and not outer.seen:
                outer._note(number)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.seen:
            self.abandoned = True
            self._give_back()
            signal.raise_signal(number)  # the run around this one has seen the first, too
            return
        self._note(number)
        if inside_user(frame):
            raise KeyboardInterrupt

    def _give_back(self) -> None:
        try:
            for number, handler in self._previous.items():
                if signal.getsignal(number) == self._handle:  # else the user's function changed it
                    signal.signal(number, handler)
            self._previous.clear()
        except BaseException:  # of one that was given back: the others follow all the same
            self._give_back()
            raise

    def __exit__(self, *raised: Any) -> None:
        """Give the signals back."""
        self._give_back()


def run_of(handler: Any) -> Interrupts | None:
    """Return whose handler this is, if it is a run's."""
    owner = getattr(handler, "__self__", None)
    return owner if isinstance(owner, Interrupts) else None


@contextmanager
def ticking(stop: Stop, every: float | None, deadline: float | None) -> Iterator[None]:
    """Raise a flag at regular times, and at a deadline, from a thread of its own.

    Parameters
    ----------
    stop
        The flag.
    every
        Seconds between two looks at checkpoints and bars; None for none.
    deadline
        The time (of ``time.monotonic``) at which no new step may begin; None for none.
    """
    over, usual = threading.Event(), 3600.0 if every is None else every

    def tick() -> None:
        while True:
            left = usual if deadline is None else deadline - time.monotonic()
            if over.wait(min(usual, left) if left > 0 else usual):
                return
            if deadline is not None and time.monotonic() >= deadline:
                stop.end()
            else:
                stop.set()

    thread = threading.Thread(target=tick, name="scgd-clock", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
