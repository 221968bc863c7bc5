"""A block of coordinates per step, one after the other or all at once, for functions in Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.calling import calls_user
from scgd.compiling import njit
from scgd.descent.loop import Loop, as_float
from scgd.estimators import (
    SPSA,
    fill_sides,
    halfway,
    middle,
    random_bits,
    slopes,
    spread,
)
from scgd.run.signals import Late
from scgd.typing import Floats, Ints


class BlockLoop(Loop):
    """Set entries of a block in the buffer, evaluate, put them back, then move the block.

    Work and memory per step are those of the drawn coordinates.
    """

    def _set_up(self) -> None:
        """Lay out what the steps need."""
        self.joint = isinstance(self.engine.method.estimator, SPSA)
        size = self.engine.sampler.block_size
        self.downs, self.ups = np.empty(size), np.empty(size)

    def _step(self, place: int) -> None:
        engine, sampler, problem = self.engine, self.engine.sampler, self.engine.problem
        now = slice(sampler.position, sampler.position + sampler.block_size)
        coords = sampler.coords[now]
        if self.sampled:
            self.extra = (*engine.arguments(), *self.args)
        radii = engine.timetable.radii[place] * engine.radius_scale[coords]
        x, lower, upper = engine.point.x, problem.lower, problem.upper
        downs, ups = self.downs, self.ups
        if self.joint:
            bits = random_bits(sampler.block_size, engine.direction_rng)
            spread(x, coords, bits, radii, lower, upper, ups, downs)
        else:
            fill_sides(self.central, x, coords, radii, lower, upper, downs, ups)
        try:
            values = self._both(coords) if self.joint else self._each(coords.tolist())
            total = sum(values)
            if not (total - total == 0.0 or np.isfinite(values).all()):
                self._lost(values, lambda j: self._point(coords, j))
                values = [value if value - value == 0.0 else np.nan for value in values]
        except BaseException:  # the step will be made again, along the same direction
            if self.joint:
                generator: Any = engine.direction_rng.bit_generator
                generator.advance(-(len(bits) // 8))  # in words
            raise
        self._keep(coords, values)
        if self.ledger.noted is not None:
            self.ledger.noted.extend(values)
        engine.look(downs, coords)
        engine.look(ups, coords)
        engine.n_evals += self.cost
        lows, highs, seen = self._seen(values)
        grads = slopes(lows, highs, downs, ups)
        engine.move(coords, grads, seen, float(engine.timetable.rates[place]), sampler.probs[now])

    @calls_user
    def _each(self, coords: list[int]) -> list[float]:
        """Return f at the point (or below each coordinate) and above each coordinate."""
        call, view, over = self.call, self.engine.point.view, self.over
        x: Any = self.engine.point.buffer.data
        values = [] if self.central else [call(view)]
        k, entry = coords[0], x[coords[0]]
        try:
            for k, down, up in zip(coords, self.downs.tolist(), self.ups.tolist(), strict=True):
                entry = x[k]
                if over:
                    raise Late
                if self.central:
                    x[k] = down
                    values.append(call(view))
                    if over:
                        raise Late
                x[k] = up
                values.append(call(view))
                x[k] = entry
        finally:
            x[k] = entry
        return [v if v.__class__ is float else as_float(v) for v in values]

    @calls_user
    def _both(self, coords: Ints) -> list[float]:
        """Return f at the two points of a joint move."""
        call, point = self.call, self.engine.point
        try:
            put(point.buffer, coords, self.ups)
            values = [call(point.view)]
            if self.over:
                raise Late
            put(point.buffer, coords, self.downs)
            values.append(call(point.view))
        finally:
            restore(point.buffer, coords, point.x)
        return [v if v.__class__ is float else as_float(v) for v in values]

    def _seen(self, values: list[float]) -> tuple[Floats, Floats, float]:
        """Return the values below and above each coordinate, and the one near the point."""
        n = len(self.ups)
        if self.joint:
            high, low = values
            return np.full(n, low), np.full(n, high), halfway(high, low)
        seen = np.array(values)
        if self.central:
            return seen[::2], seen[1::2], middle(seen[::2], seen[1::2])
        return np.full(n, values[0]), seen[1:], values[0]

    def _set(self, coords: Ints, j: int) -> tuple[Any, Any]:
        """Return which entries the j-th point sets, and what to."""
        if self.joint:
            return coords.copy(), self.downs if j else self.ups
        if self.central:
            return coords[j // 2], (self.ups if j % 2 else self.downs)[j // 2]
        return (coords[j - 1], self.ups[j - 1]) if j else (slice(0), 0.0)

    def _point(self, coords: Ints, j: int) -> Floats:
        """Return the j-th point."""
        x: Floats = self.engine.point.x.copy()
        place, entries = self._set(coords, j)
        x[place] = entries
        return x

    def _keep(self, coords: Ints, values: list[float]) -> None:
        """Keep the lowest value if it is the best so far."""
        best = self.ledger.best
        if best is not None and (lowest := np.fmin.reduce(values, initial=np.inf)) < best.value:
            place, entries = self._set(coords, values.index(lowest))
            best.at(float(lowest), self.engine.point, place, entries)


@njit(cache=True)
def put(buffer, coords, entries):  # type: ignore[no-untyped-def]
    """Set entries of the buffer."""
    for i in range(len(coords)):
        buffer[coords[i]] = entries[i]


@njit(cache=True)
def restore(buffer, coords, x):  # type: ignore[no-untyped-def]
    """Put entries of the buffer back."""
    for i in range(len(coords)):
        buffer[coords[i]] = x[coords[i]]
