"""Engines: ways to have tasks done elsewhere.

An engine is sent the tasks of a step and hands back arrivals in any order. It may lose a task or do
it twice and says so; what is then sent again, accepted or dropped is decided by its owner, the
ledger in :mod:`scgd.workers.remote`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from operator import call
from typing import Any, NamedTuple

from scgd.calling import calls_user
from scgd.workers.tasks import Common, Job, Task, install, perform, perform_installed

START = 120.0
"""Seconds that local processes may take to start."""


class LostTask(Exception):
    """A task that died with its worker and has to be sent again."""


STARTED = "started"


class Arrival(NamedTuple):
    """The outcome of a task: a value, or the error that it raised."""

    id: int
    value: Any
    error: BaseException | None = None


class Engine:
    """What all engines offer.

    Parameters
    ----------
    job
        What all tasks of the run have in common.
    """

    interruptible = True
    """Whether a task that hangs can be left behind."""
    keeps = True
    """Whether workers keep copies of the point, and may be sent a task again."""
    announces = False
    """Whether a task tells when it starts, as an arrival with the value ``STARTED``."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def get_ready(self) -> None:
        """Have all workers started, so that their start does not count as a task's time."""

    @property
    def n_workers(self) -> int | None:
        """How many tasks run at a time, where that is known."""
        return None

    def send(self, common: Common, tasks: list[Task]) -> None:
        """Start the tasks."""
        raise NotImplementedError

    def wait(self, seconds: float | None) -> list[Arrival]:
        """Return what has arrived, after so many seconds an empty list."""
        raise NotImplementedError

    def leave(self, ids: list[int]) -> None:
        """Give up tasks that take too long, and with them the workers that hang in them."""
        raise NotImplementedError

    def close(self) -> None:
        """Release what was started."""


def one_thread() -> dict[str, str]:
    """Return what keeps libraries to one thread per process, where nobody said otherwise.

    Processes share the cores already; torch follows OMP_NUM_THREADS.
    """
    names = ("OMP_NUM", "MKL_NUM", "OPENBLAS_NUM", "NUMBA_NUM", "VECLIB_MAXIMUM", "NUMEXPR_NUM")
    return {key: "1" for name in names if (key := f"{name}_THREADS") not in os.environ}


def answer(_: int) -> int:
    """Return the number of this process, slowly enough for the others to get a question too."""
    time.sleep(0.01)
    return os.getpid()


class MapEngine(Engine):
    """Have tasks done by a map-like callable, all at once."""

    interruptible = keeps = False

    def __init__(
        self,
        job: Job,
        map_like: Callable[[Callable[[Any], Any], list[Any]], Iterable[Any]],
    ) -> None:
        super().__init__(job)
        self.map_like = map_like
        self.tasks: list[tuple[int, Callable[[], Any]]] = []

    def send(self, common: Common, tasks: list[Task]) -> None:
        """Put the tasks on the list."""
        self.tasks += [(task.id, partial(perform, self.job, common, task)) for task in tasks]

    @calls_user
    def wait(self, seconds: float | None) -> list[Arrival]:
        """Have all tasks on the list done."""
        tasks, self.tasks = self.tasks, []
        # A list, because some map-like callables refuse iterators.
        found = self.map_like(call, [task for _, task in tasks])
        if not isinstance(found, Iterable):
            raise TypeError(f"workers must return the results, got {type(found).__name__}")
        values = list(found)
        if len(values) != len(tasks):
            raise RuntimeError(f"workers returned {len(values)} results for {len(tasks)} tasks")
        return [Arrival(number, value) for (number, _), value in zip(tasks, values, strict=True)]


class ExecutorEngine(Engine):
    """Have tasks done by a ``concurrent.futures.Executor`` that somebody else owns."""

    def __init__(self, job: Job, executor: Executor) -> None:
        super().__init__(job)
        self.executor: Any = executor
        self.futures: dict[Future[Any], int] = {}
        self.n_left = 0

    @property
    def n_workers(self) -> int | None:
        """How many tasks run at a time, where that is known."""
        number: int | None = getattr(self.executor, "_max_workers", None)
        return number

    def send(self, common: Common, tasks: list[Task]) -> None:
        """Submit the tasks."""
        for task in tasks:
            self.futures[self.executor.submit(perform, self.job, common, task)] = task.id

    @calls_user
    def wait(self, seconds: float | None) -> list[Arrival]:
        """Return what has arrived."""
        done, _ = wait(self.futures, seconds, FIRST_COMPLETED)
        return [self._arrival(future) for future in done]

    def _arrival(self, future: Future[Any]) -> Arrival:
        number = self.futures.pop(future)
        if future.cancelled():
            return Arrival(number, None, LostTask())
        error = future.exception()
        return Arrival(number, None if error else future.result(), error)

    def leave(self, ids: list[int]) -> None:
        """Forget the tasks; an executor cannot stop the workers that hang in them."""
        for future in [f for f, number in self.futures.items() if number in ids]:
            self.n_left += not future.cancel()
            del self.futures[future]
        if self.n_workers is not None and self.n_left >= self.n_workers:
            raise TimeoutError(
                f"all {self.n_workers} workers of the executor hang in evaluations that took "
                "longer than timeout; workers=n or a distributed.Client can restart theirs"
            )

    def close(self) -> None:
        """Cancel what has not started."""
        for future in self.futures:
            future.cancel()


class ProcessEngine(ExecutorEngine):
    """Have tasks done by local processes; dead and hanging ones are replaced."""

    def __init__(self, job: Job, n_workers: int) -> None:
        super().__init__(job, None)  # type: ignore[arg-type]
        self.size = n_workers

    @property
    def n_workers(self) -> int:
        """How many tasks run at a time."""
        return self.size

    def send(self, common: Common, tasks: list[Task]) -> None:
        """Submit the tasks, to fresh processes if the last ones are gone."""
        for task in tasks:
            try:
                future = self._start().submit(perform_installed, common, task)
            except BrokenProcessPool:
                self._stop()
                future = self._start().submit(perform_installed, common, task)
            self.futures[future] = task.id

    def get_ready(self) -> None:
        """Wait until every process has answered once."""
        if self.executor is not None:
            return
        executor, deadline = self._start(), time.monotonic() + START
        answered: set[int] = set()
        while len(answered) < self.size and time.monotonic() < deadline:
            answered |= set(executor.map(answer, range(self.size)))

    def _start(self) -> Any:
        from joblib.externals.loky import ProcessPoolExecutor

        if self.executor is None:
            self.executor = ProcessPoolExecutor(
                self.size, initializer=install, initargs=(self.job, os.getpid()), env=one_thread()
            )
        return self.executor

    def _arrival(self, future: Future[Any]) -> Arrival:
        from joblib.externals.loky.process_executor import ShutdownExecutorError

        arrival = super()._arrival(future)
        if isinstance(arrival.error, BrokenProcessPool | ShutdownExecutorError):
            return Arrival(arrival.id, None, LostTask())
        return arrival

    def leave(self, ids: list[int]) -> None:
        """Kill the processes; what else they were doing is lost with them."""
        self._stop()
        for future in [f for f, number in self.futures.items() if number in ids]:
            del self.futures[future]

    def _stop(self) -> None:
        if self.executor is not None:
            self.executor.shutdown(wait=True, kill_workers=True)
            self.executor = None

    def close(self) -> None:
        """Stop the processes; what has not started is cancelled first."""
        for future in self.futures:
            future.cancel()
        self.futures.clear()
        self._stop()
