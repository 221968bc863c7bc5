"""Two runs on one checkpoint: the second is refused, and told by whom."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import scgd
from scgd.checkpoint import CheckpointError

HOLDER = """
import sys, time
import numpy as np, scgd
def fun(x):
    print("running", flush=True)
    time.sleep(0.2)
    return float(x @ x)
scgd.minimize(fun, np.ones(3), method="uniform", max_evals=4000, seed=0, checkpoint=sys.argv[1])
"""


def run(path, **more):
    keywords = {"method": "uniform", "max_evals": 40, "seed": 0, "scale": 1.0, **more}
    return scgd.minimize(lambda x: float(x @ x), np.ones(3), checkpoint=path, **keywords)


@pytest.fixture
def holder(tmp_path):
    path = tmp_path / "run.npz"
    process = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"running\n"
    yield process, path
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("linked", [False, True])
def test_the_second_process_is_refused_and_told_who_holds_it(holder, linked, tmp_path):
    process, path = holder
    if linked:
        path = tmp_path / "link.npz"
        path.symlink_to("run.npz")
    with pytest.raises(CheckpointError, match=f"in use by process {process.pid} on"):
        run(path)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_lock_dies_with_its_owner(holder, how, tmp_path):
    process, path = holder
    process.send_signal(how)
    process.wait()
    for _ in range(2):  # the second one reads the first one's result back
        path.unlink(missing_ok=True)
        assert run(path).nfev == 39
    assert sorted(p.name for p in tmp_path.iterdir() if "lock" in p.name) == []


def test_a_run_within_a_run_is_refused_too(tmp_path):
    path, seen = tmp_path / "run.npz", []

    def nested(intermediate):
        with pytest.raises(CheckpointError, match=rf"this process \({os.getpid()}\)"):
            run(path)
        seen.append(1)

    run(path, reporting=nested)
    assert seen and run(path).nfev == 39
    assert not list(tmp_path.glob(".*.lock"))


def test_a_run_that_fails_lets_go(tmp_path):
    path = tmp_path / "run.npz"
    with pytest.raises(TypeError, match="workers must be"):
        run(path, workers="two")
    with pytest.raises(ZeroDivisionError):
        scgd.minimize(lambda x: 1 / 0, np.ones(3), checkpoint=path, method="uniform", seed=0)
    path.unlink(missing_ok=True)
    assert run(path).nfev == 39


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_keep_the_lock(tmp_path):
    from scgd.run.saving import Lock

    lock = Lock(tmp_path / "run.npz")
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    try:
        lock.release()
        Lock(tmp_path / "run.npz").release()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
