"""The ledger: every evaluation is accepted once, whatever happens to the workers."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from scgd.calling import calls_user
from scgd.outcomes import CAUGHT
from scgd.questions import Open, Question
from scgd.typing import Floats
from scgd.workers.engines import STARTED, Arrival, Engine, LostTask
from scgd.workers.local import Evaluator
from scgd.workers.replicas import LARGE, STALE, Driven, Moves
from scgd.workers.tasks import Common, Task, tasks_of

LOSSES, DELAYS = 20, 2
"""How often an evaluation may be lost with its worker, and take too long, before it is given up."""
START = 60.0
"""Seconds after which a task that has not started counts as late even so."""


@dataclass
class Entry:
    """An evaluation that is under way."""

    question: Question
    common: Common
    task: Task
    sent: float = 0.0
    losses: int = 0
    delays: int = 0


class RemoteEvaluator(Evaluator):
    """Evaluate questions through an engine.

    Evaluations are known by their number in the run. A value whose number is not open (it came
    before, from a worker that was thought dead or slow) is dropped and counted in ``n_repeated``.

    Parameters
    ----------
    engine
        Who does the work.
    timeout
        Seconds that an evaluation may take before it is given to another worker; the second time it
        ends the run, or with ``skip`` counts as failed. No more evaluations than workers are
        then sent at a time, so that none waits in a queue.
    """

    inline = False

    def __init__(self, engine: Engine, timeout: float | None = None, *, skip: bool = False) -> None:
        super().__init__(engine.job)
        self.engine = engine
        self.engine.announces = timeout is not None and engine.announces
        self.timeout = timeout
        self.skip = skip
        self.n_repeated = 0
        self.open: dict[int, Entry] = {}
        self.waiting: deque[int] = deque()
        self.given_up: list[int] = []
        self.warned = False
        self.driven = Driven()
        self.resent: tuple[Common, Common] | None = None

    def close(self) -> None:
        """Release what was started."""
        self.engine.close()

    def answers(self, opened: Open) -> Iterator[list[tuple[int, Any]]]:
        """Have the evaluations made that are missing; yield numbers and values as they come."""
        alone = opened.first == 0 and len(opened.question) == 1  # f(x0), before any step
        if not self.warned and not alone:
            self._warn_idle(len(opened.question))
        known = [number for number in opened.missing if opened.first + number in self.open]
        if not known:
            self.submit(opened)
        n_left = len(opened.missing)
        while n_left:
            arrived = self.arrived()
            n_left -= len(arrived)
            yield arrived

    def submit(self, opened: Open) -> None:
        """Send the evaluations on their way."""
        common, tasks = tasks_of(opened, self._base(opened.question))
        self.open.update({task.id: Entry(opened.question, common, task) for task in tasks})
        self.waiting.extend(task.id for task in tasks)

    def _base(self, question: Question) -> Floats | Moves:
        """Return the base of a question: a copy, or what has changed of it lately."""
        if question.base is not None:
            return question.base
        x = question.point.x
        if x.nbytes <= LARGE or not self.engine.keeps:
            return x.copy()
        return self.driven.moves(question.point)

    def arrived(self) -> list[tuple[int, Any]]:
        """Wait for values that were not seen before; return them with their numbers."""
        accepted: list[tuple[int, Any]] = []
        while not accepted:
            self._send()
            arrivals = self._wait()
            accepted = [(a.id, a.value) for a in arrivals if self._accept(a)]
            self._leave_overdue()
            accepted += [(number, CAUGHT) for number in self.given_up]
            self.given_up.clear()
        return accepted

    @calls_user
    def _wait(self) -> list[Arrival]:
        """Wait for the engine; nothing is half done meanwhile."""
        return self.engine.wait(self._patience())

    def _send(self) -> None:
        """Hand to the engine what it has room for, step by step."""
        room = len(self.waiting)
        if self.timeout is not None and room:
            room = max(1, self.engine.n_workers or room) - (len(self.open) - len(self.waiting))
            self.engine.get_ready()
        now = time.monotonic() + (START if self.engine.announces else 0.0)
        while room > 0 and self.waiting:
            common = self.open[self.waiting[0]].common
            tasks = []
            while room > 0 and self.waiting and self.open[self.waiting[0]].common is common:
                entry = self.open[self.waiting.popleft()]
                entry.sent = now
                tasks.append(entry.task)
                room -= 1
            self.engine.send(common, tasks)

    def _accept(self, arrival: Arrival) -> bool:
        """Tell whether this is the value of an open evaluation; send a lost one again."""
        entry = self.open.get(arrival.id)
        word = arrival.value if isinstance(arrival.value, str) else ""
        if entry is None:
            self.n_repeated += arrival.error is None and word != STARTED
            return False
        if word == STARTED:
            entry.sent = time.monotonic()
            return False
        if word == STALE or isinstance(arrival.error, LostTask):
            if word == STALE:
                entry.common = self._with_point(entry)
            else:
                entry.losses += 1
            if entry.losses > LOSSES:
                raise RuntimeError(
                    f"evaluation {arrival.id} was lost with its worker {entry.losses} times; "
                    "run with workers=1 to see what kills them (memory?)"
                )
            if arrival.id not in self.waiting:
                self.waiting.append(arrival.id)
            return False
        if arrival.error is not None:
            arrival.error.add_note(f"raised by evaluation {arrival.id}")
            raise arrival.error
        del self.open[arrival.id]
        if arrival.id in self.waiting:  # thought late, and here after all
            self.waiting.remove(arrival.id)
        return True

    def _with_point(self, entry: Entry) -> Common:
        """Return the same with the point itself; one object for all tasks of a question."""
        common, question = entry.common, entry.question
        if self.resent is None or self.resent[0] is not common:
            assert isinstance(common.base, Moves)
            x = question.point.x if question.base is None else question.base
            self.resent = (common, replace(common, base=replace(common.base, whole=x.copy())))
        return self.resent[1]

    def _under_way(self) -> list[tuple[int, Entry]]:
        waiting = set(self.waiting)
        return [(number, entry) for number, entry in self.open.items() if number not in waiting]

    def _patience(self) -> float | None:
        """Return the seconds until the first evaluation under way is overdue."""
        if self.timeout is None:
            return None
        first = min(entry.sent for _, entry in self._under_way())
        return max(0.0, first + self.timeout - time.monotonic())

    def _leave_overdue(self) -> None:
        """Give overdue evaluations to other workers, or give them up."""
        if self.timeout is None:
            return
        before = time.monotonic() - self.timeout
        late = [(number, entry) for number, entry in self._under_way() if entry.sent < before]
        if not late:
            return
        self.engine.leave([number for number, _ in late])
        for number, entry in late:
            entry.delays += 1
            if entry.delays < DELAYS:
                self.waiting.append(number)
            elif self.skip:
                del self.open[number]
                self.given_up.append(number)
            else:
                raise TimeoutError(
                    f"evaluation {number} took longer than timeout={self.timeout:g} s "
                    f"{DELAYS} times; raise timeout, or pass failures=TimeoutError to go on without"
                )

    def _warn_idle(self, n_tasks: int) -> None:
        self.warned = True
        n_workers = self.engine.n_workers or 0
        if n_workers > n_tasks:
            warnings.warn(
                f"{n_workers} workers for the {n_tasks} evaluations of a step: some stay idle; "
                "raise block_size, keep several under way (asynchronous=) or use fewer workers",
                RuntimeWarning,
                stacklevel=2,
            )
