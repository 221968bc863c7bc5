"""docs/engines.md: every program of the page runs, and finds the same bits on each engine."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import scgd

LEFT = """
import os
names = [open(f"/proc/self/task/{t}/comm").read() for t in os.listdir("/proc/self/task")]
assert not any("gloo" in name for name in names), names
"""
PAGE = Path(__file__).parents[1] / "docs" / "engines.md"
PROGRAMS = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", PAGE.read_text(), re.S | re.M))
HERE = str(Path(sys.executable).parent)
MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([HERE, os.environ["PATH"]]))
ENGINES = {
    "processes.py": "joblib",
    "on_dask.py": "distributed",
    "on_ray.py": "ray",
    "on_mpi.py": "mpi4py",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def printed(folder, name, *before):
    """Return what a program prints."""
    quiet = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    source = os.pathsep.join([str(folder), str(Path(scgd.__file__).parents[1])])
    done = subprocess.run(
        [*(before or [sys.executable]), name], cwd=folder, capture_output=True, text=True, timeout=300,
        env={**os.environ, **quiet, "PYTHONPATH": source},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ENGINES)
def test_the_same_bits_on_every_engine(name, folder):
    if importlib.util.find_spec(ENGINES[name]) is None or (name == "on_mpi.py" and MPIEXEC is None):
        pytest.skip(f"{ENGINES[name]} is not installed")
    command = []
    if name == "on_mpi.py":
        command = [
            MPIEXEC,
            "--allow-run-as-root",
            "--oversubscribe",
            "-n",
            "3",
            sys.executable,
            "-m",
            "mpi4py.futures",
        ]
    here = printed(folder, "here.py")
    assert here.count("0x1.") == 6 and printed(folder, name, *command) == here


def test_trainings_on_several_processes(folder):
    """They end without threads of gloo, which abort a process that ends before them."""
    pytest.importorskip("torch")
    if Path("/proc/self/task").exists():
        (folder / "trainings.py").write_text(PROGRAMS["trainings.py"] + LEFT)
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
    ]
    told = printed(folder, "trainings.py", *torchrun)
    params, fun = re.fullmatch(r"(\{.*\}) (\S+)\n", told).groups()
    assert set(eval(params)) == {"lr", "momentum"} and float(fun) < 0.1
