"""Memory and time of keeping points as coordinates changed, against copies of whole points."""

import time
import tracemalloc

import numpy as np

import scgd
from scgd import minimize

N_EVALS = 2000


def fun(x):
    return float((x[3] - 1.0) ** 2 + (x[7] + 1.0) ** 2)


def once(p, record):
    return minimize(
        fun,
        np.zeros(p),
        method="musketeer",
        scale=1.0,
        max_evals=N_EVALS,
        seed=1,
        reporting=scgd.Reporting(record=record),
    )


def peak(p, record):
    tracemalloc.start()
    result = once(p, record)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return result, found


def micros(p, record):
    begin = time.process_time()
    once(p, record)
    return 1e6 * (time.process_time() - begin) / N_EVALS


def main():
    print(
        "| p | bytes per evaluation kept | whole points | peak, recorded | not | us per evaluation, recorded | not |"
    )
    print("|---|---|---|---|---|---|---|")
    for p in (100, 10_000, 1_000_000):
        once(p, True)
        (result, kept), (_, without) = peak(p, True), peak(p, False)
        each = result.evaluations.points.nbytes / result.nfev
        times = [min(micros(p, record) for _ in range(3)) for record in (True, False)]
        print(
            f"| {p:,} | {each:.0f} | {8 * p:,} | {kept / 1e6:.1f} MB | {without / 1e6:.1f} MB "
            f"| {times[0]:.0f} | {times[1]:.1f} |"
        )


if __name__ == "__main__":
    main()
