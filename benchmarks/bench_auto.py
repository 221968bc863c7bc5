"""Wall time per evaluation of ``auto`` on cheap functions, against pycma (sep) and NGOpt.

Minima over round-robin repeats, f included, in one run on one machine.
Run: python benchmarks/bench_auto.py [--quick]
"""

import argparse
import time
import warnings

import numpy as np

from scgd.compare.arena import problem
from scgd.compare.peers import METHODS, Oracle

ROWS = [
    ("quad", "deterministic, p = 1,000"),
    ("quadnoisy", "uncontrollable noise, p = 1,000"),
    ("ridge5", "controllable noise, p = 250"),
]


def seconds(task, name, budget, seed):
    oracle = Oracle(task, budget, seed)
    started = time.perf_counter()
    METHODS[name](oracle, seed)
    return (time.perf_counter() - started) / max(1, oracle.count)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    budgets = {"auto": 4000, "cma-sep": 4000, "ngopt": 300}
    warnings.simplefilter("ignore")
    print("us per evaluation (ratio to auto)")
    for name, label in ROWS:
        task = problem(name)
        METHODS["auto"](Oracle(task, 2000, 0), 0)
        best = dict.fromkeys(budgets, np.inf)
        for repeat in range(1 if quick else 3):
            for method, budget in budgets.items():
                best[method] = min(best[method], seconds(task, method, budget, repeat))
        ours = best["auto"]
        cells = [f"{m} {1e6 * t:8.1f} ({t / ours:5.1f}x)" for m, t in best.items()]
        print(f"{label:34}", "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
