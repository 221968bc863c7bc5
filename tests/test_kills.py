"""Killed at any moment, a checkpointed run resumes to the same result, bit for bit."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("killing.py")
# Calls that a kill may cost: those of one round of steps, made again after the resume.
REPEATED = {"minimize": 64, "torch-first-order": 1, "torch-zeroth-order": 1, "run": 1}
SIZES = {
    "minimize": (800, 4000),
    "torch-first-order": (600, 6000),
    "torch-zeroth-order": (600, 6000),
    "run": (1, 150),
}
QUICK = ("minimize", *(pytest.param(f"torch-{order}-order", marks=pytest.mark.faults)
                      for order in ("first", "zeroth")))  # fmt: skip


def run(case, size, folder, n_kills, seed):
    folder.mkdir()
    command = [sys.executable, str(SCRIPT), case, *map(str, (size, folder, n_kills, seed))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    with np.load(folder / "result.npz") as file:
        result = {name: file[name] for name in file.files}
    killed, progressed = map(int, done.stdout.split())
    assert progressed >= killed // 2  # most were killed in the middle of their work
    return result, killed, (folder / "calls").stat().st_size


def skip_without_torch(case):
    if case.startswith("torch"):
        pytest.importorskip("torch")


def check_kills(case, size, tmp_path, n_kills, seed):
    whole, killed, calls = run(case, size, tmp_path / "whole", 0, 0)
    assert killed == 0
    broken, killed, broken_calls = run(case, size, tmp_path / "broken", n_kills, seed)
    assert killed >= n_kills
    for name in whole:
        assert np.array_equal(whole[name], broken[name]), name
    # Resumed, not restarted: what is done again is a few calls per kill.
    assert calls <= broken_calls <= calls + REPEATED[case] * killed


@pytest.mark.parametrize("case", QUICK)
def test_killed_a_few_times(case, tmp_path):
    skip_without_torch(case)
    check_kills(case, SIZES[case][0], tmp_path, 5, seed=0)


@pytest.mark.faults
@pytest.mark.parametrize("case", sorted(REPEATED))
def test_killed_fifty_times(case, tmp_path):
    skip_without_torch(case)
    check_kills(case, SIZES[case][1], tmp_path, 50, seed=1)
