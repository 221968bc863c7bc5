"""CPU of ``auto`` per evaluation beyond the function, against pycma, smooth and noisy.

The function is a turned quadratic (plain above 100 inputs), with noise of a tenth of the start's
value or without. pycma is separable above 100 inputs. Processor time of one thread less that of the
function alone, minima over three seeds, in one run on one machine.
Run: python benchmarks/bench_overhead.py [--quick]
"""

import argparse
import time
import warnings

import cma
import numpy as np
from threadpoolctl import threadpool_limits

import scgd

CELLS = ((10, 2000), (100, 5000), (1000, 10_000))
NOISE = 0.1


def quadratic(p, noise):
    """Return the function; its noise is in units of its value at zero."""
    rng, weights = np.random.default_rng(0), 10 ** np.linspace(0, 2, p)
    centre, own = rng.standard_normal(p), np.random.default_rng(2)
    turn = np.linalg.qr(rng.standard_normal((p, p)))[0] if p <= 100 else None

    def exact(x):
        d = x - centre
        return float(weights @ (d if turn is None else turn @ d) ** 2)

    size = noise * exact(np.zeros(p))
    return lambda x: exact(x) + size * own.standard_normal() if size else exact(x)


def auto(fun, p, n, seed):
    """Run ``auto``; return the evaluations."""
    return scgd.minimize(fun, np.zeros(p), max_evals=n, seed=seed).nfev


def pycma(fun, p, n, seed):
    """Run pycma to the end of the budget; return the evaluations."""
    options = {"seed": seed + 1, "verbose": -9, "verb_log": 0, "CMA_diagonal": p > 100,
               "tolfun": 0, "tolx": 0, "tolflatfitness": 10**9, "tolstagnation": 10**9}  # fmt: skip
    es, count = cma.CMAEvolutionStrategy(np.zeros(p), 0.5, options), 0
    while count < n:
        points = es.ask()
        es.tell(points, [fun(x) for x in points])
        count += len(points)
    return count


def overhead(run, fun, p, n, seed):
    """Return microseconds per evaluation beyond the function."""
    started = time.process_time()
    count = run(fun, p, n, seed)
    whole = (time.process_time() - started) / count
    x, started = np.zeros(p), time.process_time()
    for _ in range(500):
        fun(x)
    return 1e6 * (whole - (time.process_time() - started) / 500)


def main():
    """Print a line per cell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    cells = CELLS[:1] if parser.parse_args().quick else CELLS
    warnings.simplefilter("ignore")
    print("us per evaluation beyond f")
    with threadpool_limits(1):
        for p, n in cells:
            for noise in (0.0, NOISE):
                fun = quadratic(p, noise)
                auto(fun, p, 300, 9)  # imports and compiles
                ours, theirs = (
                    min(overhead(run, fun, p, n, seed) for seed in range(3))
                    for run in (auto, pycma)
                )
                kind = "noisy" if noise else "smooth"
                print(
                    f"{kind:6} p = {p:<4} N = {n:<6} auto {ours:6.1f}  pycma {theirs:6.1f}  "
                    f"ratio {ours / theirs:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
