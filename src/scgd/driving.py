"""Driving a run: have its questions answered until something ends it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.calling import calls_user, from_handler, from_user, within_run
from scgd.checks import as_number
from scgd.compiling import is_compiled
from scgd.descent import choose_loop
from scgd.history import Status
from scgd.options import HERE, Failures, Reporting, Workers
from scgd.problem import as_scalar
from scgd.progress import Progress
from scgd.run.asynchronous import Events, Flights
from scgd.run.interpreter import Interpreter
from scgd.run.ledger import Ledger
from scgd.run.recording import record_all
from scgd.run.run import Run
from scgd.run.saving import Saved, identity
from scgd.run.signals import Interrupts, Stop, ticking
from scgd.strategies.asks import Along, Gradient, point_of
from scgd.typing import Floats
from scgd.workers import Evaluator, evaluator
from scgd.workers.local import private
from scgd.workers.tasks import MOST_COPIED, Job

if TYPE_CHECKING:
    from scgd.results import Result

TICK = 0.1
"""Seconds between two looks at checkpoint and bar."""
LONGEST = 1000
"""Points of a batch that are answered without a question, at most: beyond, it costs nothing."""
SHORT = (Status.BUDGET, Status.TIME, Status.FINISHED, Status.CONVERGED)
"""Ends that are no success where a target was not reached."""
NAN = float("nan")
float64 = np.float64


class Driver:
    """Has the questions of a run answered until something ends it.

    What a run does not ask for is not made: workers, a bar, a clock, a checkpoint.

    Parameters
    ----------
    run
        The run.
    job
        The user's functions.
    workers, failures, reporting, max_time, target, checkpoint
        As of :func:`scgd.minimize`.
    """

    def __init__(
        self,
        run: Run,
        job: Job,
        *,
        workers: Workers,
        failures: Failures,
        reporting: Reporting,
        max_time: float | None,
        target: float | None,
        checkpoint: Any,
    ) -> None:
        self.run, self.job, self.checkpoint = run, job, checkpoint
        self.workers, self.failures, self.reporting = workers, failures, reporting
        self.target = self.deadline = None
        if target is not None:
            self.target = run.ledger.sign * checked_target(target)
        if max_time is not None:
            self.deadline = run.began + checked_time(max_time)
        self.events: Events | None = None
        if workers.asynchronous is not None:
            events, vectorized = workers.asynchronous, workers.vectorized
            self.events = Events.check(events, run, vectorized=vectorized)
        self.saved: Saved | None = None
        self.bar: Progress | None = None
        self.by_phase = reporting.callback is not None or target is not None
        self.stop, self.open = Stop(), ExitStack()
        self.interrupts = Interrupts(self.stop)
        self.ticking = False
        self.inline: Inline | None = None
        self.engine: Any = None
        self.loop: Any = None

    @cached_property
    def evaluate(self) -> Evaluator:
        """Where evaluations are made."""
        made = evaluator(self.workers, self.job, skip=self.failures.skip_timeouts)
        self.open.callback(made.close)
        return made

    def result(self) -> Result:
        """Take up what was saved, drive the run, and return its result."""
        run, resumed = self.run, False
        with self.open as stack:
            log = self.reporting.log
            if log is not None or self.reporting.record or run.problem.space is not None:
                record_all(run, log)
            if self.checkpoint is not None:
                limit = 0 if self.events is None else self.events.limit
                self.saved = Saved(self.checkpoint, run, identity(run, self.job.args, limit))
                stack.callback(self.saved.lock.release)
                resumed = self.saved.resume()
            if log is not None:
                run.record.begin_log(resumed=resumed)
                stack.enter_context(closing(run.record))
            # Workers are made at once, so that what cannot work is said before any evaluation.
            local = self.workers is HERE or (self.evaluate.inline and self.events is None)
            if local and run.by_loops and run.ledger.on_nonfinite != "worst":
                self.inline = Inline(run.strategy, self.job, run.ledger)
            if not run.remark:  # else a saved run is only read back
                self._drive()
        result = run.result()
        result.nfev_repeated = self.evaluate.n_repeated if "evaluate" in vars(self) else 0
        if self.events is not None:
            result.events = Events(self.events.limit, np.array(run.order, np.int64))
        if self.target is not None and result.status in SHORT:
            if not run.ledger.sign * result.fun <= self.target:
                result.success = False
                result.message = f"Short of the target. {result.message}"
        return result

    def _drive(self) -> None:
        """Go on until the budget, a limit, the callback or a signal ends the run."""
        run, saved = self.run, self.saved
        with ExitStack() as self.watching:
            if self.reporting.progress:
                self.bar = self.watching.enter_context(Progress(run, self.deadline))
            self.watching.enter_context(self.interrupts)
            self.watching.callback(run.strategy.close)  # while no signal can interrupt it
            if self.deadline is not None or self.bar is not None or saved is not None:
                self._tick(None if self.bar is None and saved is None else TICK)
            try:
                run.status = self._ended()
            except BaseException as error:
                # Somebody else's handler may have raised anywhere, in the middle of ours.
                torn = from_handler(error) or not (isinstance(error, Exception) or from_user(error))
                if self.interrupts.abandoned or torn:
                    raise
                if saved is not None:
                    saved.save(force=True)
                if not isinstance(error, KeyboardInterrupt):
                    raise
                run.status = Status.INTERRUPTED
            else:
                if saved is not None:
                    saved.save(force=True)
        if self.interrupts.seen or run.status is Status.INTERRUPTED:
            cut = run.status is Status.INTERRUPTED and within_run(sys._getframe())
            self.interrupts.hand_on(cut=cut)

    def _tick(self, every: float | None) -> None:
        """Have a clock raise the flag every so many seconds, and at the deadline."""
        self.watching.enter_context(ticking(self.stop, every, self.deadline))
        self.ticking = every is not None

    def _ended(self) -> Status:
        """Go on until something ends the run; return what did."""
        run, stop, target, reports = self.run, self.stop, self.target, -1
        flights = None if self.events is None else Flights(run, self.evaluate, self.events)
        run.status = Status.RUNNING
        while True:
            if run.history.n_reports != reports:
                if reports >= 0 and self.reporting.callback is not None:
                    if not called(self.reporting.callback, run):
                        return Status.CALLBACK
                reports = run.history.n_reports
                if target is not None and run.strategy.level <= target:
                    return Status.TARGET
            if self.deadline is not None and time.monotonic() >= self.deadline:
                return Status.TIME
            if self.interrupts.seen:
                return Status.INTERRUPTED
            if run.done:
                return Status.RUNNING  # the result tells why
            if stop.raised:
                stop.clear()
                if self.interrupts.seen:  # it came just before the flag was taken down
                    continue
            self._go_on() if flights is None else flights.go(stop)
            if self.bar is not None:
                self.bar.update()
            reported = self.by_phase and run.history.n_reports != reports
            if self.saved is not None and (stop.raised or reported or flights is not None):
                self.saved.save()  # not after every question, which may take less than a write

    def _go_on(self) -> None:
        """Have a loop make many evaluations where there is one, or answer one question."""
        run, strategy, inline, loop = self.run, self.run.strategy, self.inline, None
        if inline is not None and not run.open:
            if not strategy.stepping:
                loop = inline if inline.ready(run.room) else None
            else:
                loop = self._loop(strategy.engine)
        if loop is None:
            self._answer()
        else:
            run.run_loop(partial(loop.run, stop=self.stop, by_phase=self.by_phase))

    def _loop(self, engine: Any) -> Any:
        """Return the loop that takes the steps of an engine; None where only questions will do."""
        if engine is not self.engine:
            self.engine, fun = engine, self.evaluate.job.fun
            self.loop = choose_loop(engine, fun, self.job.args, self.run.ledger)
            if not self.ticking and is_compiled(fun):
                self._tick(TICK)  # no signal reaches us within compiled code
        return self.loop

    def _answer(self) -> None:
        """Answer the question that is open, or the next one; stop between two evaluations."""
        run = self.run
        opened = next(iter(run.open.values()), None) or run.next_question()
        if opened is None:
            return
        for arrived in self.evaluate.answers(opened):
            for number, value in arrived:  # all that was paid for, whatever the flag says
                run.accept(number, value)
            if self.stop.raised:
                return


def checked_time(max_time: Any) -> float:
    """Return seconds."""
    seconds = as_number(max_time)
    if seconds is None or not seconds > 0:
        raise ValueError(f"max_time must be a positive number of seconds, got {max_time!r}")
    return seconds


def checked_target(target: Any) -> float:
    """Return a number that is one; infinities are."""
    aim = as_number(target)
    if aim is None or np.isnan(aim):
        raise ValueError(f"target must be a number, got {target!r}")
    return aim


@calls_user
def called(callback: Callable[[Result], Any], run: Run) -> bool:
    """Call the callback; tell whether the run may go on."""
    try:
        callback(run.result())
    except StopIteration:
        return False
    return True


class Inline:
    """Send a strategy the values of its points, one after the other, without a question for each.

    A cut between two points of a batch loses nothing: the interpreter keeps the values it has.

    Parameters
    ----------
    strategy
        The interpreter.
    job
        The user's function and its further arguments.
    ledger
        Where failed values are counted, and the best one is kept.
    """

    def __init__(self, strategy: Interpreter, job: Job, ledger: Ledger) -> None:
        self.strategy, self.ledger = strategy, ledger
        self.args, self.samples = job.args, job.samples
        self.buffer: Floats = np.empty(strategy.problem.x0.size)
        self.view = self.buffer.view()
        self.view.flags.writeable = False
        self.copied = self.buffer.size <= MOST_COPIED  # all of the buffer, before each call
        self.fun = job.fun if self.copied else private(job.fun)
        self.base: Floats = np.empty(0)

    def ready(self, room: float) -> bool:
        """Whether what the strategy asks next is for this loop, and can be paid."""
        strategy = self.strategy
        n = strategy.size - strategy.n_asked
        waiting = strategy.n_asked != strategy.n_answered
        return 0 < n <= min(room, LONGEST) and not (
            waiting or strategy.stepping or isinstance(strategy.asked, Gradient)
        )

    def run(self, room: float, stop: Stop, *, by_phase: bool) -> None:
        """Answer for ``room`` evaluations, until stopped or another solver asks.

        ``by_phase``: until a batch is complete.
        """
        strategy, ledger = self.strategy, self.ledger
        solver, sampled = strategy.solver, strategy.problem.sampled
        past = ledger.n_accepted - strategy.n_evals - strategy.n_answered
        while not stop.raised and self.ready(room):
            asked, size, first = strategy.asked, strategy.size, strategy.n_asked
            rows = None if isinstance(asked, Along) else asked.reshape(-1, asked.shape[-1])
            values, before = strategy.values, past + strategy.n_evals
            for j in range(first, size):
                if stop.raised:
                    break
                extra = self.args
                if sampled:
                    number = strategy.n_samples + j // strategy.group
                    extra = (*self.samples.arguments(number, 0), *extra)
                value = self._along(asked, j, extra) if rows is None else self._at(rows[j], extra)
                if value.__class__ is not float:
                    value = float(value) if value.__class__ is float64 else as_scalar(value)
                if value - value != 0.0:
                    ledger.failed(value, before + j, partial(point_of, asked, j), may_fail=True)
                    value = NAN
                elif ledger.best is not None and value < ledger.best.value:
                    ledger.best.put(value, point_of(asked, j))
                if before + j == 0 and value == value:
                    if np.array_equal(point_of(asked, j), strategy.problem.x0):
                        ledger.first = value
                if ledger.noted is not None:
                    ledger.noted.append(value)
                values[j] = value
                strategy.n_asked = strategy.n_answered = j + 1
                room -= 1
            if strategy.n_answered == size:
                strategy.answer()
            if strategy.solver != solver or (by_phase and strategy.asked is not asked):
                break  # the table of evaluations has one solver for all that a loop made
        ledger.mark()

    @calls_user
    def _along(self, asked: Along, j: int, extra: tuple[Any, ...]) -> Any:
        """Evaluate a point that differs from the others in one coordinate."""
        x, k = self.buffer, asked.coords[j]
        if self.copied or asked.x is not self.base:
            self.base, x[:] = asked.x, asked.x
        here = x[k]
        x[k] = asked.entries[j]
        try:
            return self.fun(self.view, *extra)
        finally:
            x[k] = here

    @calls_user
    def _at(self, x: Floats, extra: tuple[Any, ...]) -> Any:
        """Evaluate a point of its own."""
        self.base, self.buffer[:] = x, x
        return self.fun(self.view, *extra)
