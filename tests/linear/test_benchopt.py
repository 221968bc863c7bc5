"""The solver file for benchopt, run by benchopt itself on a small simulated problem."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import scgd

FOLDER = Path(scgd.__file__).parents[2] / "benchmarks" / "benchopt_linear"
pytestmark = [
    pytest.mark.skipif(
        find_spec("benchopt") is None, reason="benchopt is not installed: make test-benchopt"
    ),
    pytest.mark.skipif(not FOLDER.is_dir(), reason="installed without the benchmarks"),
]


def test_benchopt_runs_the_solver_down_to_the_rival(tmp_path):
    import pandas as pd

    shutil.copytree(FOLDER, tmp_path / "benchmark")  # benchopt writes its results beside it
    words = ["-d", "Simulated[n_samples=80,n_features=20]", "-n", "14", "-r", "1", "--no-plot"]
    environment = os.environ | {"PYTHONPATH": str(Path(scgd.__file__).parents[1])}
    ran = subprocess.run(
        [sys.executable, "-m", "benchopt", "run", ".", *words, "--output", "found"],
        cwd=tmp_path / "benchmark",
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (file,) = (tmp_path / "benchmark" / "outputs").glob("*.parquet")
    table = pd.read_parquet(file)
    keys = ["objective_name", "solver_name"]
    assert table.groupby(keys).ngroups == 4 * (3 + 1)  # three policies and the rival
    for _, rows in table.groupby("objective_name"):
        first, best = rows["objective_value"].max(), rows["objective_value"].min()
        for name, curve in rows.groupby("solver_name"):
            gaps = (curve.sort_values("stop_val")["objective_value"] - best) / (first - best)
            assert gaps.iloc[0] == 1.0, name
            assert gaps.iloc[-1] < 1e-4, (name, gaps.tolist())
