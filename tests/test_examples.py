"""The programs of the gallery run as they are; the quick ones in every test run."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["HEAVY"]
QUICK = ("six_digits", "which_inputs_matter", "adding_a_policy")
PROGRAMS = [
    *sorted((ROOT / "examples").glob("*.py")),
    *sorted((ROOT / "docs/tutorials").glob("*.py")),
]
TORCH = ("torch_blocks", "forward_passes")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem in QUICK else pytest.mark.slow)
        for path in PROGRAMS
        if path.stem not in HEAVY
    ],
)
def test_it_runs_and_draws(path, tmp_path):
    if path.stem in TORCH:
        pytest.importorskip("torch")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (pip install '.[dev]')")
    places = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, env={**os.environ, "PYTHONPATH": places, "MPLBACKEND": "agg"},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / f"{path.stem}.svg").exists()
