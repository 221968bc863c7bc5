"""One coordinate at a time, for functions compiled by numba: nothing comes back to Python."""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from scgd import steps
from scgd.compiling import njit
from scgd.descent.single import SingleLoop, at
from scgd.estimators import sides
from scgd.policies import base as distributions
from scgd.run.signals import Stop
from scgd.typing import Floats, Ints


class Workspace(NamedTuple):
    """The arrays that the compiled loop reads and writes: the engine's own."""

    x: Floats
    buffer: Floats
    lower: Floats
    upper: Floats
    coords: Ints
    probs: Floats
    grads: Floats
    rate_scale: Floats
    radius_scale: Floats
    importance: Floats
    hyper: Floats
    slots: Floats


class Trace(NamedTuple):
    """What the compiled loop leaves behind: a line per step, and where and why it stopped."""

    seen: Floats
    visited: Ints
    entries: Floats  # before each step
    cursor: Floats


DONE, N_LOST, LOW, HIGH, DOWN, UP, LOWEST, STEP, WHERE = range(9)
"""Slots of the cursor: steps, failed values, the pair that stopped it, the best value and where."""


class Codes(NamedTuple):
    """The choices that the compiled loop branches on."""

    central: bool
    skip: bool
    divisor: float  # of the importance factor 1 / (divisor * d_k); 0 for none
    mixed: bool  # whether coordinates have scales of their own


class CompiledLoop(SingleLoop):
    """The compiled loop: draws, evaluates, moves and learns without coming back to Python."""

    def _set_up(self) -> None:
        """Lay out what the steps need."""
        super()._set_up()
        engine, sampler, method = self.engine, self.engine.sampler, self.engine.method
        weights = engine.importance_weights
        self.work = Workspace(
            engine.point.x, engine.point.buffer, engine.problem.lower, engine.problem.upper,
            sampler.coords, sampler.probs, sampler.grads, engine.rate_scale, engine.radius_scale,
            np.empty(0) if weights is None else weights, engine.hyper, engine.slots,
        )  # fmt: skip
        divisors = {"inverse": 1.0, "relative": float(engine.problem.n_coords)}
        kind = method.importance
        divisor = divisors[kind] if isinstance(kind, str) else 0.0
        skip = self.ledger.on_nonfinite == "skip"
        self.codes = Codes(self.central, skip, divisor, not engine.uniform_scale)
        self.loop = runner(steps.compiled(method.step), self.sampled)

    def _part(self, chunk: int, rest: int, by_phase: bool) -> int:
        """Return the steps to run at a time: phases end inside the compiled code."""
        return min(chunk, rest) if by_phase else chunk

    def _run_part(self, place: int, n: int, stop: Stop) -> int:
        engine, sampler, best = self.engine, self.engine.sampler, self.ledger.best
        n_phases = n // sampler.n_draws + 2
        mixings = sampler.mixings.span(sampler.n_phases, n_phases)
        rows = np.empty((n, 0), np.int64)
        if self.sampled:
            rows = engine.samples.rows_of(engine.n_asked, n, engine.owner)
        table = engine.timetable
        rates, radii = table.rates[place : place + n], table.radii[place : place + n]
        trace = Trace(np.empty(n), np.empty(n, np.int64), np.empty(n), np.zeros(9))
        trace.cursor[LOWEST] = -np.inf if best is None else best.value
        trace.cursor[STEP] = -1
        try:
            self.loop(
                self.fun, self.args, self.work, self.codes, sampler.state, sampler.stream,
                sampler.position, mixings, rates, radii, rows, stop.array, trace,
            )  # fmt: skip
        finally:  # the function may have raised: count what was done, forget the step in hand
            done, step = int(trace.cursor[DONE]), int(trace.cursor[STEP])
            visited, entries = trace.visited[:done], trace.entries[:done]
            first = 0
            while first < done:
                last = min(first + sampler.n_draws - sampler.position, done)
                self._commit(visited[first:last], trace.seen[first:last], drawn=True)
                first = last
            self._look_back(visited, entries, radii[:done] * engine.radius_scale[visited])
            self.ledger.n_failed += int(trace.cursor[N_LOST])
            if best is not None and step >= 0:
                where, lowest = trace.cursor[WHERE], float(trace.cursor[LOWEST])
                self._keep(visited.tolist(), entries.tolist(), step, where, lowest)
            k = sampler.coords[sampler.position]
            engine.point.buffer[k] = engine.point.x[k]
        if done < n and not stop.array[0]:
            low, high, down, up = trace.cursor[LOW : UP + 1].tolist()
            self._lost((low, high), partial(at, engine.point.x, k, (down, up)))
        return done


