"""Joint moves of all drawn coordinates along random signs, for functions in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scgd.compiling import njit
from scgd.estimators import NARROWEST, random_bits
from scgd.explore.loop import Loop
from scgd.optimizer import Optimizer
from scgd.problem import as_scalar
from scgd.steps import specialised
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
        self.none = np.empty(0)
        rule = opt.recipe.step
        self.move, self.hyper, self.slots = (
            specialised(make_move, rule),
            rule.hyper,
            tuple(opt.slots),
        )

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
                put(opt.theta, coords, self.saved)
                opt.skip((first, second), opt.nfev, lambda j: self._point(coords, j))
        except BaseException:  # the step will be made again, along the same direction
            put(opt.theta, coords, self.saved)
            rewind(opt.direction_rng, bits)
            raise
        if fine:
            factors = opt.importance(coords, sampler.probs[here])
            self.move(
                coords, change, self.ups, self.downs, self.saved, opt.rates[place], opt.rate_scale,
                self.none if factors is None else factors, grads, self.hyper, self.slots,
                opt.theta, problem.lower, problem.upper,
            )  # fmt: skip
            grads[:] = opt.in_units(grads, coords)
        else:
            grads[:] = 0.0
        opt.observations[sampler.position // size] = (first + second) / 2.0 if fine else np.nan
        opt.t += 1
        opt.nfev += 2
        if sampler.advance(size):
            opt.end_phase()

    def _values(self, coords: Ints) -> tuple[float, float]:
        """Return f at the two points; theta is left at the second."""
        call, view = self.call, self.opt.view
        first = call(view)
        put(self.opt.theta, coords, self.downs)
        second = call(view)
        first = first if first.__class__ is float else as_scalar(first)
        second = second if second.__class__ is float else as_scalar(second)
        return first, second

    def _point(self, coords: Ints, j: int) -> Floats:
        """Return the point of the j-th value."""
        x: Floats = self.opt.theta.copy()
        x[coords] = self.downs if j else self.ups
        return x


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
        sign = 2.0 * ((bits[i >> 3] >> (7 - (i & 7))) & 1) - 1.0  # no branch to mispredict
        here, move = theta[k], radius * scale[k] * sign
        saved[i] = here
        if bounded:
            reach, low, high = abs(move), lower[k], upper[k]
            room = min(here - low, high - here)
            reach = min(reach, max(room, NARROWEST * reach))
            move = reach * sign
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


def make_move(kernel: Any) -> Any:
    """Return the loop of one kernel over distinct or repeated coordinates.

    It puts theta back, turns the difference of the two values into gradients and moves. With the
    rule's numbers and rows as tuples it is twice as fast as :func:`scgd.steps.applier` and
    gives the same bits.
    """

    def move(  # type: ignore[no-untyped-def]
        coords, change, ups, downs, saved, rate, scale, factors, grads, hyper, slots, theta,
        lower, upper,
    ):  # fmt: skip
        put(theta, coords, saved)
        for i in range(len(coords)):
            k, width = coords[i], ups[i] - downs[i]
            grad = change / width if width != 0.0 else 0.0
            grads[i] = grad
            own = rate * scale[k]
            if len(factors) > 0:
                own *= factors[i]
            moved = theta[k] - kernel(k, grad, own, hyper, slots)
            theta[k] = min(max(moved, lower[k]), upper[k]) if len(lower) > 0 else moved

    return move
