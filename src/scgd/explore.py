"""Loops that run many single-coordinate steps without an object per step.

Two bodies for the same arithmetic: a Python loop for functions written in Python, which pokes one
entry of x, evaluates and puts it back, and a compiled loop for functions compiled by numba, which
also draws and learns inside. Both work on the optimizer's own buffers, leave it as ``ask`` and
``tell`` would, bit for bit, and restore x if the function raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.core.registry import CPUDispatcher

from scgd.compiling import njit
from scgd.course import CHUNK
from scgd.estimators import CentralDifference, ForwardDifference, sides
from scgd.optimizer import Optimizer, as_scalar
from scgd.policies import LawPolicy
from scgd.policies import law as laws
from scgd.steps import STEPS, move
from scgd.typing import Floats, Ints

__all__ = ["CompiledExplorer", "Explorer", "explorer"]

NAN = float("nan")


def explorer(opt: Optimizer, fun: Callable[..., Any], args: tuple[Any, ...]) -> Explorer | None:
    """Return the fastest loop for these parts; None when steps are not single differences."""
    recipe = opt.recipe
    single = (
        opt.sampler.block_size == 1
        and not opt.policy.needs_gradient
        and not recipe.average
        and not recipe.adaptive
        and type(recipe.step) in STEPS.values()
        and isinstance(recipe.estimator, ForwardDifference | CentralDifference)
    )
    if not single:
        return None
    compiled = (
        isinstance(fun, CPUDispatcher)
        and isinstance(opt.policy, LawPolicy)
        and not callable(opt.sampling.sample)
        and not opt.policy.paced
        and not recipe.step.paced
    )
    return (CompiledExplorer if compiled else Explorer)(opt, fun, args)


class Explorer:
    """The Python loop: poke one entry of x, evaluate, put it back, move.

    Parameters
    ----------
    opt
        The optimizer to advance.
    fun, args
        The user's function and its further arguments.
    """

    def __init__(self, opt: Optimizer, fun: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.opt, self.fun, self.args = opt, fun, args
        self.central = isinstance(opt.recipe.estimator, CentralDifference)
        self.x = memoryview(opt.theta)
        self.grads = memoryview(opt.sampler.grads)
        self.seen = memoryview(opt.observations)
        self.slots = tuple(memoryview(slot) for slot in opt.slots)
        self.lower, self.upper = memoryview(opt.problem.lower), memoryview(opt.problem.upper)
        self.bounded = len(self.lower) > 0
        self.sampled = opt.sampling.controlled
        self.extra = args
        self.call = fun if not args and not self.sampled else self._call
        self.share = 0.5 if self.central else 0.0  # the observation is low + share * (high - low)

    def _call(self, view: Floats) -> Any:
        """Evaluate with further arguments."""
        return self.fun(view, *self.extra)

    def run(self, n_steps: int, *, stop_at_phase: bool) -> None:
        """Run so many steps, or to the end of the phase if that comes first and is wanted."""
        opt, sampler, left = self.opt, self.opt.sampler, self._affordable(n_steps)
        while left > 0:
            place, room = opt.prepare(), sampler.n_draws - sampler.position
            n = min(left, CHUNK - place, room)
            self._run_part(place, n)
            left -= n
            if stop_at_phase and n == room:
                return

    def _affordable(self, n_steps: int) -> int:
        """Return how many steps the budget pays for, at most ``n_steps``."""
        return n_steps if self.opt.max_evals is None else min(n_steps, int(self.opt.remaining) // 2)

    def _run_part(self, place: int, n: int) -> None:
        """Run ``n`` steps of one phase, in place; leave a consistent state whatever happens."""
        opt, sampler = self.opt, self.opt.sampler
        here = done = sampler.position
        call, view, x, grads, seen = self.call, opt.view, self.x, self.grads, self.seen
        kernel, hyper, slots = opt.recipe.step.kernel, opt.recipe.step.hyper, self.slots
        central, share, bounded, sampled = self.central, self.share, self.bounded, self.sampled
        special = bounded or sampled
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
                    report_nonfinite(opt, (low, high), (down, up), k, opt.nfev + 2 * (done - here))
                    grad, seen[done] = 0.0, NAN
                x[k] = entry
                grads[done] = grad
                done += 1
        finally:
            if k >= 0:
                x[k] = entry
            opt.t += done - here
            opt.nfev += 2 * (done - here)
            if sampler.advance(done - here):
                opt.end_phase()


def report_nonfinite(
    opt: Optimizer, values: tuple[float, float], entries: tuple[float, float], k: int, nfev: int
) -> None:
    """Raise for the first of two values that is not finite, or count the step as skipped."""
    if opt.on_nonfinite == "skip":
        opt.n_skipped += 1
        return
    which = 1 if np.isfinite(values[0]) else 0
    x = opt.theta.copy()
    x[k] = entries[which]
    raise opt.nonfinite_error(values[which], nfev + which, x)


class Workspace(NamedTuple):
    """The arrays that the compiled loop reads and writes: the optimizer's own."""

    theta: Floats
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


class Codes(NamedTuple):
    """The choices that the compiled loop branches on."""

    step: int
    central: bool
    skip: bool
    divisor: float  # of the importance factor 1 / (divisor * d_k); 0 for none


