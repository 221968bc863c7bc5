"""The inverse Hessian of a limited memory: pairs of steps and changes of the gradient."""

from __future__ import annotations

import numpy as np

from scgd.typing import Floats


def bends(step: Floats, change: Floats) -> bool:
    """Tell whether the gradient rose along a step, by more than rounding."""
    along = float(step @ change)
    return along > 0 and along > 1e-10 * float(np.linalg.norm(step) * np.linalg.norm(change))


def two_loop(g: Floats, steps: list[Floats], changes: list[Floats], gamma: float) -> Floats:
    """Return the inverse Hessian of the pairs times a vector (Nocedal, 1980)."""
    q, factors = g.copy(), []
    for step, change in zip(reversed(steps), reversed(changes), strict=True):
        rho = 1 / float(step @ change)
        alpha = rho * float(step @ q)
        q -= alpha * change
        factors.append((alpha, rho))
    q *= gamma
    for step, change, (alpha, rho) in zip(steps, changes, reversed(factors), strict=True):
        q += step * (alpha - rho * float(change @ q))
    return q
