"""One BLAS thread against one per core, for the quadratic that is fitted under noise.

``python benchmarks/bench_blas.py`` fits 300 points of 20 coordinates with the threads that BLAS
takes by itself and with one (what the library does), first alone, then beside as many busy
processes as there are cores, and prints seconds and their ratio: the least of three fits with one
thread, a single fit with many, which may take half a minute.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np

from scgd.blas import one_thread
from scgd.strategies.regression import fit

BUSY = """
import os, sys
for _ in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        break
while True:
    pass
"""
"""Somebody else's work: a session of its own, to which the scheduler gives a share of its own."""


def least(threads: str, repeats: int = 3) -> float:
    """Return the least seconds of some fits; ``fit`` is bare, so that threads are what is told."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((300, 20))
    values = np.sum((points - 0.5) ** 2, axis=1) + 0.01 * rng.standard_normal(300)
    bare, seconds = fit.__wrapped__, []  # type: ignore[attr-defined]
    for _ in range(repeats):
        began = time.perf_counter()
        if threads == "one":
            with one_thread():
                bare(points, values, 0.01)
        else:
            bare(points, values, 0.01)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def main() -> None:
    for beside in (0, os.cpu_count() or 1):
        command = [sys.executable, "-c", BUSY if beside else "pass", str(beside)]
        others = subprocess.Popen(command, start_new_session=True)
        try:
            one, many = least("one"), least("many", 1)
        finally:
            if beside:
                os.killpg(others.pid, signal.SIGKILL)
            others.wait()
        print(
            f"{beside} busy processes: one {one:.3f} s, many {many:.3f} s, ratio {many / one:.1f}"
        )


if __name__ == "__main__":
    main()
