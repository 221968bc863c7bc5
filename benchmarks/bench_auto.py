"""Time per evaluation of ``auto`` on cheap functions of 1,000 variables, against peers.

All methods get the same budget; pycma (sep) and NGOpt get one fresh sample per point where the
function has samples. Seconds of one thread's processor time (wall time on an idle core), f
included, minima over round-robin repeats (NGOpt once), in one run on one machine.
Run: python benchmarks/bench_auto.py [--quick]
"""

import argparse
import time
import warnings
from dataclasses import replace

import numpy as np

from scgd_arena.oracle import Oracle
from scgd_arena.peers import METHODS
from scgd_arena.problems import Task, build, ridge

PEERS, P, N_MATTER = ("cma-sep", "ngopt"), 1000, 20


def few(kinks):
    """Return a sum over 20 of 1,000 coordinates, of squares or of squares and kinks."""
    rng = np.random.default_rng(0)
    weights, centre = np.zeros(P), rng.standard_normal(P)
    weights[rng.choice(P, N_MATTER, replace=False)] = 10 ** rng.uniform(-1, 2, N_MATTER)

    def fun(x):
        d = x - centre
        return float(weights @ (d * d)) + kinks * float(weights @ np.abs(d))

    return Task("few", np.zeros(P), None, lambda seed: fun, fun, repeats=True)


def unsampled(task):
    """Return the task for methods that see fresh samples only."""

    def make(seed):
        inner, rng = task.make(seed), np.random.default_rng(seed)
        return lambda x: inner(x, rng.integers(0, task.sample, 1))

    return task if task.sample is None else replace(task, sample=None, make=make)


def seconds(task, name, seed, budget):
    """Return the time per evaluation of one run."""
    oracle = Oracle(task if name == "auto" else unsampled(task), budget, seed)
    started = time.process_time()
    METHODS[name].run(oracle, seed)
    return (time.process_time() - started) / max(1, oracle.count)


def main():
    """Print a line per kind of noise."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    budget = 2000 if quick else 10_000
    warnings.simplefilter("ignore")
    tasks = {
        "20 of 1,000, squares": few(0.0),
        "20 of 1,000, kinks": few(1.0),
        "deterministic": build("quad"),
        "controllable noise": ridge(5, n=2000, p=1000),
        "uncontrollable noise": build("quadnoisy"),
    }
    print("us per evaluation (ratio to auto), p = 1,000")
    for label, task in tasks.items():
        best = dict.fromkeys(("auto", *PEERS), np.inf)
        for name in best:  # imports and compiles
            seconds(task, name, 0, budget if name == "auto" else 100)
        for repeat in range(1 if quick else 3):
            for name in best:
                if name != "ngopt" or repeat == 0:
                    best[name] = min(best[name], seconds(task, name, repeat + 1, budget))
        ours = best["auto"]
        cells = [f"{m} {1e6 * t:8.1f} ({t / ours:5.1f}x)" for m, t in best.items()]
        print(f"{label:22}", "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
