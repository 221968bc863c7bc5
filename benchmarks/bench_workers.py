"""What engines cost per evaluation, how well they use two workers, and what kills cost.

Run ``python benchmarks/bench_workers.py [--quick]``. Overhead is the time of a run of evaluations
that do nothing, divided by their number; the floor is the same run in this process. Efficiency is
the time that two perfect workers would need over the time taken. The kill test kills one of four
Dask workers every five seconds.
"""

import argparse
import os
import random
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from distributed import Client, LocalCluster

from scgd import SCGD, minimize
from scgd.options import Workers

P = 40


def nothing(x):
    return float(x[0])


def quadratic(x):
    return float(np.sum(np.arange(1, P + 1) * (x - 1) ** 2))


def sleeping_100(x):
    time.sleep(0.1)
    return quadratic(x)


def sleeping_20(x):
    time.sleep(0.02)
    return quadratic(x)


def uneven(x):
    time.sleep(0.02 if random.random() < 0.9 else 0.2)
    return quadratic(x)


def timed(fun, engine, max_evals, block_size=8, asynchronous=None):
    """Return seconds and the result, whose ``nfev`` may miss ``max_evals`` by the last step."""
    method, workers = SCGD(block_size=block_size), Workers(engine, asynchronous=asynchronous)
    x0 = np.zeros(P)
    started = time.perf_counter()
    result = minimize(
        fun, x0, method=method, scale=1.0, max_evals=max_evals, seed=3, workers=workers
    )
    return time.perf_counter() - started, result


def cluster(n_workers):
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=None, silence_logs=60
    )


def overhead(engines, n, repeats):
    best = dict.fromkeys(engines, float("inf"))
    for _ in range(repeats):
        for name, workers in engines.items():
            seconds, result = timed(nothing, workers, n)
            best[name] = min(best[name], seconds / result.nfev)
    print(f"overhead per evaluation, {n} evaluations in steps of 16 (minimum of {repeats} runs)")
    for name, seconds in best.items():
        print(f"  {name:28s} {1e3 * seconds:8.3f} ms")


def efficiency(engines, n, repeats):
    best = dict.fromkeys(engines, 0.0)
    for _ in range(repeats):
        for name, workers in engines.items():
            seconds, result = timed(sleeping_100, workers, n)
            best[name] = max(best[name], result.nfev * 0.1 / 2 / seconds)
    print(f"efficiency on 2 workers, block_size 8, {n} evaluations of 100 ms")
    for name, share in best.items():
        print(f"  {name:28s} {share:7.1%}")


def asynchronous(client, n):
    print("evaluations of 20 ms, one in ten 200 ms, on 2 Dask workers")
    for name, kept in (("step by step", None), ("asynchronous=8", 8)):
        seconds, result = timed(uneven, client, n, block_size=2, asynchronous=kept)
        ideal = result.nfev * (0.9 * 0.02 + 0.1 * 0.2) / 2
        print(f"  {name:28s} {ideal / seconds:7.1%}")


def kill_workers(client, stop, kills):
    while not stop.wait(5.0):
        alive = sorted(client.run(os.getpid).values())
        if len(alive) > 1:  # a cluster that is gone altogether is another test
            kills.append(random.choice(alive))
            os.kill(kills[-1], 9)


def killing(n, repeats):
    here = timed(quadratic, 1, n)[1]
    print(f"{n} evaluations of 20 ms, block_size 8, 4 Dask workers, one killed every 5 s")
    for _ in range(repeats):
        with cluster(4) as workers, Client(workers) as client:
            timed(sleeping_20, client, 64)
            calm, _ = timed(sleeping_20, client, n)
            stop, kills = threading.Event(), []
            killer = threading.Thread(target=kill_workers, args=(client, stop, kills))
            killer.start()
            seconds, result = timed(sleeping_20, client, n)
            stop.set()
            killer.join()
        same = "the same x" if np.array_equal(result.x, here.x) else "ANOTHER x"
        print(
            f"  calm {calm:.1f} s, {len(kills)} kills {seconds:.1f} s ({seconds / calm:.2f}x): "
            f"accepted {result.nfev}, dropped repeats {result.nfev_repeated}, {same} as in serial"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short runs")
    quick = parser.parse_args().quick
    with (
        cluster(2) as workers,
        Client(workers) as client,
        ProcessPoolExecutor(2, get_context("spawn")) as pool,
    ):
        engines = {
            "this process": 1,
            "ProcessPoolExecutor(2)": pool,
            "distributed.Client (2)": client,
            "client.get_executor()": client.get_executor(pure=False),
        }
        timed(nothing, pool, 64), timed(nothing, client, 64)
        overhead(engines, 160 if quick else 800, 1 if quick else 3)
        overhead({"workers=2, start included": 2}, 160 if quick else 1600, 1)
        two = {"ProcessPoolExecutor(2)": pool, "distributed.Client (2)": client}
        efficiency(two, 48 if quick else 240, 1 if quick else 2)
        asynchronous(client, 100 if quick else 400)
    killing(400 if quick else 2000, 1 if quick else 3)


if __name__ == "__main__":
    main()
