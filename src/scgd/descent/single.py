"""One coordinate at a time, for functions written in Python."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from scgd.calling import calls_user
from scgd.descent.loop import Loop
from scgd.estimators import farthest_side, sides
from scgd.problem import as_scalar
from scgd.run.signals import Stop
from scgd.typing import Floats, Ints

NAN, INFINITY = float("nan"), float("inf")
float64 = np.float64


class SingleLoop(Loop):
    """Poke one entry of the buffer, evaluate, go on from where the step leads.

    During a part of a phase only the buffer moves; the point follows when the part ends.
    """

    def _set_up(self) -> None:
        """Lay out what the steps need."""
        engine = self.engine
        self.slots = tuple(slot.data for slot in engine.slots)
        self.hyper = engine.method.step.hyper
        self.lower, self.upper = engine.problem.lower.data, engine.problem.upper.data
        self.share = 0.5 if self.central else 0.0  # what is seen is low + share * (high - low)

    @calls_user
    def _run_part(self, place: int, n: int, stop: Stop) -> int:
        """Run ``n`` steps of one phase, or until stopped; a step that is cut has not happened."""
        engine, sampler, best = self.engine, self.engine.sampler, self.ledger.best
        first = sampler.position
        call, view, x, raised = self.call, engine.point.view, engine.point.buffer.data, stop.raised
        kernel, hyper, slots = engine.method.step.kernel, self.hyper, self.slots
        central, share, bounded, sampled = self.central, self.share, self.bounded, self.sampled
        special, over = bounded or sampled, stop.over
        coords = sampler.coords[first : first + n].tolist()
        rates, radii = engine.step_sizes(
            place, sampler.coords[first : first + n], sampler.probs[first : first + n]
        )
        below = radii if central else [0.0] * n
        lowest = -INFINITY if best is None else best.value
        found: tuple[int, float, float] | None = None
        entries: list[float] = []  # before each step
        grads: list[float] = []
        seen: list[float] = []
        told = self.ledger.noted
        k = -1
        try:
            for k, rate, h, back in zip(coords, rates, radii, below, strict=True):
                if raised:
                    break
                entry = x[k]
                entries.append(entry)
                up = entry + h
                down = entry - back
                if special:
                    if sampled:
                        self.extra = (*engine.arguments(len(grads)), *self.args)
                    if bounded:
                        down, up = sides(central, entry, h, self.lower[k], self.upper[k])
                x[k] = down
                low = call(view)
                if low.__class__ is not float:
                    low = float(low) if low.__class__ is float64 else as_scalar(low)
                if over:
                    break
                x[k] = up
                high = call(view)
                if high.__class__ is not float:
                    high = float(high) if high.__class__ is float64 else as_scalar(high)
                if told is not None:
                    told.append(low)
                    told.append(high)
                change, width = high - low, up - down
                grad = change / width if width else change * 0.0
                if grad - grad == 0.0:
                    entry -= kernel(k, grad, rate, hyper, slots)
                    if bounded:
                        entry = min(max(entry, self.lower[k]), self.upper[k])
                    seen.append(low + share * change)
                    if low < lowest or high < lowest:
                        lowest, where = (low, down) if low <= high else (high, up)
                        found = (len(grads), where, lowest)
                else:
                    x[k] = entry
                    probes = partial(at, engine.point.view, k, (down, up))
                    self._lost((low, high), probes, 2 * len(grads))
                    grad = 0.0
                    value = low + 0.5 * change if central else low  # only the quotient may be lost
                    seen.append(value if value - value == 0.0 else NAN)
                    for value, where in ((low, down), (high, up)):  # one of them may be whole
                        if value - value == 0.0 and value < lowest:
                            lowest, found = value, (len(grads), where, value)
                x[k] = entry
                grads.append(grad)
        finally:
            done = len(grads)
            if done < len(entries):
                engine.point.buffer[k] = entries[done]
            now = slice(first, first + done)
            places = sampler.coords[now]
            engine.point.x[places] = engine.point.buffer[places]
            sampler.grads[now] = engine.in_units(np.array(grads, np.float64), places)
            self._look_back(places, np.array(entries[:done]), np.array(radii[:done]))
            self._commit(coords[:done], seen)
            if found is not None:
                self._keep(coords[:done], entries[:done], *found)
        return done

    def _commit(self, visited: Any, seen: Any, *, drawn: bool = False) -> None:
        """Count steps of one phase; ``drawn``: compiled code has learnt and drawn at its end."""
        engine, sampler, n = self.engine, self.engine.sampler, len(visited)
        engine.point.trail.add(visited)
        engine.observations[sampler.position : sampler.position + n] = seen
        engine.t += n
        engine.n_asked += n
        engine.n_evals += 2 * n
        if sampler.advance(n, drawn=drawn):
            engine.end_phase()

    def _look_back(self, visited: Ints, entries: Floats, radii: Floats) -> None:
        """Take note of how far these steps looked."""
        engine, problem = self.engine, self.engine.problem
        most = farthest_side(
            self.central, engine.point.x, entries, visited, radii, problem.lower, problem.upper,
            problem.x0, problem.unit,
        )  # fmt: skip
        engine.farthest = max(engine.farthest, float(most))

    def _keep(
        self, visited: list[int], entries: list[float], step: int, entry: float, value: float
    ) -> None:
        """Keep the best point seen: as it was at that step, with its coordinate where it was."""
        best = self.ledger.best
        assert best is not None
        places = [*reversed(visited[step:]), visited[step]]
        best.at(value, self.engine.point, places, [*reversed(entries[step:]), entry])


def at(x: Floats, k: int, entries: Any, j: int) -> Floats:
    """Return x with coordinate ``k`` at the j-th of some entries."""
    y: Floats = x.copy()
    y[k] = entries[j]
    return y
