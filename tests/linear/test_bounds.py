"""No kernel leaves its arrays: the inputs of people again, with numba counting indices."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = [
    "test_linear_inputs.py::test_any_layout_type_and_weight",
    "test_linear_inputs.py::test_any_classifier_on_any_layout",
    "test_linear_inputs.py::test_single_precision_stays_single",
    "test_linear_inputs.py::test_several_targets_are_several_models",
    "test_linear_inputs.py::test_chunks_of_one_row_do_not_diverge",
    "test_adaptive.py",
]


@pytest.mark.faults
def test_no_kernel_reads_beyond_its_arrays(tmp_path):
    names = [str(ROOT / "tests" / "linear" / name) for name in TESTS]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *names],
        cwd=ROOT,
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=3000,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
