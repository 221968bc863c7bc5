"""Random direct search, for functions that are rough at every scale."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scgd.strategies.box import Box
from scgd.typing import Floats

__all__ = ["random_direct_search"]

LONGER, SHORTER = 1.3, 0.5
"""What the step is multiplied by after a success, and after as many failures in a row as there are
coordinates."""
SHORTEST = 1e-4
"""The step at which it is over, in units of the first."""


def random_direct_search(
    x: Floats, f: float, length: float, rng: np.random.Generator, box: Box
) -> Generator[Any, Any, float]:
    """Go along random directions, forwards or backwards, to any point that is better.

    Where f is rough at every scale and has no trend, neither models nor populations learn anything;
    but from most points a step leads down along some direction. Return the value reached.
    """
    size, n_failed = length, 0
    while size > SHORTEST * length:
        step = rng.standard_normal(x.size)
        step *= size / float(np.linalg.norm(step))
        n_failed += 1
        for move in (step, -step):
            there = box.reflect(x + move)
            value = yield there
            if value < f:
                x, f, size, n_failed = there, value, LONGER * size, 0
                break
        if n_failed >= x.size:
            size, n_failed = SHORTER * size, 0
    return f