class CompiledExplorer(Explorer):
    """The compiled loop: draws, evaluates, moves and learns without coming back to Python."""

    def __init__(self, opt: Optimizer, fun: Callable[..., Any], args: tuple[Any, ...]) -> None:
        super().__init__(opt, fun, args)
        sampler, recipe, weights = opt.sampler, opt.recipe, opt.importance_weights
        self.arrays = (opt.theta, opt.problem.lower, opt.problem.upper, sampler.coords)
        self.arrays += (sampler.probs, sampler.grads)
        self.rest = (np.empty(0) if weights is None else weights, opt.hyper, opt.slots)
        divisors = {"inverse": 1.0, "relative": float(opt.n_coords)}
        kind = recipe.importance
        divisor = divisors[kind] if isinstance(kind, str) else 0.0
        self.codes = Codes(recipe.step.code, self.central, opt.on_nonfinite == "skip", divisor)
        self.loop = run_plain if opt.sampling.sample is None else run_sampled

    def run(self, n_steps: int, *, stop_at_phase: bool) -> None:
        """Run so many steps, or to the end of the phase if that comes first and is wanted."""
        opt, sampler, left = self.opt, self.opt.sampler, self._affordable(n_steps)
        while left > 0:
            place, room = opt.prepare(), sampler.n_draws - sampler.position
            n = min(left, CHUNK - place, room if stop_at_phase else CHUNK)
            self._run_chunk(place, n)
            left -= n
            if stop_at_phase and n == room:
                return

    def _run_chunk(self, place: int, n: int) -> None:
        opt, sampler = self.opt, self.opt.sampler
        work = Workspace(*self.arrays, opt.rate_scale, opt.radius_scale, *self.rest)
        n_phases = n // sampler.n_draws + 2
        mixings = np.array([sampler.mixing(sampler.n_phases + 1 + i) for i in range(n_phases)])
        rows = np.empty((n, 0), np.int64) if opt.rows is None else opt.rows[place : place + n]
        steps = opt.rates[place : place + n], opt.radii[place : place + n]
        seen, cursor = np.empty(n), np.zeros(6)
        try:
            self.loop(
                self.fun, self.args, work, self.codes, sampler.state, sampler.stream,
                sampler.position, mixings, *steps, rows, seen, cursor,
            )  # fmt: skip
        finally:  # the function may have raised: count what was done, put x back
            done = int(cursor[0])
            self._account(seen[:done])
            k = sampler.coords[sampler.position]
            if done < n:
                opt.theta[k] = cursor[1]
        if done < n:
            low, high, down, up = cursor[2:].tolist()
            report_nonfinite(opt, (low, high), (down, up), k, opt.nfev)

    def _account(self, seen: Floats) -> None:
        """Count the steps phase by phase; the loop has drawn and learnt already."""
        opt, sampler, done = self.opt, self.opt.sampler, 0
        opt.n_skipped += int(np.isnan(seen).sum())
        while done < len(seen):
            n = min(sampler.n_draws - sampler.position, len(seen) - done)
            opt.observations[sampler.position : sampler.position + n] = seen[done : done + n]
            done += n
            opt.t += n
            opt.nfev += 2 * n
            sampler.position += n
            if sampler.position == sampler.n_draws:
                sampler.position = 0
                sampler.n_phases += 1
                opt.end_phase()


def make_runner(sampled: bool) -> Any:
    """Return the compiled loop for functions with or without a sample argument."""

    def run(  # type: ignore[no-untyped-def]
        fun, args, work, codes, law, stream, position, mixings, rates, radii, rows, seen, cursor
    ):
        """Run ``len(seen)`` steps; ``cursor`` tells where and why it stopped before."""
        theta, bounded = work.theta, len(work.lower) > 0
        n_draws, n_phases = len(work.coords), 0
        for i in range(len(seen)):
            k = work.coords[position]
            entry, h = theta[k], radii[i] * work.radius_scale[k]
            up, down = entry + h, entry - h if codes.central else entry
            if bounded:
                down, up = sides(codes.central, entry, h, work.lower[k], work.upper[k])
            cursor[0], cursor[1] = i, entry
            theta[k] = down
            low = fun(theta, rows[i], *args) if sampled else fun(theta, *args)
            theta[k] = up
            high = fun(theta, rows[i], *args) if sampled else fun(theta, *args)
            theta[k] = entry
            width, change = up - down, high - low
            grad = change / width if width != 0.0 else change * 0.0
            if not np.isfinite(grad):
                if not codes.skip:
                    cursor[2:] = (low, high, down, up)
                    return
                grad, seen[i] = 0.0, np.nan
            else:
                rate = rates[i] * work.rate_scale[k]
                if codes.divisor > 0.0:
                    rate *= 1.0 / (codes.divisor * work.probs[position])
                elif len(work.importance) > 0:
                    rate *= work.importance[k]
                moved = entry - move(codes.step, k, grad, rate, work.hyper, work.slots)
                if bounded:
                    moved = min(max(moved, work.lower[k]), work.upper[k])
                theta[k] = moved
                seen[i] = low + (0.5 * change if codes.central else 0.0)
            work.grads[position] = grad
            position += 1
            if position == n_draws:
                laws.update(law, work.coords, work.probs, work.grads, mixings[n_phases])
                laws.draw(law, stream, work.coords, work.probs)
                n_phases += 1
                position = 0
        cursor[0] = len(seen)

    return njit(error_model="numpy")(run)


run_plain = make_runner(sampled=False)
run_sampled = make_runner(sampled=True)
