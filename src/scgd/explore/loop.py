"""What all loops have in common: how the function is called, and when to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scgd.course import CHUNK
from scgd.optimizer import Optimizer
from scgd.typing import Floats

__all__ = ["Loop"]


class Loop:
    """Advance an optimizer by many steps under the recipe that was in force when it was made.

    Parameters
    ----------
    opt
        The optimizer to advance.
    fun, args
        The user's function and its further arguments.
    """

    def __init__(self, opt: Optimizer, fun: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.opt, self.fun, self.args = opt, fun, args
        self.bounded = opt.problem.lower.size > 0
        self.sampled = opt.sampling.controlled
        self.extra = args
        self.call = fun if not args and not self.sampled else self._call
        self.cost = opt.step_cost

    def _call(self, view: Floats) -> Any:
        """Evaluate with further arguments."""
        return self.fun(view, *self.extra)

    def run(self, n_steps: int, *, stop_at_phase: bool) -> None:
        """Run so many steps, or to the end of a phase (where wanted) or of a plan's leg."""
        opt, sampler, left = self.opt, self.opt.sampler, self._affordable(n_steps)
        if left <= 0:
            opt.end_leg()
        while left > 0:
            place = opt.prepare()
            room = (sampler.n_draws - sampler.position) // sampler.block_size
            n = min(left, self._part(CHUNK - place, room, stop_at_phase))
            self._run_part(place, n)
            left -= n
            if opt.end_leg() or (stop_at_phase and n == room):
                return

    def _part(self, chunk: int, room: int, stop_at_phase: bool) -> int:
        """Return the steps to run at a time, given those left in the chunk and in the phase."""
        return min(chunk, room)

    def _affordable(self, n_steps: int) -> int:
        """Return how many steps the budget and the leg pay for, at most ``n_steps``."""
        opt = self.opt
        ends = [] if opt.plan is None or opt.leg_end is None else [opt.leg_end - opt.nfev]
        if opt.max_evals is not None:
            ends.append(int(opt.remaining))
        return min([n_steps, *(end // self.cost for end in ends)])

    def _run_part(self, place: int, n: int) -> None:
        """Run ``n`` steps of one chunk, in place; leave a consistent state whatever happens."""
        for i in range(place, place + n):
            self._step(i)

    def _step(self, place: int) -> None:
        """Take the step at this place of the chunk."""
        raise NotImplementedError
