"""A member of a portfolio: a generator, its name, what it has reached and what it may use."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.strategies.asks import Asking, Gradient, Report, point_of
from scgd.strategies.stopping import StoppingRule
from scgd.typing import Floats


class Best:
    """The best point that anybody has evaluated."""

    __slots__ = ("f", "x")

    def __init__(self, x: Floats, f: float) -> None:
        self.x, self.f = x, f


class Member:
    """One solver of a portfolio.

    Parameters
    ----------
    name
        What reports call it.
    asking
        Yields points and is sent their values.
    known
        The best point known to all, kept up to date.

    Attributes
    ----------
    best, x
        The lowest value it has seen, and where.
    n, over, found
        Its evaluations, whether it has ended, and what it returned.
    values
        The last it was sent.
    """

    def __init__(self, name: str, asking: Asking, known: Best) -> None:
        self.name, self.asking, self.known = name, asking, known
        self.best, self.x = float("inf"), np.empty(0)
        self.n, self.over = 0, False
        self.asked: Any = None
        self.values: Any = None
        self.found: Any = None

    def run(self, n: int, stopping: StoppingRule | None = None) -> Asking:
        """Let it use about n evaluations; a generation or a gradient is not cut."""
        end, send = self.n + n, self.asking.send
        if self.n < end and not self.over:
            yield Report(solver=self.name)
        while self.n < end and not self.over and not (stopping is not None and stopping.over):
            try:
                if self.asked is None:
                    self.asked = next(self.asking)
                points = self.asked
                values = yield points
                if values is not None:  # not a report
                    self._note(points, values)
                self.asked = send(values)
                while isinstance(self.asked, Report):
                    yield self.asked
                    self.asked = send(None)
            except StopIteration as end_of_it:
                self.over, self.found = True, end_of_it.value

    def finish(self) -> Asking:
        """Let it come to its end; return what it returns."""
        while not self.over:
            yield from self.run(2**62)
        return self.found

    def _note(self, points: Any, values: Any) -> None:
        if isinstance(points, Gradient):
            self.n += 1
            return
        self.values = values
        if isinstance(values, float):
            k, lowest = 0, values
            self.n += 1
        else:
            k = int(values.argmin())
            lowest = float(values.flat[k])
            self.n += values.size
        if lowest < self.best:
            self.best, self.x = lowest, point_of(points, k)
            if lowest < self.known.f:
                self.known.f, self.known.x = lowest, self.x
