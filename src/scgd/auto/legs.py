"""What a leg changes, and whether it went down."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.result import History
from scgd.typing import Floats

__all__ = ["descending", "restore", "snapshot"]

Optimizer = Any
FEWEST, MOST = 4, 50


def snapshot(opt: Optimizer) -> dict[str, Any]:
    """Return a copy of what a leg changes."""
    return {
        "theta": opt.theta.copy(),
        "slots": opt.slots.copy(),
        "sampler": opt.sampler.state_dict(),
    }


def restore(opt: Optimizer, saved: dict[str, Any]) -> None:
    """Put a copy back; random streams go on, so that the leg is not repeated."""
    stream = opt.sampler.stream.copy()
    opt.theta[...] = saved["theta"]
    opt.slots[...] = saved["slots"]
    opt.sampler.load_state_dict(saved["sampler"])
    opt.sampler.stream[...] = stream


def descending(history: History, began: int) -> tuple[bool, Floats]:
    """Tell whether the last observations of a leg lie below its first ones; return the first ones.

    A fifth of the leg each, at most 50; what was seen first, near the point where it began, is
    the better of the two unless the difference is at least one standard error.
    """
    record = history.arrays()
    seen = record["fun"][record["nfev"] > began]
    n = min(len(seen) // 5, MOST)
    if n < FEWEST:
        return False, seen[:1]
    first, last = seen[:n], seen[-n:]
    error = np.sqrt((first.var(ddof=1) + last.var(ddof=1)) / n)
    return bool(last.mean() < first.mean() - error), first
