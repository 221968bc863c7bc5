"""What ``minimize`` adds to a query, against bare calls of the same function and against peers.

Prints microseconds per query, minima over round-robin repeats in one process. Peers (SciPy's
Nelder-Mead, pycma's separable CMA-ES, Nevergrad's OnePlusOne) are timed where installed.
"""

import argparse
import time

import numpy as np
from scipy.optimize import minimize as scipy_minimize

import scgd

GENERATOR = np.random.default_rng(0)


def trivial(x):
    return 0.5


def seconds(call):
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def bare(p, n):
    x = np.zeros(p)

    def call():
        for _ in range(n):
            trivial(x)

    return call


def ours(p, n, method):
    def call():
        scgd.minimize(trivial, np.ones(p), method=method, max_evals=n, seed=1)

    return call


def nelder_mead(p, n):
    options = {"maxfev": n, "maxiter": n, "xatol": 0, "fatol": 0}
    return lambda: scipy_minimize(noisy, np.ones(p), method="Nelder-Mead", options=options)


def noisy(x):
    return GENERATOR.random()


def pycma(p, n):
    import cma

    options = {"maxfevals": n, "verbose": -9, "CMA_diagonal": True, "tolfun": 0, "tolx": 0}
    return lambda: cma.fmin2(noisy, np.ones(p), 0.3, options)


def nevergrad(p, n):
    import nevergrad as ng

    return lambda: ng.optimizers.OnePlusOne(parametrization=p, budget=n).minimize(noisy)


def overhead(make, p, n, repeats):
    """Return microseconds per query besides the function itself."""
    ours_, bare_ = make(p, n), bare(p, n)
    ours_()
    return (
        (min(seconds(ours_) for _ in range(repeats)) - min(seconds(bare_) for _ in range(repeats)))
        / n
        * 1e6
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    n, repeats = (20_000, 2) if quick else (200_000, 5)
    print("overhead, microseconds per query                 p=250   p=10,000  p=1,000,000")
    rows = {
        "musketeer": lambda p, n: ours(p, n, "musketeer"),
        "musketeer, step='sgd'": lambda p, n: ours(p, n, scgd.SCGD(learning_rate=0.1, radius=0.1)),
    }
    for name, make in rows.items():
        cells = [overhead(make, p, n, repeats) for p in (250, 10_000, 1_000_000)]
        print(f"{name:46s}" + "".join(f"{cell:10.2f}" for cell in cells))
    for name, make, queries in (
        ("SciPy Nelder-Mead", nelder_mead, 2_000),
        ("pycma, separable", pycma, 2_000),
        ("Nevergrad OnePlusOne", nevergrad, 300),
    ):
        try:
            print(f"{name:46s}{overhead(make, 250, queries, 1):10.2f}")
        except ImportError:
            print(f"{name:46s}       not installed")


if __name__ == "__main__":
    main()
