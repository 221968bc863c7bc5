"""Ray and MPI as workers: the same point as in this process, with a worker killed on the way."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import engine_driver
import scgd

HERE = Path(__file__).parent
MPIEXEC = shutil.which(
    "mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
)
NEEDED = {"ray-tasks": "ray", "ray-pool": "ray", "mpi": "mpi4py"}
SURVIVES = ("ray-tasks",)
"""Engines that repeat what died with its worker; elsewhere the run ends, and goes on when repeated."""
pytestmark = pytest.mark.faults


def start(engine, folder, *more):
    script = [str(HERE / "engine_driver.py"), engine, str(folder), *more]
    command = [sys.executable, *script]
    if engine == "mpi":
        flags = ["--allow-run-as-root", "--oversubscribe", "-n", "3"]
        command = [MPIEXEC, *flags, sys.executable, "-m", "mpi4py.futures", *script]
    paths = os.pathsep.join([str(HERE), str(Path(scgd.__file__).parents[1])])
    quiet = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    return subprocess.run(
        command, env={**os.environ, **quiet, "PYTHONPATH": paths}, cwd=folder, capture_output=True,
        text=True, timeout=240,
    )  # fmt: skip


@pytest.fixture(params=NEEDED)
def engine(request):
    if importlib.util.find_spec(NEEDED[request.param]) is None:
        pytest.skip(f"{NEEDED[request.param]} is not installed; pip install 'scgd[engines]'")
    if request.param == "mpi" and MPIEXEC is None:
        pytest.skip("there is no mpiexec; pip install 'scgd[engines]'")
    return request.param


@pytest.fixture(scope="module")
def expected():
    return scgd.minimize(engine_driver.bowl, **engine_driver.KEYWORDS, method="uniform").x


def test_the_point_is_that_of_this_process(engine, expected, tmp_path):
    done = start(engine, tmp_path)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), expected)


def test_a_worker_is_killed(engine, expected, tmp_path):
    done = start(engine, tmp_path, "deadly")
    assert (tmp_path / "died").exists()
    assert (done.returncode == 0) == (engine in SURVIVES), done.stderr
    if engine not in SURVIVES:
        assert not (tmp_path / "x.npy").exists()
        done = start(engine, tmp_path, "deadly")
        assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), expected)
