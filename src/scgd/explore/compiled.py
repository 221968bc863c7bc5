"""One coordinate at a time, for functions compiled by numba: nothing comes back to Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from scgd.compiling import njit
from scgd.estimators import sides
from scgd.explore.single import Explorer, moved
from scgd.optimizer import Optimizer
from scgd.policies import law as laws
from scgd.steps import compiled
from scgd.typing import Floats, Ints

__all__ = ["CompiledExplorer"]


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

    central: bool
    skip: bool
    divisor: float  # of the importance factor 1 / (divisor * d_k); 0 for none
    mixed: bool  # whether coordinates have scales of their own


class CompiledExplorer(Explorer):
    """The compiled loop: draws, evaluates, moves and learns without coming back to Python."""

    def __init__(self, opt: Optimizer, fun: Callable[..., Any], args: tuple[Any, ...]) -> None:
        super().__init__(opt, fun, args)
        sampler, recipe, weights = opt.sampler, opt.recipe, opt.importance_weights
        self.work = Workspace(
            opt.theta, opt.problem.lower, opt.problem.upper, sampler.coords, sampler.probs,
            sampler.grads, opt.rate_scale, opt.radius_scale,
            np.empty(0) if weights is None else weights, opt.hyper, opt.slots,
        )  # fmt: skip
        divisors = {"inverse": 1.0, "relative": float(opt.n_coords)}
        kind = recipe.importance
        divisor = divisors[kind] if isinstance(kind, str) else 0.0
        skip = opt.on_nonfinite == "skip"
        self.codes = Codes(self.central, skip, divisor, not opt.uniform_scale)
        self.loop = run_plain if opt.sampling.sample is None else run_sampled

    def _part(self, chunk: int, room: int, stop_at_phase: bool) -> int:
        """Return the steps to run at a time: phases end inside the compiled code."""
        return min(chunk, room) if stop_at_phase else chunk

    def _run_part(self, place: int, n: int) -> None:
        opt, sampler = self.opt, self.opt.sampler
        work = self.work._replace(rate_scale=opt.rate_scale, radius_scale=opt.radius_scale)
        codes = self.codes._replace(mixed=not opt.uniform_scale)
        n_phases = n // sampler.n_draws + 2
        mixings = np.array([sampler.mixing(sampler.n_phases + 1 + i) for i in range(n_phases)])
        rows = np.empty((n, 0), np.int64) if opt.rows is None else opt.rows[place : place + n]
        steps = opt.rates[place : place + n], opt.radii[place : place + n]
        seen, cursor = np.empty(n), np.zeros(6)
        try:
            self.loop(
                self.fun, self.args, compiled(opt.recipe.step), work, codes, sampler.state,
                sampler.stream, sampler.position, mixings, *steps, rows, seen, cursor,
            )  # fmt: skip
        finally:  # the function may have raised: count what was done, put x back
            done = int(cursor[0])
            self._account(seen[:done])
            k = sampler.coords[sampler.position]
            if done < n:
                opt.theta[k] = cursor[1]
        if done < n:
            low, high, down, up = cursor[2:].tolist()
            opt.skip((low, high), opt.nfev, partial(moved, opt.theta, k, (down, up)))

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
        fun,
        args,
        kernel,
        work,
        codes,
        law,
        stream,
        position,
        mixings,
        rates,
        radii,
        rows,
        seen,
        cursor,
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
                moved = entry - kernel(k, grad, rate, work.hyper, work.slots)
                if bounded:
                    moved = min(max(moved, work.lower[k]), work.upper[k])
                theta[k] = moved
                seen[i] = low + (0.5 * change if codes.central else 0.0)
            work.grads[position] = grad * work.rate_scale[k] if codes.mixed else grad
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
