"""Have tasks done on a Dask cluster.

Values come back as events on the connections that are open anyway, not by gathering results: half
the latency, nothing is kept on workers that could be lost and computed again, and nobody waits for
a connection to a worker that just died (30 s by default). Only long arrays are gathered.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

import numpy as np

from scgd.calling import calls_user
from scgd.problem import as_scalar
from scgd.workers.engines import STARTED, Arrival, Engine, LostTask
from scgd.workers.replicas import STALE
from scgd.workers.tasks import Common, Job, Task, perform

SCATTER = 2**16
"""Bytes of a step above which it is scattered; below, it travels faster with the tasks."""
LONGEST = 64
"""Entries of an array that an event may carry; the scheduler remembers a thousand events."""
POLL, GATHER, RESTART, RECONNECT = 0.1, 10.0, 20.0, 300.0
"""Seconds between looks at silent tasks, and for a result, a worker, a scheduler to come back."""
SENT = "sent"
ALIVE = ("running", "connecting")
"""What a client is while its scheduler may come back."""

slots: set[int] = set()
"""Numbers of the topics in use; they are used again, because schedulers never forget a topic."""


def is_client(workers: Any) -> bool:
    """Tell whether this is a ``distributed.Client``, without importing distributed."""
    return any(
        c.__name__ == "Client" and c.__module__ == "distributed.client"
        for c in type(workers).__mro__
    )


def perform_and_tell(
    task: Task, entry: Any, *, job: Job, common: Common, topic: str, run: str, announce: bool
) -> Any:
    """Make one evaluation on a worker and send its value as an event."""
    from distributed import get_worker

    if announce:
        get_worker().log_event(topic, (run, task.id, STARTED))
    value = perform(job, common, task._replace(entry=entry))
    if isinstance(value, str) and value == STALE:
        value = (STALE, get_worker().address)
    elif common.partials:
        array = np.asarray(value, np.float64)
        if array.size > LONGEST:
            return array
        value = array.tolist()
    else:  # a number, or one with its constraints
        value = value.tolist() if isinstance(value, np.ndarray) and value.ndim else as_scalar(value)
    get_worker().log_event(topic, (run, task.id, value))
    return SENT


class ClusterEngine(Engine):
    """Have tasks done by the workers of a ``distributed.Client``.

    Parameters
    ----------
    job
        What all tasks of the run have in common; scattered once.
    client
        The client; its owner closes it.
    """

    announces = True

    def __init__(self, job: Job, client: Any) -> None:
        super().__init__(job)
        self.client = client
        self.slot = min(set(range(len(slots) + 1)) - slots)
        slots.add(self.slot)
        self.topic = f"scgd-{client.id}-{self.slot}"
        self.run = uuid4().hex[:12]
        self.heard: SimpleQueue[tuple[str, int, Any]] = SimpleQueue()
        self.futures: dict[int, Any] = {}
        self.homes: dict[int, str] = {}
        self.n_sent = 0
        self._connect()

    def _connect(self) -> None:
        self._patiently(
            lambda: self.client.subscribe_topic(self.topic, lambda event: self.heard.put(event[1]))
        )
        self.job_future = self._share(self.job)

    def _share(self, data: Any, home: str | None = None) -> Any:
        """Copy data to all workers, or to one of them while that is there."""
        if home is not None and home in self._patiently(self.client.nthreads):
            with suppress(OSError, TimeoutError, KeyError, ValueError):  # it goes just now
                return self.client.scatter(data, workers=[home], hash=False)
        return self._patiently(lambda: self.client.scatter(data, broadcast=True, hash=False))

    def _patiently(self, action: Callable[[], Any]) -> Any:
        """Do something that needs the cluster, however long it takes for it to stand still."""
        deadline = time.monotonic() + RECONNECT
        while True:
            try:
                return action()
            except Exception as error:  # a worker came or went, or there is none
                if "ModuleNotFoundError" in str(error):  # Dask passes on its name only
                    raise ImportError(
                        f"the Dask workers cannot import what fun needs: {error}; send them the "
                        "file with client.upload_file(...), or start them where it can be imported"
                    ) from error
                if time.monotonic() > deadline or self.client.status not in ALIVE:
                    raise ConnectionError(
                        f"the Dask workers could not be reached: {error}"
                    ) from error
                time.sleep(POLL)

    @property
    def n_workers(self) -> int:
        """How many tasks run at a time."""
        return sum(self._patiently(self.client.nthreads).values())

    def send(self, common: Common, tasks: list[Task]) -> None:
        """Submit the tasks; those that a worker could not do without the point go there again."""
        groups: dict[str | None, list[Task]] = {}
        for task in tasks:
            groups.setdefault(self.homes.pop(task.id, None), []).append(task)
        for home, some in groups.items():
            self._submit(common, some, home)

    def _submit(self, common: Common, tasks: list[Task], home: str | None) -> None:
        """Submit tasks; a large step is scattered once for all of them."""
        shared = self._share(common, home) if common.nbytes > SCATTER else common
        entries = [task.entry for task in tasks]
        if sum(np.size(entry) for entry in entries) * 8 > SCATTER:
            entries = self._patiently(lambda: self.client.scatter(entries, hash=False))
        first = self.n_sent
        self.n_sent += len(tasks)
        futures = self._patiently(
            lambda: self.client.map(
                perform_and_tell,
                [task._replace(entry=None) for task in tasks],
                entries,
                key=[f"scgd-{self.run}-{number}" for number in range(first, self.n_sent)],
                pure=False,
                job=self.job_future,
                common=shared,
                topic=self.topic,
                run=self.run,
                announce=self.announces,
                workers=None if home is None else [home],
                allow_other_workers=home is not None,
            )
        )
        for task, future in zip(tasks, futures, strict=True):
            self.futures[task.id] = future
            if common.partials:
                future.add_done_callback(lambda _: self.heard.put(("", -1, None)))

    def wait(self, seconds: float | None) -> list[Arrival]:
        """Return what has arrived."""
        deadline = float("inf") if seconds is None else time.monotonic() + seconds
        while True:
            events = self._hear(min(POLL, deadline - time.monotonic()))
            arrivals = self._accept(events) or self._look()
            if arrivals or time.monotonic() >= deadline:
                return arrivals

    @calls_user
    def _hear(self, seconds: float) -> list[tuple[str, int, Any]]:
        """Return the events that came."""
        events = []
        try:
            events.append(self.heard.get(timeout=max(seconds, 1e-3)))
            while True:
                events.append(self.heard.get_nowait())
        except Empty:
            return events

    def _accept(self, events: list[tuple[str, int, Any]]) -> list[Arrival]:
        mine = []
        for run, number, value in events:
            if run == self.run:
                if isinstance(value, tuple) and value[0] == STALE:
                    value, self.homes[number] = value
                mine.append(Arrival(number, value))
        for arrival in mine:
            if arrival.value != STARTED:
                self.futures.pop(arrival.id, None)
        return mine

    def _look(self) -> list[Arrival]:
        """Return what became of tasks that sent no event."""
        ended = [
            number
            for number, future in self.futures.items()
            if future.status in ("finished", "error", "cancelled")
        ]
        # An event overtakes the news that its task has ended, so it is here by now.
        arrivals = self._accept(self._hear(0.0)) if ended else []
        silent = [number for number in ended if number in self.futures]
        if any(self.futures[number].status == "cancelled" for number in silent):
            self._reconnect()
        return arrivals + [self._outcome(number, self.futures.pop(number)) for number in silent]

    def _outcome(self, number: int, future: Any) -> Arrival:
        lost = Arrival(number, None, LostTask())
        if future.status == "finished":
            try:
                value = future.result(timeout=GATHER)
            except Exception:  # the worker died with the result; nothing else can go wrong here
                return lost
            return lost if isinstance(value, str) and value == SENT else Arrival(number, value)
        return Arrival(number, None, future.exception()) if future.status == "error" else lost

    def _reconnect(self) -> None:
        """Wait for the scheduler and for a worker, and share the job again."""
        deadline = time.monotonic() + RECONNECT
        while self.client.status in ALIVE and time.monotonic() < deadline:
            if self.client.status == "running":
                try:
                    if self.client.nthreads():
                        return self._connect()
                except OSError:  # it went away again
                    pass
            time.sleep(POLL)
        raise ConnectionError(
            f"the Dask client lost its scheduler or all workers (its status is "
            f"{self.client.status!r}) and they did not come back within {RECONNECT:g} s; if no "
            "evaluation kills its worker, start the same call with a new client and the same "
            "checkpoint to go on"
        )

    def leave(self, ids: list[int]) -> None:
        """Forget the tasks and restart the workers that hang in them, where a nanny can."""
        futures = [self.futures.pop(number) for number in ids if number in self.futures]
        keys = {future.key for future in futures}
        busy = [address for address, doing in self.client.processing().items() if keys & set(doing)]
        try:
            if busy:
                self.client.restart_workers(busy, timeout=RESTART, raise_for_error=False)
        except Exception as error:  # without a nanny; the task is done elsewhere
            warnings.warn(
                f"workers {busy} hang and could not be restarted ({error}); going on without them",
                RuntimeWarning,
                stacklevel=2,
            )

    def close(self) -> None:
        """Cancel what is under way; the client stays open."""
        slots.discard(self.slot)
        if self.client.status == "running":
            self.client.cancel(list(self.futures.values()))
            self.client.unsubscribe_topic(self.topic)
        self.futures.clear()
        self.job_future = None
