"""Several questions under way at a time, and the order in which their values came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.checks import count, shown
from scgd.run.run import Run
from scgd.run.signals import Stop
from scgd.typing import Ints
from scgd.workers import Evaluator


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
    def check(cls, wanted: int | Events, run: Run, *, vectorized: bool) -> Events:
        """Check the argument of the same name."""
        if vectorized:
            raise ValueError("a vectorized fun takes whole questions; drop asynchronous=")
        events = wanted if isinstance(wanted, Events) else cls(count(wanted, "asynchronous"))
        if events.limit < run.strategy.cost:
            raise ValueError(
                f"asynchronous must be at least the {run.strategy.cost} evaluations of a step, "
                f"got {events.limit}"
            )
        return events


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

    def go(self, stop: Stop) -> None:
        """Accept one value and keep the rest flying."""
        self._launch()
        while (ready := self._next()) is None:
            if stop.raised:
                return
            for number, value in self.evaluate.arrived():
                if number in self.run.place:
                    self.arrived[number] = value
        self.run.accept(ready, self.arrived.pop(ready))

    def _launch(self) -> None:
        """Ask as long as there is room; a question larger than that flies alone."""
        run = self.run
        while not run.place or len(run.place) + run.strategy.cost <= self.limit:
            opened = run.next_question()
            if opened is None:
                return
            self.evaluate.submit(opened)

    def _next(self) -> int | None:
        """Return the number of the value to accept next, if it is there."""
        n = len(self.run.order)
        if self.replay is not None and n < len(self.replay):
            wanted = self.replay[n]
            return wanted if wanted in self.arrived else None
        return next(iter(self.arrived), None)
