"""Wall time per evaluation of ``auto`` on cheap functions of 1,000 variables, against peers.

All methods plan for the same budget; NGOpt, which is slow, is stopped by the clock. pycma (sep) and
NGOpt get one fresh sample per point where the function has samples. Minima over round-robin
repeats, f included, in one run on one machine.
Run: python benchmarks/bench_auto.py [--quick]
"""

import argparse
import time
import warnings
from dataclasses import replace

import numpy as np

from scgd.compare.arena import TimedOracle
from scgd.compare.peers import METHODS
from scgd.compare.problems import build, ridge

BUDGET = 4000
PEERS = ("cma-sep", "ngopt")


def unsampled(task):
    """Return the task for methods that see fresh samples only."""

    def make(seed):
        inner, rng = task.make(seed), np.random.default_rng(seed)
        return lambda x: inner(x, rng.integers(0, task.sample, 1))

    return task if task.sample is None else replace(task, sample=None, make=make)


def seconds(task, name, seed, limit):
    """Return the time per evaluation of one run."""
    oracle = TimedOracle(task if name == "auto" else unsampled(task), BUDGET, seed, limit)
    started = time.perf_counter()
    METHODS[name](oracle, seed)
    return (time.perf_counter() - started) / max(1, oracle.count)


def main():
    """Print a line per kind of noise."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    tasks = {
        "deterministic": build("quad"),
        "controllable noise": ridge(5, n=2000, p=1000),
        "uncontrollable noise": build("quadnoisy"),
    }
    print("us per evaluation (ratio to auto), p = 1,000")
    for label, task in tasks.items():
        seconds(task, "auto", 0, 60)  # compiles
        best = dict.fromkeys(("auto", *PEERS), np.inf)
        for repeat in range(1, 2 if quick else 4):
            for name in best:
                limit = 1.5 if name == "ngopt" else 60
                best[name] = min(best[name], seconds(task, name, repeat, limit))
        ours = best["auto"]
        cells = [f"{m} {1e6 * t:8.1f} ({t / ours:5.1f}x)" for m, t in best.items()]
        print(f"{label:22}", "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
