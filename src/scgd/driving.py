"""Driving a run: have its questions answered until something ends it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.calling import calls_user, from_handler, from_user
from scgd.checks import as_number, shown
from scgd.compiling import is_compiled
from scgd.descent import choose_loop
from scgd.history import Status
from scgd.problem import count
from scgd.progress import Progress
from scgd.run.inline import Inline
from scgd.run.run import Run
from scgd.run.saving import Saved
from scgd.run.signals import Interrupts, Stop, Ticker
from scgd.typing import Ints
from scgd.workers import Evaluator

if TYPE_CHECKING:
    from scgd.results import Result

__all__ = ["Events", "Limits", "drive"]

TICK = 0.1
"""Seconds between two looks at checkpoint and bar."""
Callback = Callable[["Result"], Any]


class Limits:
    """What ends a run besides its budget."""

    def __init__(
        self, max_time: float | None, target: float | None, *, maximize: bool = False
    ) -> None:
        seconds = None if max_time is None else as_number(max_time)
        if max_time is not None and (seconds is None or not seconds > 0):
            raise ValueError(f"max_time must be a positive number of seconds, got {max_time!r}")
        aim = None if target is None else as_number(target)
        if target is not None and (aim is None or np.isnan(aim)):
            raise ValueError(f"target must be a number, got {target!r}")
        self.sign = -1.0 if maximize else 1.0
        self.target = None if aim is None else self.sign * aim
        self.deadline = None if seconds is None else time.monotonic() + seconds

    def check(self, run: Run) -> Status:
        """Return why the run must end now, or that it goes on."""
        if self.target is not None and run.strategy.level <= self.target:
            return Status.TARGET
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return Status.TIME
        return Status.RUNNING

    def checked(self, result: Result) -> Result:
        """Return the result, which is no success where it was stopped short of the target."""
        ended = (Status.BUDGET, Status.TIME, Status.FINISHED, Status.CONVERGED)
        if self.target is not None and result.status in ended:
            result.success = result.success and bool(self.sign * result.fun <= self.target)
        return result


@dataclass(frozen=True)
class Events:
    """What happened in an asynchronous run.

    Parameters
    ----------
    limit
        How many evaluations were kept under way.
    order
        The numbers of the evaluations in the order in which their values were accepted; those of a
        run that is to be replayed.
    """

    limit: int
    order: Ints | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", count(self.limit, "limit"))
        if self.order is None:
            return
        order = np.asarray(self.order)
        whole = order.ndim == 1 and (order.dtype.kind in "iu" or not order.size)
        if not whole or np.any(order < 0) or len(np.unique(order)) < len(order):
            raise ValueError(
                f"order must be different whole numbers of evaluations, got {shown(self.order)}"
            )
        object.__setattr__(self, "order", order.astype(np.int64))

    @classmethod
    def check(cls, wanted: int | Events | None, run: Run, *, vectorized: bool) -> Events | None:
        """Check the argument of the same name."""
        if wanted is None:
            return None
        if vectorized:
            raise ValueError("a vectorized fun takes whole questions; drop asynchronous=")
        events = wanted if isinstance(wanted, Events) else cls(count(wanted, "asynchronous"))
        if events.limit < run.strategy.cost:
            raise ValueError(
                f"asynchronous must be at least the {run.strategy.cost} evaluations of a step, "
                f"got {events.limit}"
            )
        return events


def drive(
    run: Run,
    evaluate: Evaluator,
    limits: Limits,
    saved: Saved,
    callback: Callback | None,
    events: Events | None,
    *,
    progress: bool,
) -> None:
    """Have questions answered until the budget, a limit, the callback or a signal ends the run."""
    if run.remark:  # a saved run that is only read back
        return
    stop, by_phase = Stop(), callback is not None or limits.target is not None
    advance = partial(forward, run, Serial(run, evaluate), stop, by_phase)
    if events is not None:
        advance = partial(fly, run, Flights(run, evaluate, events), stop)
    compiled = is_compiled(evaluate.job.fun)
    ticks = progress or saved.file is not None or compiled
    interrupts = Interrupts(stop)
    with (
        Progress(run, limits.deadline, wanted=progress) as bar,
        interrupts,
        Ticker(stop, TICK if ticks else None, limits.deadline),
    ):
        try:
            run.status = ended(run, advance, limits, saved, callback, bar, stop, interrupts)
        except BaseException as error:
            # Somebody else's handler may have raised anywhere, in the middle of something of ours.
            torn = from_handler(error) or not (isinstance(error, Exception) or from_user(error))
            if interrupts.abandoned or torn:
                raise
            saved.save(force=True)
            if not isinstance(error, KeyboardInterrupt):
                raise
            run.status = Status.INTERRUPTED
        else:
            saved.save(force=True)
    interrupts.hand_on(cut=run.status is Status.INTERRUPTED)


def ended(
    run: Run,
    advance: Callable[[], None],
    limits: Limits,
    saved: Saved,
    callback: Callback | None,
    bar: Progress,
    stop: Stop,
    interrupts: Interrupts,
) -> Status:
    """Go on until something ends the run; return what did."""
    run.status, reports = Status.RUNNING, run.n_reports
    while (status := limits.check(run)) is Status.RUNNING:
        if interrupts.seen:
            return Status.INTERRUPTED
        if run.done:
            return Status.RUNNING  # the result tells why
        stop.clear()
        if interrupts.seen:  # it came just before the flag was taken down
            continue
        advance()
        bar.update()
        if run.n_reports != reports:
            reports = run.n_reports
            if callback is not None and not called(callback, run):
                return Status.CALLBACK
        saved.save()
    return status


@calls_user
def called(callback: Callback, run: Run) -> bool:
    """Call the callback; tell whether the run may go on."""
    try:
        callback(run.result())
    except StopIteration:
        return False
    return True


class Serial:
    """Answers in this process, or by workers one question at a time."""

    def __init__(self, run: Run, evaluate: Evaluator) -> None:
        self.run, self.evaluate, job = run, evaluate, evaluate.job
        self.inline = Inline(run.strategy, job.fun, job.args, run.ledger, job.samples)
        self.engine: Any = None
        self.loop: Any = None

    def fitting(self) -> Any:
        """Return what makes many evaluations at a time, if there is something for what comes."""
        run, job = self.run, self.evaluate.job
        if not self.evaluate.inline or not run.by_loops or run.ledger.on_nonfinite == "worst":
            return None
        if not run.strategy.stepping:
            return self.inline if self.inline.ready(run.room) else None
        if run.strategy.engine is not self.engine:
            self.engine = run.strategy.engine
            self.loop = choose_loop(self.engine, job.fun, job.args, run.ledger)
        return self.loop


def forward(run: Run, serial: Serial, stop: Stop, by_phase: bool) -> None:
    """Answer questions until stopped, or until there is something to report."""
    reports = run.n_reports
    while not stop.raised and not run.done:
        loop = None if run.open else serial.fitting()
        if loop is not None:
            run.run_loop(partial(loop.run, stop=stop, by_phase=by_phase))
        else:
            answer(run, serial.evaluate, stop)
        if by_phase and run.n_reports != reports:
            return


def answer(run: Run, evaluate: Evaluator, stop: Stop) -> None:
    """Answer the question that is open, or the next one; stop between two evaluations."""
    opened = next(iter(run.open.values()), None) or run.next_question()
    if opened is None:
        return
    for arrived in evaluate.answers(opened):
        for number, value in arrived:  # all that was paid for, whatever the flag says
            run.accept(number, value)
        if stop.raised:
            return


class Flights:
    """Several questions under way at a time, for evaluations that take uneven time.

    The trajectory is a function of the seed, the number of evaluations under way and the order in
    which values are accepted; that order is recorded, so any run can be replayed.
    """

    def __init__(self, run: Run, evaluate: Evaluator, events: Events) -> None:
        self.run, self.evaluate, self.limit = run, evaluate, events.limit
        self.replay = None if events.order is None else events.order.tolist()
        self.arrived: dict[int, Any] = {}
        run.ordered = True
        for opened in run.open.values():
            evaluate.submit(opened)

    def launch(self) -> None:
        """Ask as long as there is room; a question larger than that flies alone."""
        run = self.run
        while not run.place or len(run.place) + run.strategy.cost <= self.limit:
            opened = run.next_question()
            if opened is None:
                return
            self.evaluate.submit(opened)

    def next(self) -> int | None:
        """Return the number of the value to accept next, if it is there."""
        n = len(self.run.order)
        if self.replay is not None and n < len(self.replay):
            wanted = self.replay[n]
            return wanted if wanted in self.arrived else None
        return next(iter(self.arrived), None)


def fly(run: Run, flights: Flights, stop: Stop) -> None:
    """Accept one value and keep the rest flying."""
    flights.launch()
    while (ready := flights.next()) is None:
        if stop.raised:
            return
        for number, value in flights.evaluate.arrived():
            if number in run.place:
                flights.arrived[number] = value
    run.accept(ready, flights.arrived.pop(ready))
