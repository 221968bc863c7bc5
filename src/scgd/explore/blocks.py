"""A block of coordinates per step, each with its own difference, for functions in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scgd.estimators import CentralDifference, fill_sides, slopes
from scgd.explore.loop import Loop
from scgd.optimizer import Optimizer
from scgd.problem import as_scalar
from scgd.steps import applier
from scgd.typing import Floats, Ints

__all__ = ["BlockExplorer"]


class BlockExplorer(Loop):
    """Poke the entries of a block one after the other, then move them all."""

    def __init__(self, opt: Optimizer, fun: Callable[..., Any], args: tuple[Any, ...]) -> None:
        super().__init__(opt, fun, args)
        self.central = isinstance(opt.recipe.estimator, CentralDifference)
        self.x: Any = opt.theta.data
        size = opt.sampler.block_size
        self.downs, self.ups = np.empty(size), np.empty(size)

    def _step(self, place: int) -> None:
        opt, sampler, problem = self.opt, self.opt.sampler, self.opt.problem
        here = slice(sampler.position, sampler.position + sampler.block_size)
        coords = sampler.coords[here]
        if self.sampled:
            self.extra = (opt.sample_at(place), *self.args)
        radii = opt.radii[place] * opt.radius_scale[coords]
        fill_sides(
            self.central, opt.theta, coords, radii, problem.lower, problem.upper, self.downs,
            self.ups,
        )  # fmt: skip
        values = self._values(coords.tolist())
        total = sum(values)
        if total - total == 0.0 or all(np.isfinite(values)):
            seen = self._move(place, coords, sampler.probs[here], sampler.grads[here], values)
        else:
            opt.skip(values, opt.nfev, lambda j: self._point(coords, j))
            sampler.grads[here], seen = 0.0, np.nan
        opt.observations[sampler.position // sampler.block_size] = seen
        opt.t += 1
        opt.nfev += self.cost
        if sampler.advance(sampler.block_size):
            opt.end_phase()

    def _values(self, coords: list[int]) -> list[float]:
        """Return f at theta (or below each coordinate) and above each coordinate."""
        call, view, x = self.call, self.opt.view, self.x
        values = [] if self.central else [call(view)]
        k, entry = coords[0], x[coords[0]]
        try:
            for k, down, up in zip(coords, self.downs.tolist(), self.ups.tolist(), strict=True):
                entry = x[k]
                if self.central:
                    x[k] = down
                    values.append(call(view))
                x[k] = up
                values.append(call(view))
                x[k] = entry
        finally:
            x[k] = entry
        return [v if v.__class__ is float else as_scalar(v) for v in values]

    def _move(
        self, place: int, coords: Ints, probs: Floats, grads: Floats, values: list[float]
    ) -> float:
        """Move the block; return the value seen near theta."""
        opt, seen = self.opt, np.array(values)
        if self.central:
            lows, highs = seen[::2], seen[1::2]
            value = float(np.mean(lows + 0.5 * (highs - lows)))
        else:
            lows, highs, value = np.broadcast_to(seen[:1], grads.shape), seen[1:], values[0]
        slopes(lows, highs, self.downs, self.ups, grads)
        rates = opt.rates[place] * opt.rate_scale[coords]
        factors = opt.importance(coords, probs)
        applier(opt.recipe.step)(
            coords, grads, rates if factors is None else rates * factors,
            opt.hyper, opt.slots, opt.theta, opt.problem.lower, opt.problem.upper,
        )  # fmt: skip
        grads[:] = opt.in_units(grads, coords)
        return value

    def _point(self, coords: Ints, j: int) -> Floats:
        """Return the point of the j-th value."""
        x: Floats = self.opt.theta.copy()
        if self.central:
            x[coords[j // 2]] = (self.ups if j % 2 else self.downs)[j // 2]
        elif j > 0:
            x[coords[j - 1]] = self.ups[j - 1]
        return x
