"""``scgd minimize`` from the shell: results, resuming, status, clear errors."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import scgd
from scgd import minimize
from scgd.cli import main

MODULE = """
import time
import numpy as np

def sphere(x):
    return float(np.sum((x - 1.0) ** 2))

def slow(x):
    time.sleep(0.002)
    return sphere(x)

def broken(x):
    raise RuntimeError("the simulator is down")
"""
METHOD = ["--method", "musketeer", "--seed", "1", "--no-progress"]


def sphere(x):
    return float(np.sum((x - 1.0) ** 2))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "simulator.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.modules.pop("simulator", None)
    return tmp_path


def test_same_as_from_python(folder, capsys):
    (folder / "x0.txt").write_text("0.5 0.5\n0.25 0\n".replace("\n", " "))
    code = main(
        ["minimize", "simulator:sphere", "--x0", "x0.txt", "--max-evals", "300", *METHOD, "--out",
         "out.json", "--status", "run.html", "--checkpoint", "run.npz"]
    )  # fmt: skip
    here = minimize(sphere, [0.5, 0.5, 0.25, 0.0], method="musketeer", max_evals=300, seed=1)
    found = json.loads((folder / "out.json").read_text())
    assert code == 0 and found["x"] == here.x.tolist() and found["nfev"] == 300
    assert found["success"] is here.success and found["relevance"] is None
    assert "300 evaluations" in capsys.readouterr().out
    page = (folder / "run.html").read_text()
    assert "simulator:sphere" in page and "polyline" in page and "refresh" not in page
    assert (folder / "run.npz").exists()


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["simulator", "--dim", "3"], 2, "must be given as MODULE:FUNCTION"),
        (["nowhere:f", "--dim", "3"], 2, "No module named 'nowhere'; call this in the folder"),
        (["simulator:f", "--dim", "3"], 2, "has no function 'f'"),
        (["simulator:spere", "--dim", "3"], 2, "did you mean 'sphere'?"),
        (["simulator:sphere", "--dim", "0"], 2, "--dim must be a whole number above zero"),
        (["simulator:sphere", "--x0", "missing.npy"], 2, "cannot read --x0"),
        (["simulator:sphere", "--dim", "3", "--method", "magic"], 2, "method must be"),
        (["simulator:sphere", "--dim", "3", "--method", "museketer"], 2, "mean 'musketeer'?"),
    ],
)
def test_errors_are_one_line(arguments, code, message, folder, capsys):
    assert main(["minimize", *arguments, "--no-progress"]) == code
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_an_exception_of_the_function_has_its_own_traceback(folder, capsys):
    assert main(["minimize", "simulator:broken", "--dim", "3", "--no-progress"]) == 1
    trace, said = capsys.readouterr().err.strip().rsplit("\n", 1)
    assert said == "scgd: simulator:broken raised RuntimeError: the simulator is down"
    assert trace.startswith("Traceback") and trace.count("File ") == 1 and "simulator.py" in trace


def test_terminated_it_leaves_a_checkpoint_and_goes_on(folder):
    command = [sys.executable, "-m", "scgd.cli", "minimize", "simulator:slow", "--dim", "4"]
    command += ["--max-evals", "1500", *METHOD, "--checkpoint", "run.npz", "--out", "out.json"]
    command += ["--status", "status.json", "--scale", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    while not (folder / "status.json").exists():
        assert process.poll() is None
        time.sleep(0.05)
    status = json.loads((folder / "status.json").read_text())
    assert status["state"] == "running" and status["max_evals"] == 1500
    os.kill(process.pid, signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    result = json.loads((folder / "out.json").read_text())
    assert 0 < result["nfev"] < 1500 and result["status"] == 4
    assert f"{result['nfev']} of" in said.replace(",", "") and "Interrupted" in said
    assert json.loads((folder / "status.json").read_text())["evaluations"] == result["nfev"]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, timeout=120).returncode == 0
    here = minimize(sphere, np.zeros(4), method="musketeer", max_evals=1500, seed=1, scale=1.0)
    assert json.loads((folder / "out.json").read_text())["x"] == here.x.tolist()


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": ":0"}
    with distributed.LocalCluster(**settings, silence_logs=60) as cluster:
        yield cluster.scheduler_address


def test_minimize_on_a_cluster(folder, cluster):
    code = main(
        ["minimize", "simulator:sphere", "--dim", "4", "--max-evals", "64", *METHOD,
         "--cluster", cluster, "--out", "out.json", "--block-size", "4"]
    )  # fmt: skip
    here = minimize(sphere, np.zeros(4), max_evals=64, seed=1, method=scgd.SCGD(block_size=4))
    assert code == 0 and json.loads((folder / "out.json").read_text())["x"] == here.x.tolist()


def table(path):
    """Return the rows of a table without the times."""
    rows = [line.split(",") for line in path.read_text().splitlines()]
    return [row[:7] + row[8:] for row in rows]


@pytest.mark.faults
def test_experiments_on_a_cluster(folder, cluster):
    from scgd_paper.commands import main

    command = ["run", "theory", "--panel", "rescaled", "--quick", "--no-progress", "--runs", "1"]
    assert main([*command, "--out", "there", "--cluster", cluster]) == 0
    assert main([*command, "--out", "here"]) == 0
    assert table(folder / "there/theory.csv") == table(folder / "here/theory.csv")
