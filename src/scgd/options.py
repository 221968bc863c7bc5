"""Arguments that belong together, as small frozen objects; plain values stand for common cases."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scgd.checks import count, flag, function, settle, shown
from scgd.outcomes import Caught, check_catch

if TYPE_CHECKING:
    from scgd.results import Result
    from scgd.run.asynchronous import Events

NONFINITE = ("raise", "skip", "worst")


@dataclass(frozen=True)
class Workers:
    """Where evaluations are made.

    Parameters
    ----------
    engine
        1: this process; a number of local processes (-1: all cores); a
        ``concurrent.futures.Executor``; a ``distributed.Client``; or a map-like callable.
    timeout
        Seconds that an evaluation may take. Then it is given to another worker (and a process that
        hangs is replaced); the second time it ends the run with TimeoutError, or counts as failed
        where ``failures`` say so.
    asynchronous
        Keep so many evaluations under way instead of waiting for the slowest of every step.
        ``result.events`` is the order of arrival; handed in again it gives the same trajectory.
    vectorized
        ``fun`` takes a matrix with one point per row and returns as many values.

    Examples
    --------
    >>> Workers(4, timeout=60.0)
    Workers(engine=4, timeout=60.0, asynchronous=None, vectorized=False)
    """

    engine: Any = 1
    timeout: float | None = None
    asynchronous: int | Events | None = None
    vectorized: bool = False

    def __post_init__(self) -> None:
        flag(self.vectorized, "vectorized")

    @classmethod
    def of(cls, given: Any) -> Workers:
        """Return what the argument of the same name stands for."""
        if type(given) is int and given == 1:
            return HERE
        return given if isinstance(given, Workers) else cls(given)


HERE = Workers()
"""One evaluation after the other, in this process."""


@dataclass(frozen=True)
class Failures:
    """What becomes of evaluations without a finite value.

    Parameters
    ----------
    nonfinite
        NaN and infinite values: ``"raise"`` FloatingPointError at the first evaluation, for minus
        infinity, and wherever SCGD takes steps (to other searches, ``"auto"`` among them, such a
        value says that they looked too far); ``"skip"`` them all, so that only the value is
        missing; or have them count as the ``"worst"`` finite value seen so far. All are counted in
        ``result.n_failed``.
    catch
        Exceptions of ``fun`` and ``jac`` that count as a failed value. With ``TimeoutError`` among
        them an evaluation that exceeds the timeout twice is one.

    Examples
    --------
    >>> Failures.of(ZeroDivisionError)
    Failures(nonfinite='raise', catch=(<class 'ZeroDivisionError'>,))
    """

    nonfinite: str = "raise"
    catch: Caught = ()

    def __post_init__(self) -> None:
        if not isinstance(self.nonfinite, str) or self.nonfinite not in NONFINITE:
            raise ValueError(
                f"failures (nonfinite) must be one of {NONFINITE}, got {shown(self.nonfinite)}"
            )
        if not isinstance(self.catch, tuple) or self.catch:
            settle(self, catch=check_catch(self.catch))

    @classmethod
    def of(cls, given: Any) -> Failures:
        """Return what the argument of the same name stands for: a word, or exceptions to catch."""
        if isinstance(given, Failures):
            return given
        if isinstance(given, str):
            return RAISE if given == "raise" else cls(given)
        try:
            return cls(catch=given)
        except TypeError as error:
            raise TypeError(
                f"failures must be one of {NONFINITE}, exceptions or Failures(...): {error}"
            ) from None

    @property
    def skip_timeouts(self) -> bool:
        """Whether an evaluation that takes too long counts as failed."""
        return self.nonfinite != "raise" or any(issubclass(TimeoutError, c) for c in self.catch)


RAISE = Failures()


@dataclass(frozen=True)
class Reporting:
    """What a run tells while it goes on.

    Parameters
    ----------
    progress
        Show value and error, evaluations per second, time left and the solver at work: a line that
        is rewritten in a terminal or a notebook, and one every ten seconds in a file.
    callback
        Called once per phase with the result so far; raising StopIteration stops the run.
    record
        Keep all evaluations with their points in ``result.evaluations``. Every step is then taken
        by itself: the trajectory is the same, at 50 to 100 us more per evaluation.
    log
        A CSV file that gets a row per evaluation, with the point: a column per coordinate, beyond
        100 one column ``changes`` with what differs from the row before.

    Examples
    --------
    >>> Reporting.of("run.csv").log
    'run.csv'
    """

    progress: bool = False
    callback: Callable[[Result], Any] | None = None
    record: bool = False
    log: Any = None

    def __post_init__(self) -> None:
        for name in ("progress", "record"):
            flag(getattr(self, name), name)
        if self.callback is not None:
            function(self.callback, "callback")

    @classmethod
    def of(cls, given: Any) -> Reporting:
        """Return what the argument of the same name stands for.

        None: nothing; True: a bar; a function: a callback; a path: a log.
        """
        if given is None or isinstance(given, Reporting):
            return given or SILENT
        if isinstance(given, bool):
            return cls(progress=given)
        if isinstance(given, str | os.PathLike):
            return cls(log=given)
        if callable(given):
            return cls(callback=given)
        raise TypeError(
            "reporting must be True (a bar), a callback, the path of a log or a Reporting, got "
            f"{shown(given)}"
        )


SILENT = Reporting()


@dataclass(frozen=True)
class Rows:
    """Mini-batches of the rows of a data set, as samples of a run.

    Parameters
    ----------
    n
        Rows of the data set.
    batch_size
        Row numbers per sample.

    Examples
    --------
    >>> Rows(60_000, 64)
    Rows(n=60000, batch_size=64)
    """

    n: int
    batch_size: int = 1

    def __post_init__(self) -> None:
        for name in ("n", "batch_size"):
            settle(self, **{name: count(getattr(self, name), name)})
