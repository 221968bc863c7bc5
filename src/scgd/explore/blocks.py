"""A block of coordinates per step, each with its own difference, for functions in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scgd.calling import calls_user
from scgd.estimators import CentralDifference, fill_sides, middle, slopes
from scgd.explore.loop import Loop, as_float
from scgd.run.ledger import Ledger
from scgd.searches import Stepping
from scgd.searches.base import Late
from scgd.typing import Floats, Ints

__all__ = ["BlockBody"]


class BlockBody(Loop):
    """Poke the entries of a block one after the other, then move them all."""

    def __init__(
        self, search: Stepping, fun: Callable[..., Any], args: tuple[Any, ...], ledger: Ledger
    ) -> None:
        super().__init__(search, fun, args, ledger)
        self.central = isinstance(search.recipe.estimator, CentralDifference)
        self.x: Any = search.point.buffer.data
        size = search.sampler.block_size
        self.downs, self.ups = np.empty(size), np.empty(size)

    def _step(self, place: int) -> None:
        search, sampler, problem = self.search, self.search.sampler, self.search.problem
        now = slice(sampler.position, sampler.position + sampler.block_size)
        coords = sampler.coords[now]
        if self.sampled:
            self.extra = (*search.arguments(), *self.args)
        radii = search.timetable.radii[place] * search.radius_scale[coords]
        fill_sides(
            self.central, search.point.x, coords, radii, problem.lower, problem.upper, self.downs,
            self.ups,
        )  # fmt: skip
        values = self._values(coords.tolist())
        total = sum(values)
        if not (total - total == 0.0 or np.isfinite(values).all()):
            self._lost(values, lambda j: self._point(coords, j))
            values = [value if value - value == 0.0 else np.nan for value in values]
        self._keep(coords, values)
        if self.ledger.told is not None:
            self.ledger.told.extend(values)
        search.look(self.downs, coords)
        search.look(self.ups, coords)
        search.n_evals += self.cost
        self._move(place, coords, sampler.probs[now], values)

    @calls_user
    def _values(self, coords: list[int]) -> list[float]:
        """Return f at the point (or below each coordinate) and above each coordinate."""
        call, view, x, over = self.call, self.search.point.view, self.x, self.over
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
        search, seen, grads = self.search, np.array(values), np.empty(len(coords))
        if self.central:
            lows, highs = seen[::2], seen[1::2]
            value = middle(lows, highs)
        else:
            lows, highs, value = np.broadcast_to(seen[:1], grads.shape), seen[1:], values[0]
        slopes(lows, highs, self.downs, self.ups, grads)
        search.move(coords, grads, float(search.timetable.rates[place]), probs)
        search.observe(value)
        search.end_step(search.in_units(grads, coords))

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
            k, entry = coords[0], self.search.point.x[coords[0]]
        best.at(float(lowest), self.search.point, k, entry)

    def _point(self, coords: Ints, j: int) -> Floats:
        """Return the point of the j-th value."""
        x: Floats = self.search.point.x.copy()
        if self.central:
            x[coords[j // 2]] = (self.ups if j % 2 else self.downs)[j // 2]
        elif j > 0:
            x[coords[j - 1]] = self.ups[j - 1]
        return x
