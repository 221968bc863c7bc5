"""One coordinate at a time, for functions written in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from scgd.estimators import CentralDifference, sides
from scgd.explore.loop import Loop
from scgd.optimizer import Optimizer
from scgd.problem import as_scalar
from scgd.typing import Floats

__all__ = ["Explorer", "moved"]

NAN = float("nan")


class Explorer(Loop):
    """The Python loop: poke one entry of x, evaluate, put it back, move."""

    def __init__(self, opt: Optimizer, fun: Callable[..., Any], args: tuple[Any, ...]) -> None:
        super().__init__(opt, fun, args)
        self.central = isinstance(opt.recipe.estimator, CentralDifference)
        self.x: Any = opt.theta.data
        self.grads: Any = opt.sampler.grads.data
        self.seen: Any = opt.observations.data
        self.slots = tuple(slot.data for slot in opt.slots)
        self.lower, self.upper = opt.problem.lower.data, opt.problem.upper.data
        self.share = 0.5 if self.central else 0.0  # the observation is low + share * (high - low)

    def _run_part(self, place: int, n: int) -> None:
        """Run ``n`` steps of one phase, in place; leave a consistent state whatever happens."""
        opt, sampler = self.opt, self.opt.sampler
        here = done = sampler.position
        call, view, x, grads, seen = self.call, opt.view, self.x, self.grads, self.seen
        kernel, hyper, slots = opt.recipe.step.kernel, opt.recipe.step.hyper, self.slots
        central, share, bounded, sampled = self.central, self.share, self.bounded, self.sampled
        special = bounded or sampled
        mixed, unit = not opt.uniform_scale, opt.rate_scale.data
        coords = sampler.coords[here : here + n]
        rates, radii = opt.step_sizes(place, coords, sampler.probs[here : here + n])
        below = radii if central else [0.0] * n
        k, entry = -1, 0.0
        try:
            for k, rate, h, back in zip(coords.tolist(), rates, radii, below, strict=True):
                entry = x[k]
                up = entry + h
                down = entry - back
                if special:
                    if sampled:
                        self.extra = (opt.sample_at(place + done - here), *self.args)
                    if bounded:
                        down, up = sides(central, entry, h, self.lower[k], self.upper[k])
                x[k] = down
                low = call(view)
                if low.__class__ is not float:
                    low = as_scalar(low)
                x[k] = up
                high = call(view)
                if high.__class__ is not float:
                    high = as_scalar(high)
                change, width = high - low, up - down
                grad = change / width if width else change * 0.0
                if grad - grad == 0.0:
                    entry -= kernel(k, grad, rate, hyper, slots)
                    if bounded:
                        entry = min(max(entry, self.lower[k]), self.upper[k])
                    seen[done] = low + share * change
                else:
                    x[k] = entry
                    first = opt.nfev + 2 * (done - here)
                    opt.skip((low, high), first, partial(moved, opt.theta, k, (down, up)))
                    grad, seen[done] = 0.0, NAN
                x[k] = entry
                grads[done] = grad * unit[k] if mixed else grad
                done += 1
        finally:
            if k >= 0:
                x[k] = entry
            opt.t += done - here
            opt.nfev += 2 * (done - here)
            if sampler.advance(done - here):
                opt.end_phase()


def moved(theta: Floats, k: int, entries: Sequence[float], j: int) -> Floats:
    """Return theta with coordinate ``k`` at the j-th of some entries."""
    x: Floats = theta.copy()
    x[k] = entries[j]
    return x
