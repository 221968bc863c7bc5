"""A block of coordinates per step, each with its own difference, for functions in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scgd.calling import calls_user
from scgd.descent.engine import CoordinateDescent
from scgd.descent.loop import Loop, as_float
from scgd.estimators import CentralDifference, fill_sides, middle, slopes
from scgd.run.ledger import Ledger
from scgd.run.signals import Late
from scgd.typing import Floats, Ints

__all__ = ["BlockLoop"]


class BlockLoop(Loop):
    """Poke the entries of a block one after the other, then move them all."""

    def __init__(
        self,
        engine: CoordinateDescent,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        ledger: Ledger,
    ) -> None:
        super().__init__(engine, fun, args, ledger)
        self.central = isinstance(engine.method.estimator, CentralDifference)
        self.x: Any = engine.point.buffer.data
        size = engine.sampler.block_size
        self.downs, self.ups = np.empty(size), np.empty(size)

    def _step(self, place: int) -> None:
        engine, sampler, problem = self.engine, self.engine.sampler, self.engine.problem
        now = slice(sampler.position, sampler.position + sampler.block_size)
        coords = sampler.coords[now]
        if self.sampled:
            self.extra = (*engine.arguments(), *self.args)
        radii = engine.timetable.radii[place] * engine.radius_scale[coords]
        fill_sides(
            self.central, engine.point.x, coords, radii, problem.lower, problem.upper, self.downs,
            self.ups,
        )  # fmt: skip
        values = self._values(coords.tolist())
        total = sum(values)
        if not (total - total == 0.0 or np.isfinite(values).all()):
            self._lost(values, lambda j: self._point(coords, j))
            values = [value if value - value == 0.0 else np.nan for value in values]
        self._keep(coords, values)
        if self.ledger.noted is not None:
            self.ledger.noted.extend(values)
        engine.look(self.downs, coords)
        engine.look(self.ups, coords)
        engine.n_evals += self.cost
        self._move(place, coords, sampler.probs[now], values)

    @calls_user
    def _values(self, coords: list[int]) -> list[float]:
        """Return f at the point (or below each coordinate) and above each coordinate."""
        call, view, x, over = self.call, self.engine.point.view, self.x, self.over
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

    def _move(self, place: int, coords: Ints, probs: Floats, values: list[float]) -> None:
        """Move the block by what the values show."""
        engine, seen, grads = self.engine, np.array(values), np.empty(len(coords))
        if self.central:
            lows, highs = seen[::2], seen[1::2]
            value = middle(lows, highs)
        else:
            lows, highs, value = np.broadcast_to(seen[:1], grads.shape), seen[1:], values[0]
        slopes(lows, highs, self.downs, self.ups, grads)
        engine.move(coords, grads, float(engine.timetable.rates[place]), probs)
        engine.observe(value)
        engine.end_step(engine.in_units(grads, coords))

    def _keep(self, coords: Ints, values: list[float]) -> None:
        """Keep the lowest value if it is the best so far."""
        best = self.ledger.best
        if best is None or not (lowest := np.fmin.reduce(values, initial=np.inf)) < best.value:
            return
        j = values.index(lowest)
        if self.central:
            k, entry = coords[j // 2], (self.ups if j % 2 else self.downs)[j // 2]
        elif j > 0:
            k, entry = coords[j - 1], self.ups[j - 1]
        else:
            k, entry = coords[0], self.engine.point.x[coords[0]]
        best.at(float(lowest), self.engine.point, k, entry)

    def _point(self, coords: Ints, j: int) -> Floats:
        """Return the point of the j-th value."""
        x: Floats = self.engine.point.x.copy()
        if self.central:
            x[coords[j // 2]] = (self.ups if j % 2 else self.downs)[j // 2]
        elif j > 0:
            x[coords[j - 1]] = self.ups[j - 1]
        return x
