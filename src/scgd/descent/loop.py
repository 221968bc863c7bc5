"""What all loops have in common: how the function is called, and when to stop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from scgd.calling import calls_user
from scgd.descent.engine import CoordinateDescent
from scgd.estimators import CentralDifference
from scgd.problem import as_scalar
from scgd.run.ledger import Ledger
from scgd.run.signals import Late, Stop
from scgd.samples import CHUNK
from scgd.typing import Floats

float64 = np.float64


def as_float(value: Any) -> float:
    """Return a value of the user's function that is not a plain float as one."""
    return float(value) if value.__class__ is float64 else as_scalar(value)


class Loop:
    """Advance SCGD by many steps.

    Parameters
    ----------
    engine
        What to advance.
    fun, args
        The user's function and its further arguments.
    ledger
        Where values that are not finite are counted, and the best one is kept.
    """

    def __init__(
        self,
        engine: CoordinateDescent,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        ledger: Ledger,
    ) -> None:
        self.engine, self.fun, self.args, self.ledger = engine, fun, args, ledger
        self.bounded = engine.problem.lower.size > 0
        self.sampled = engine.samples.controlled
        self.extra = args
        self.call = fun if not args and not self.sampled else self._call
        self.cost = engine.step_cost
        self.over: list[int] = []
        self.central = isinstance(engine.method.estimator, CentralDifference)
        self._set_up()

    def _set_up(self) -> None:
        """Lay out what the steps need."""

    @calls_user
    def _call(self, view: Floats) -> Any:
        """Evaluate with further arguments."""
        return self.fun(view, *self.extra)

    def run(self, room: float, stop: Stop, *, by_phase: bool) -> None:
        """Take steps for ``room`` evaluations, until stopped or a stage or (wanted) phase ends."""
        engine, sampler, left = self.engine, self.engine.sampler, self._affordable(room)
        self.before, self.over = self.ledger.n_accepted - engine.n_evals, stop.over
        while left > 0 and not stop.raised and not (engine.diverged and engine.until < 0):
            place = engine.prepare()
            rest = (sampler.n_draws - sampler.position) // sampler.block_size
            n = int(min(left, self._part(CHUNK - place, rest, by_phase)))
            done = self._run_part(place, n, stop)
            self.ledger.mark()
            left -= done
            if by_phase and done == rest:
                return

    def _part(self, chunk: int, rest: int, by_phase: bool) -> int:
        """Return the steps to run at a time, given those left in the chunk and in the phase."""
        return min(chunk, rest)

    def _affordable(self, room: float) -> float:
        """Return how many steps the budget and the stage pay for."""
        engine = self.engine
        if engine.until >= 0:
            room = min(room, engine.until - engine.n_evals)
        return room // self.cost

    def _run_part(self, place: int, n: int, stop: Stop) -> int:
        """Run ``n`` steps of one chunk, or until stopped; return how many were run."""
        for i in range(n):
            if stop.raised:
                return i
            try:
                self._step(place + i)
            except Late:
                return i
            self.engine.n_asked += 1
        return n

    def _step(self, place: int) -> None:
        """Take the step at this place of the chunk, or nothing of it."""
        raise NotImplementedError

    def _lost(self, values: Any, point: Callable[[int], Floats], ahead: int = 0) -> None:
        """Count the values of a step that are not finite; where there are none, it overflowed."""
        first = self.before + self.engine.n_evals + ahead
        for j, value in enumerate(values):
            if not np.isfinite(value):
                self.ledger.failed(value, first + j, partial(point, j), may_fail=False)
