"""Memory and time of keeping points as coordinates changed, against copies of whole points."""

import time
import tracemalloc

import numpy as np

from scgd import minimize

N_EVALS = 2000


def fun(x):
    return float((x[3] - 1.0) ** 2 + (x[7] + 1.0) ** 2)


def run(p, method, record):
    tracemalloc.start()
    begin = time.process_time()
    result = minimize(
        fun, np.zeros(p), method=method, scale=1.0, max_evals=N_EVALS, seed=1, record=record
    )
    seconds = time.process_time() - begin
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return result, peak, seconds


def main():
    print(
        "| p | method | bytes per evaluation kept | whole points | peak, recorded | peak, not | us per evaluation, recorded | not |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for p in (100, 10_000, 1_000_000):
        for method in ("musketeer",):
            run(p, method, True)
            result, peak, seconds = run(p, method, True)
            _, without, plain = run(p, method, False)
            each = result.evaluations.points.nbytes / result.nfev
            print(
                f"| {p:,} | {method} | {each:.0f} | {8 * p:,} | {peak / 1e6:.1f} MB | {without / 1e6:.1f} MB "
                f"| {1e6 * seconds / result.nfev:.0f} | {1e6 * plain / result.nfev:.1f} |"
            )


if __name__ == "__main__":
    main()
