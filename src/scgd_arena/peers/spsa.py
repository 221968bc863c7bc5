"""Simultaneous perturbation with Adam: untuned, and tuned on instances nobody is judged on."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from scgd.compiling import njit
from scgd.typing import Floats
from scgd_arena.oracle import Method, Oracle
from scgd_arena.problems import Task

__all__ = ["spsa", "spsa_adam", "tune"]

TUNED_ON = (6, 7, 8)
"""Instances for tuning: neither those of the design nor those of the confirmation."""
RATES = (0.003, 0.01, 0.03, 0.1)
RADII = (0.01, 0.05, 0.2)


@njit(cache=True)
def adam_step(x, mean, square, signs, slope, rate, beta2, t):  # type: ignore[no-untyped-def]
    """Move along Adam's direction for the gradient slope * signs."""
    correct1, correct2 = 1.0 - 0.9**t, 1.0 - beta2**t
    for k in range(len(x)):
        grad = slope * signs[k]
        mean[k] += 0.1 * (grad - mean[k])
        square[k] += (1.0 - beta2) * (grad * grad - square[k])
        if square[k] > 0.0:
            x[k] -= rate * (mean[k] / correct1) / np.sqrt(square[k] / correct2)


def spsa_adam(oracle: Oracle, seed: int, rate: float, radius: float, beta2: float = 0.99) -> Floats:
    """Run SPSA with common samples, Adam and linear decay."""
    x = oracle.task.x0.copy()
    mean, square = np.zeros_like(x), np.zeros_like(x)
    rng = np.random.default_rng([seed, 9])
    n_steps = oracle.budget // 2
    for t in range(n_steps):
        signs = rng.integers(0, 2, x.size) * 2.0 - 1.0
        rows = oracle.rows()
        change = oracle.at(x + radius * signs, rows) - oracle.at(x - radius * signs, rows)
        decayed = rate * (1 - t / n_steps)
        adam_step(x, mean, square, signs, change / (2 * radius), decayed, beta2, t + 1.0)
    return x


def spsa(rate: float, radius: float) -> Method:
    """Return SPSA with Adam; rate and radius are in units of the box's width."""

    def run(oracle: Oracle, seed: int) -> Floats:
        width = oracle.task.width
        return oracle.answer(spsa_adam(oracle, seed, rate * width, radius * width))

    return run


def tune(build: Callable[[int], Task], budget: int) -> tuple[float, float]:
    """Return the rate and radius that are best on the tuning instances."""
    tasks = {instance: build(instance) for instance in TUNED_ON}

    def quality(setting: tuple[float, float]) -> float:
        runs = ((task, spsa(*setting)(Oracle(task, budget, i), i)) for i, task in tasks.items())
        gap = float(np.median([task.gap(x) for task, x in runs]))
        return gap if np.isfinite(gap) else np.inf

    return min(itertools.product(RATES, RADII), key=quality)
