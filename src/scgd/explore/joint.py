"""Joint moves of all drawn coordinates along random signs, for functions in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scgd import steps
from scgd.compiling import njit
from scgd.estimators import random_bits
from scgd.explore.loop import Loop
from scgd.optimizer import Optimizer
from scgd.problem import as_scalar
from scgd.typing import Array, Floats, Ints

__all__ = ["JointExplorer"]


class JointExplorer(Loop):
    """Set all drawn entries of x at once, evaluate on both sides, put them back, move.

    Work and memory per step are those of the drawn coordinates, in compiled code.
    """

    def __init__(self, opt: Optimizer, fun: Callable[..., Any], args: tuple[Any, ...]) -> None:
        super().__init__(opt, fun, args)
        size = opt.sampler.block_size
        self.ups, self.downs, self.saved = np.empty(size), np.empty(size), np.empty(size)
        self.rates, self.none = np.empty(size), np.empty(0)
        rule = opt.recipe.step
        self.apply, self.hyper, self.slots = APPLY[rule.code], rule.hyper, tuple(opt.slots)

    def _run_part(self, place: int, n: int) -> None:
        """Run ``n`` steps of one phase."""
        for i in range(place, place + n):
            self._step(i)

    def _step(self, place: int) -> None:
        opt, sampler, problem = self.opt, self.opt.sampler, self.opt.problem
        size = sampler.block_size
        here = slice(sampler.position, sampler.position + size)
        coords, grads = sampler.coords[here], sampler.grads[here]
        if self.sampled:
            self.extra = (opt.sample_at(place), *self.args)
        bits = random_bits(size, opt.direction_rng)
        spread(
            opt.theta, coords, bits, opt.radii[place], opt.radius_scale, problem.lower,
            problem.upper, self.ups, self.downs, self.saved,
        )  # fmt: skip
        try:
            first, second = self._values(coords)
            change = first - second
            fine = change - change == 0.0 or (np.isfinite(first) and np.isfinite(second))
            if not fine:
                self._skip(coords, first, second)
        except BaseException:  # the step will be made again, along the same direction
            rewind(opt.direction_rng, bits)
            raise
        if fine:
            self._move(place, coords, sampler.probs[here], grads, change)
        else:
            grads[:] = 0.0
        opt.observations[sampler.position // size] = (first + second) / 2.0 if fine else np.nan
        opt.t += 1
        opt.nfev += 2
        if sampler.advance(size):
            opt.end_phase()

    def _values(self, coords: Ints) -> tuple[float, float]:
        """Return f at the two points; theta is put back whatever happens."""
        theta, call, view = self.opt.theta, self.call, self.opt.view
        try:
            first = call(view)
            put(theta, coords, self.downs)
            second = call(view)
        finally:
            put(theta, coords, self.saved)
        first = first if first.__class__ is float else as_scalar(first)
        second = second if second.__class__ is float else as_scalar(second)
        return first, second

    def _move(self, place: int, coords: Ints, probs: Floats, grads: Floats, change: float) -> None:
        opt, problem = self.opt, self.opt.problem
        factors = opt.importance(coords, probs)
        differences(
            coords, change, self.ups, self.downs, opt.rates[place], opt.rate_scale,
            self.none if factors is None else factors, grads, self.rates,
        )  # fmt: skip
        self.apply(
            coords, grads, self.rates, self.hyper, self.slots, opt.theta, problem.lower,
            problem.upper,
        )  # fmt: skip

    def _skip(self, coords: Ints, first: float, second: float) -> None:
        """Raise for the first value that is not finite, or count the step as skipped."""
        opt = self.opt
        if opt.on_nonfinite == "skip":
            opt.n_skipped += 1
            return
        j = 1 if np.isfinite(first) else 0
        x: Floats = opt.theta.copy()
        x[coords] = self.downs if j else self.ups
        raise opt.nonfinite_error(second if j else first, opt.nfev + j, x)


def rewind(rng: np.random.Generator, bits: Array) -> None:
    """Put a generator back to before these bits were drawn."""
    generator: Any = rng.bit_generator
    kept = generator.state
    generator.advance(2**128 - len(bits) // 8)
    state = generator.state  # advancing forgets half a word, which drawing bits had left alone
    generator.state = {**state, "has_uint32": kept["has_uint32"], "uinteger": kept["uinteger"]}


@njit(cache=True)
def spread(theta, coords, bits, radius, scale, lower, upper, ups, downs, saved):  # type: ignore[no-untyped-def]
    """Lay out two points inside the bounds, keep the entries of theta and go to the first one."""
    bounded = len(lower) > 0
    for i in range(len(coords)):
        k = coords[i]
        sign = 1.0 if (bits[i >> 3] >> (7 - (i & 7))) & 1 else -1.0
        here, move = theta[k], radius * scale[k] * sign
        saved[i] = here
        if bounded:
            reach, low, high = abs(move), lower[k], upper[k]
            here = min(max(here, min(low + reach, high)), max(high - reach, low))
            ups[i] = min(max(here + move, low), high)
            downs[i] = min(max(here - move, low), high)
        else:
            ups[i], downs[i] = here + move, here - move
    for i in range(len(coords)):  # a second loop, for a coordinate may be drawn twice
        theta[coords[i]] = ups[i]


@njit(cache=True)
def put(theta, coords, entries):  # type: ignore[no-untyped-def]
    """Set entries of theta."""
    for i in range(len(coords)):
        theta[coords[i]] = entries[i]


@njit(cache=True, error_model="numpy")
def differences(coords, change, ups, downs, rate, scale, factors, grads, rates):  # type: ignore[no-untyped-def]
    """Turn the difference of the two values into gradients, and lay out the step sizes."""
    for i in range(len(coords)):
        width = ups[i] - downs[i]
        grads[i] = change / width if width != 0.0 else 0.0
        rates[i] = rate * scale[coords[i]]
    for i in range(len(factors)):
        rates[i] *= factors[i]


def make_apply(kernel: Any) -> Any:
    """Return the loop of one kernel over distinct or repeated coordinates.

    With the rule's numbers and rows as tuples it is twice as fast as :func:`scgd.steps.apply_block`
    and gives the same bits.
    """

    def apply(coords, grads, rates, hyper, slots, theta, lower, upper):  # type: ignore[no-untyped-def]
        for i in range(len(coords)):
            k = coords[i]
            moved = theta[k] - kernel(k, grads[i], rates[i], hyper, slots)
            theta[k] = min(max(moved, lower[k]), upper[k]) if len(lower) > 0 else moved

    return njit(cache=True, error_model="numpy")(apply)


APPLY = {
    steps.SGD.code: make_apply(steps.compiled_sgd),
    steps.Momentum.code: make_apply(steps.compiled_momentum),
    steps.RMS.code: make_apply(steps.compiled_rms),
    steps.Adam.code: make_apply(steps.compiled_adam),
    steps.Learned.code: make_apply(steps.compiled_learned),
    steps.Wiener.code: make_apply(steps.compiled_wiener),
}
