"""Strides along random directions, taken wherever f falls: for ripples upon ripples."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from scgd.searches.arms.box import Box
from scgd.typing import Floats

__all__ = ["take_strides"]

LONGER, SHORTER = 1.3, 0.5
"""What a stride is multiplied by after one that paid, and after as many directions in a row as
there are coordinates that did not."""
SHORTEST = 1e-4
"""The stride at which it is over, in units of the first."""


def take_strides(
    x: Floats, f: float, length: float, rng: np.random.Generator, box: Box
) -> Generator[Any, Any, float]:
    """Go along random directions, forwards or backwards, to any point that is better.

    Where f is rough at every scale and has no trend, neither models nor populations learn anything;
    but from most points a stride leads down along some direction. Return the value reached.
    """
    stride, n_failed = length, 0
    while stride > SHORTEST * length:
        step = rng.standard_normal(x.size)
        step *= stride / float(np.linalg.norm(step))
        n_failed += 1
        for move in (step, -step):
            there = box.reflect(x + move)
            value = yield there
            if value < f:
                x, f, stride, n_failed = there, value, LONGER * stride, 0
                break
        if n_failed >= x.size:
            stride, n_failed = SHORTER * stride, 0
    return f
