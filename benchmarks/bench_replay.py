"""What it costs to take up a strategy: its values are sent again, which asks the function nothing.

``python benchmarks/bench_replay.py [evaluations]``: processor time of a run of p = 10 and of reading it
back from its checkpoint, and the size of the file. SCGD keeps arrays instead, so it has nothing to send.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import scgd

P = 10
CENTRE = np.linspace(-1.0, 1.0, P)


def bowl(x):
    return float(np.sum((x - CENTRE) ** 2))


def noisy():
    rng = np.random.default_rng(0)
    return lambda x: float(np.sum((x - CENTRE) ** 2)) + 0.5 * rng.standard_normal()


def hill_climbing(problem, budget, rng):
    """Ten steps at a time from the best point: what a generator of the user's own may do."""
    x, best, length = problem.x0, (yield problem.x0), 1.0
    while budget.left >= 10:
        points = x + length * rng.standard_normal((10, P))
        values = yield points
        k = values.argmin()
        if values[k] < best:
            x, best, length = points[k], values[k], 1.5 * length
        else:
            length /= 1.2


CASES = {
    "random, one point at a time": ("random", lambda: bowl, {}),
    "a strategy of your own, ten at a time": (hill_climbing, lambda: bowl, {}),
    "auto, deterministic": ("auto", lambda: bowl, {"tol": 0.0}),
    "auto, noisy": ("auto", noisy, {}),
    "musketeer (arrays, no replay)": ("musketeer", lambda: bowl, {}),
}


def seconds(method, fun, n, file, more):
    begin = time.process_time()
    scgd.minimize(fun, np.zeros(P), method=method, max_evals=n, seed=0, checkpoint=file, **more)
    return time.process_time() - begin


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{n:,} evaluations, p = {P}; seconds of the processor\n")
    print("| method | run | taken up again | us per value | checkpoint |\n|---|---|---|---|---|")
    for name, (method, make, more) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "run.npz")
            run = seconds(method, make(), n, file, more)
            again = min(seconds(method, make(), n, file, more) for _ in range(2))
            size = file.stat().st_size / 1e6
        print(f"| {name} | {run:.1f} | {again:.2f} | {1e6 * again / n:.1f} | {size:.2f} MB |")


if __name__ == "__main__":
    main()
