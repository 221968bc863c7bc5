"""
A cluster that loses a worker
=============================

Run on a local Dask cluster and lose a worker on the way: the trajectory stays the same.

Three workers evaluate a function of 20 ms; after a third of the evaluations one of them is killed.
The result equals the serial one bit for bit. Writes dask_cluster.html. ::

    pip install scgd[dask,plot]
    python examples/dask_cluster.py

prints, besides Dask's own warning that it starts the worker again, ::

    worker 19920 was killed; same x as the serial run: True
    892 evaluations, 0 arrived twice and were dropped
    picture: dask_cluster.html

.. image:: /images/gallery/dask_cluster.png
   :alt: what this program draws
"""
# sphinx_gallery_thumbnail_path = 'images/gallery/dask_cluster.png'

import os
import signal
import time

import numpy as np
import plotly.graph_objects as go
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
    figure = picture(watch.times, watch.killed[0])
    figure.write_html("dask_cluster.html", config={"displayModeBar": False})
    print("picture: dask_cluster.html")


def picture(times, kill):
    """Draw evaluations over time, and when the worker went."""
    seconds, counts = zip(*times, strict=True)
    figure = go.Figure(go.Scatter(x=seconds, y=counts, line={"width": 3, "color": "#2563eb"}))
    figure.add_vline(
        x=kill, line={"dash": "dot", "color": "#ea580c"}, annotation_text="a worker is killed"
    )
    figure.update_layout(
        template="plotly_white", height=400, font_size=14, xaxis_title="seconds",
        yaxis_title="evaluations", title="three workers, one killed: nothing is lost",
    )  # fmt: skip
    return figure


if __name__ == "__main__":
    main()
