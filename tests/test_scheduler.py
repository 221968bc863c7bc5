"""A real Dask scheduler process dies in the middle of a run, and comes back or does not."""

import importlib
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from scgd import SCGD, minimize
from scgd.workers import cluster

P = 6
KEYWORDS = {"x0": np.zeros(P), "method": SCGD(block_size=3), "max_evals": 96, "seed": 3}
pytestmark = pytest.mark.faults


def quadratic(x):
    time.sleep(0.01)
    return float(np.sum(np.arange(1, P + 1) * (x - 1) ** 2))


def first_few(x):
    time.sleep(0.01)
    return quadratic(x[:P]) + float(np.sum(x[P:] ** 2))


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Cluster:
    """A scheduler and a worker as processes of their own, as operators run them."""

    def __init__(self):
        self.port, self.processes = free_port(), []

    @property
    def address(self):
        return f"tcp://127.0.0.1:{self.port}"

    def _run(self, *command):
        process = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli." + command[0], *command[1:]],
            cwd=Path(__file__).parent, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.processes.append(process)

    def start(self):
        self._run(
            "dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"
        )
        self._run("dask_worker", self.address, "--no-nanny", "--nthreads", "2", "--no-dashboard")

    def kill(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()


@pytest.fixture
def processes():
    pytest.importorskip("distributed")
    cluster = Cluster()
    cluster.start()
    yield cluster
    cluster.kill()


def once(action, at=3):
    """Return a callback that does something after so many phases."""
    n_calls = []

    def callback(intermediate):
        n_calls.append(intermediate.nfev)
        if len(n_calls) == at:
            action()

    return callback


def test_scheduler_that_comes_back(processes):
    from distributed import Client

    def restart():
        processes.kill()
        processes.start()

    here = minimize(quadratic, **KEYWORDS)
    with Client(processes.address, timeout=20) as client:
        there = minimize(quadratic, reporting=once(restart), **KEYWORDS, workers=client)
    assert np.array_equal(there.x, here.x) and there.nfev == here.nfev


def test_scheduler_that_comes_back_while_a_large_point_is_sent(processes):
    """Above 65,536 bytes x is scattered to all workers, which must wait as well."""
    from distributed import Client

    def restart():
        processes.kill()
        threading.Timer(2.0, processes.start).start()

    case = {**KEYWORDS, "x0": np.zeros(9000), "max_evals": 60}
    here = minimize(first_few, **case)
    with Client(processes.address, timeout=20) as client:
        there = minimize(first_few, reporting=once(restart, at=1), **case, workers=client)
    assert np.array_equal(there.x, here.x) and there.nfev == here.nfev


def test_scheduler_that_is_away_at_the_start(processes):
    from distributed import Client

    here = minimize(quadratic, **KEYWORDS)
    with Client(processes.address, timeout=20) as client:
        processes.kill()
        threading.Timer(2.0, processes.start).start()
        there = minimize(quadratic, **KEYWORDS, workers=client)
    assert np.array_equal(there.x, here.x) and there.nfev == here.nfev


def test_scheduler_that_is_gone(processes, tmp_path, monkeypatch):
    from distributed import Client

    monkeypatch.setattr(cluster, "RECONNECT", 3.0)
    keywords = {**KEYWORDS, "checkpoint": tmp_path / "run.npz"}
    client = Client(processes.address, timeout=10)
    try:
        with pytest.raises(ConnectionError, match="same checkpoint"):
            minimize(quadratic, reporting=once(processes.kill), **keywords, workers=client)
    finally:
        client.close(timeout=2)
    here, there = minimize(quadratic, **KEYWORDS), minimize(quadratic, **keywords)
    assert np.array_equal(there.x, here.x) and there.nfev == here.nfev


def test_function_that_workers_cannot_import(processes, tmp_path, monkeypatch):
    from distributed import Client

    (tmp_path / "only_here.py").write_text("def fun(x):\n    return float(x @ x)\n")
    monkeypatch.syspath_prepend(tmp_path)
    fun = importlib.import_module("only_here").fun
    with (
        Client(processes.address, timeout=20) as client,
        pytest.raises(ImportError, match=r"cannot import .* 'only_here'.*upload_file"),
    ):
        minimize(fun, **KEYWORDS, workers=client)
