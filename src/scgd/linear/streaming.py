r"""One damped pass over the coordinates with a chunk of data: what ``partial_fit`` does.

Steps are :math:`t^{-0.7}` of the way to the least point of a parabola above the chunk's risk whose
curvature along *k* is never below the mean over all chunks so far: a chunk of one row, whose entry
may be tiny, cannot throw a coefficient away.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scgd.linear.losses import HINGE, curvature
from scgd.linear.sweeps import curvatures, sweep
from scgd.linear.task import Task
from scgd.policies import Policy
from scgd.random import stream
from scgd.typing import Floats

__all__ = ["Stream"]

FORGETTING = 0.7
ROUNDING = 0.1
"""Width over which the hinge is rounded, whose plain curvature is infinite."""


@dataclass
class Stream:
    """What is remembered between chunks: their number, the squares of columns, the policies."""

    n_chunks: int = 0
    weight: float = 0.0
    squares: Floats = field(default_factory=lambda: np.empty(0))
    states: dict[int, Any] = field(default_factory=dict)

    def begin_chunk(self, task: Task, weight: float) -> None:
        """Count a chunk, and add the squares of its columns to their mean."""
        p = task.design.n_features
        chunk, products = np.empty(p), np.empty(p)
        curvatures(*task.design.columns, np.zeros(p), task.shares, np.arange(p), chunk, products)
        if len(self.squares) != p:
            self.squares = np.zeros(p)
        self.n_chunks += 1
        self.weight += weight
        self.squares += (chunk - self.squares) * (weight / self.weight)
        self.chunk = chunk

    def step(
        self, task: Task, place: int, policy: Policy, w: Floats, b: float
    ) -> tuple[Floats, float]:
        """Make a pass for the target at ``place``; return new coefficients and intercept."""
        p = len(w)
        bound = curvature(task.loss, task.epsilon)
        slopes = task.terms(task.design.margins(w) + b)[1]
        curve, damping = bound * task.shares, self.n_chunks**-FORGETTING
        shift = -damping * float(slopes.sum()) / bound if task.intercept else 0.0
        slopes = slopes + shift * curve
        bends = bound * np.maximum(self.squares, self.chunk)
        if place not in self.states:
            self.states[place] = policy.init(p, True)
        words = stream(np.random.SeedSequence([task.seed, self.n_chunks]))
        coords, probs, grads = np.empty(p, np.int64), np.empty(p), np.empty(p)
        policy.draw(self.states[place], words, coords, probs, 1, True)
        w = w.copy()
        sweep(
            *task.design.columns, np.zeros(p), slopes, curve, bends, np.zeros(p), np.empty(0), w,
            np.arange(p), coords, grads, task.l2, task.l1, 0.0, 0.0, damping,
        )  # fmt: skip
        policy.update(self.states[place], coords, probs, grads, 0.0)
        return w, b + shift


def smooth_width(loss: int, epsilon: float) -> float:
    """Return the epsilon with which a loss streams."""
    return ROUNDING if loss == HINGE else epsilon
