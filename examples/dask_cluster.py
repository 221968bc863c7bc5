"""
A cluster that loses a worker
=============================

Run on a Dask cluster, lose a worker on the way, and get the same result bit for bit.

Three workers evaluate a function of 20 ms; after a third of the evaluations one of them is
killed. It is not executed when this site is built, because it needs a cluster::

    pip install scgd[dask] matplotlib
    python examples/dask_cluster.py

prints, besides Dask's own warning that it starts the worker again, ::

    worker 19920 was killed; same x as the serial run: True
    892 evaluations, 0 arrived twice and were dropped

and writes dask_cluster.svg:

.. image:: /images/gallery/dask_cluster.svg
   :alt: evaluations over time; the line goes on after a worker is killed
   :class: picture
"""
# sphinx_gallery_thumbnail_path = 'images/gallery/dask_cluster.svg'

import os
import signal
import time

import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

import scgd

COORDS, EVALS = 30, 900


def f(x):
    return float(np.sum(np.arange(1, COORDS + 1) * (x - 1) ** 2))


def slow(x):
    time.sleep(0.02)
    return f(x)


class Watch:
    """Note the time of every phase, and kill a worker's process on the way."""

    def __init__(self, client):
        self.client, self.killed = client, None
        self.started, self.times = time.perf_counter(), []

    def __call__(self, now):
        seconds = time.perf_counter() - self.started
        self.times.append((seconds, now.nfev))
        if self.killed is None and now.nfev > EVALS / 3:
            pid = next(iter(self.client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
            self.killed = seconds, pid


def main():
    settings = {"method": scgd.SCGD(block_size=5), "max_evals": EVALS, "seed": 1}
    with LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            watch = Watch(client)
            result = scgd.minimize(
                slow, np.zeros(COORDS), workers=client, reporting=watch, **settings
            )
    serial = scgd.minimize(f, np.zeros(COORDS), **settings)
    same = np.array_equal(serial.x, result.x)
    print(f"worker {watch.killed[1]} was killed; same x as the serial run: {same}")
    print(f"{result.nfev} evaluations, {result.nfev_repeated} arrived twice and were dropped")
    picture(watch.times, watch.killed[0])


def picture(times, kill):
    """Draw evaluations over time, and when the worker went."""
    plt.style.use("scgd.plots.slide")
    figure, ax = plt.subplots()
    ax.plot(*zip(*times, strict=True))
    ax.axvline(kill, color="#e0701a", ls=":")
    ax.text(kill, 0, " a worker is killed", color="#e0701a", va="bottom")
    ax.set_xlim(0)
    ax.set_ylim(0)
    ax.set_xlabel("seconds")
    ax.set_ylabel("evaluations done")
    figure.suptitle("A worker dies, and the result is the same to the bit", x=0.02, ha="left")
    figure.savefig("dask_cluster.svg")


if __name__ == "__main__":
    main()
