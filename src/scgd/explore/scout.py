"""Questions of a plan's stages, for functions in Python."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np

from scgd.auto.stage import Question, Stage
from scgd.explore.loop import Loop
from scgd.explore.single import moved
from scgd.optimizer import Optimizer
from scgd.problem import as_scalar
from scgd.typing import Floats

__all__ = ["Scout"]


class Scout(Loop):
    """Let stages ask; questions about single entries are answered in place, without an object each.

    Parameters
    ----------
    opt, fun, args
        As for all loops.
    evaluate
        Answers all other questions.
    """

    def __init__(
        self, opt: Optimizer, fun: Callable[..., Any], args: tuple[Any, ...], evaluate: Any
    ) -> None:
        super().__init__(opt, fun, args)
        self.evaluate = evaluate
        self.x: Any = opt.theta.data

    def explore(self, seconds: float) -> None:
        """Let the stage ask until it reports, ends, or has asked for a while."""
        opt, last = self.opt, time.perf_counter() + seconds
        stage, reports = opt.stage, opt.n_reports
        while opt.stage is stage and opt.n_reports == reports and not opt.done:
            assert stage is not None
            if self.sampled or opt.pending is not None or not self._ask(stage):
                opt.scout(self.evaluate)
            if time.perf_counter() > last:
                return

    def _ask(self, stage: Stage) -> bool:
        """Answer the next question, if it is about single entries."""
        opt, generator = self.opt, self.opt.direction_rng.bit_generator
        before = generator.state if stage.draws else None
        try:
            question = stage.question(opt.view, opt.problem, opt.direction_rng)
            if question is None:
                return False
            values = self._values(question)
        except BaseException:  # it will be asked again, from the same random numbers
            if before is not None:
                generator.state = before
            raise
        opt.nfev += len(question[0])
        opt.learn_stage(stage, values)
        return True

    def _values(self, question: Question) -> Floats | None:
        """Return f with each of the entries set in turn; None if one value is not finite."""
        call, view, x = self.call, self.opt.view, self.x
        assert question is not None
        coords, entries = question
        values = []
        for k, entry in zip(coords, entries, strict=True):
            kept = x[k]
            try:
                x[k] = entry
                value = call(view)
            finally:
                x[k] = kept
            values.append(value if value.__class__ is float else as_scalar(value))
        total = sum(values)
        if total - total == 0.0 or all(map(isfinite, values)):
            return np.array(values)
        opt = self.opt
        opt.skip(values, opt.nfev, lambda j: moved(opt.theta, coords[j], entries, j))
        return None