@cache
def runner(move: Any, sampled: bool) -> Any:
    """Return the compiled loop for a step rule's kernel, with or without a sample argument."""

    def run(  # type: ignore[no-untyped-def]
        fun, args, work, codes, dist, stream, position, mixings, rates, radii, rows, stop, trace
    ):
        """Run ``len(trace.seen)`` steps; the cursor tells where and why it stopped before."""
        x, buffer, bounded, cursor = work.x, work.buffer, len(work.lower) > 0, trace.cursor
        n_draws, n_phases = len(work.coords), 0
        for i in range(len(trace.seen)):
            cursor[DONE] = i
            if stop[0]:
                return
            k = work.coords[position]
            entry, h = x[k], radii[i] * work.radius_scale[k]
            up, down = entry + h, entry - h if codes.central else entry
            if bounded:
                down, up = sides(codes.central, entry, h, work.lower[k], work.upper[k])
            buffer[k] = down
            low = fun(buffer, rows[i], *args) if sampled else fun(buffer, *args)
            buffer[k] = up
            high = fun(buffer, rows[i], *args) if sampled else fun(buffer, *args)
            width, change = up - down, high - low
            grad = change / width if width != 0.0 else change * 0.0
            moved, trace.visited[i], trace.entries[i] = entry, k, entry
            if not np.isfinite(grad):
                n_lost = int(not np.isfinite(low)) + int(not np.isfinite(high))
                if n_lost > 0 and not codes.skip:
                    cursor[LOW : UP + 1] = (low, high, down, up)
                    return
                cursor[N_LOST] += n_lost
                grad = 0.0
                value = (
                    low + 0.5 * change if codes.central else low
                )  # only the quotient may be lost
                trace.seen[i] = value if np.isfinite(value) else np.nan
                for value, where in ((low, down), (high, up)):  # one of them may be whole
                    if np.isfinite(value) and value < cursor[LOWEST]:
                        cursor[STEP], cursor[LOWEST], cursor[WHERE] = i, value, where
            else:
                rate = rates[i] * work.rate_scale[k]
                if codes.divisor > 0.0:
                    rate *= 1.0 / (codes.divisor * work.probs[position])
                elif len(work.importance) > 0:
                    rate *= work.importance[k]
                moved = entry - move(k, grad, rate, work.hyper, work.slots)
                if bounded:
                    moved = min(max(moved, work.lower[k]), work.upper[k])
                trace.seen[i] = low + (0.5 * change if codes.central else 0.0)
                if low < cursor[LOWEST] or high < cursor[LOWEST]:
                    cursor[STEP] = i
                    cursor[LOWEST], cursor[WHERE] = (low, down) if low <= high else (high, up)
            x[k] = moved
            buffer[k] = moved
            work.grads[position] = grad * work.rate_scale[k] if codes.mixed else grad
            position += 1
            if position == n_draws:
                distributions.update(dist, work.coords, work.probs, work.grads, mixings[n_phases])
                distributions.draw(dist, stream, work.coords, work.probs)
                n_phases += 1
                position = 0
        cursor[DONE] = len(trace.seen)

    return njit(error_model="numpy", nogil=True)(run)
