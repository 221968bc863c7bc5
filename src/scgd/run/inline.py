"""Evaluate a strategy's points in this process without an object per question."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from scgd.calling import calls_user
from scgd.problem import as_scalar
from scgd.run.interpreter import Interpreter
from scgd.run.ledger import Ledger
from scgd.run.signals import Stop
from scgd.samples import Samples
from scgd.strategies.asks import Along, Gradient, point_of
from scgd.typing import Floats

__all__ = ["Inline"]

LONGEST = 1000
"""Points of a batch at most; beyond that a question costs nothing beside it."""
NAN = float("nan")
float64 = np.float64


class Inline:
    """Send a strategy the values of its points, one after the other.

    A cut between two points of a batch loses nothing: the interpreter keeps the values it has.

    Parameters
    ----------
    strategy
        The interpreter.
    fun, args
        The user's function and its further arguments.
    ledger
        Where failed values are counted, and the best one is kept.
    samples
        Where samples come from.
    """

    def __init__(
        self,
        strategy: Interpreter,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        ledger: Ledger,
        samples: Samples,
    ) -> None:
        self.strategy, self.fun, self.args, self.ledger = strategy, fun, args, ledger
        self.samples = samples
        self.base: Floats = np.empty(0)
        self.buffer: Floats = np.empty(strategy.problem.n_coords)
        self.view = self.buffer.view()
        self.view.flags.writeable = False

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
        solver = strategy.solver
        past = ledger.n_accepted - strategy.n_told - strategy.n_answered
        while not stop.raised and self.ready(room):
            asked, size, first = strategy.asked, strategy.size, strategy.n_asked
            rows = None if isinstance(asked, Along) else asked.reshape(-1, asked.shape[-1])
            for j in range(first, size):
                if stop.raised:
                    break
                extra = self.args
                if self.samples.controlled:
                    number = strategy.n_samples + j // strategy.group
                    extra = (*self.samples.arguments(number, 0), *extra)
                value = self._along(asked, j, extra) if rows is None else self._at(rows[j], extra)
                if value.__class__ is not float:
                    value = float(value) if value.__class__ is float64 else as_scalar(value)
                self._enter(value, j, past + strategy.n_evals + j)
                room -= 1
            if strategy.solver != solver or (by_phase and strategy.asked is not asked):
                break  # the table of evaluations has one solver for all that a loop made
        ledger.mark()

    @calls_user
    def _along(self, asked: Along, j: int, extra: tuple[Any, ...]) -> Any:
        """Evaluate a point that differs from the others in one coordinate."""
        x, k = self.buffer, asked.coords[j]
        if asked.x is not self.base:
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

    def _enter(self, value: float, j: int, number: int) -> None:
        """Enter the j-th value of a batch as a question would, and send it."""
        strategy, ledger = self.strategy, self.ledger
        if value - value != 0.0:
            point = partial(point_of, strategy.asked, j)
            ledger.failed(value, number, point, may_fail=True)
            value = NAN
        elif ledger.best is not None and value < ledger.best.value:
            ledger.best.put(value, point_of(strategy.asked, j))
        if number == 0 and value == value and np.array_equal(self.view, strategy.problem.x0):
            ledger.first = value
        if ledger.noted is not None:
            ledger.noted.append(value)
        strategy.n_asked = j + 1
        strategy.enter_one(j, value)
