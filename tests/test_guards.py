"""Every guard of tests/guards.py saves its case; without it (slow) the case is lost."""

import subprocess
import sys
from pathlib import Path

import pytest

from guards import GUARDS, changed_source


@pytest.mark.parametrize("name", GUARDS)
def test_the_guard_saves_its_case(name):
    changed_source(GUARDS[name])  # its text stands in the source
    GUARDS[name].check()


@pytest.mark.slow
@pytest.mark.parametrize("name", GUARDS)
def test_without_the_guard_the_case_is_lost(name):
    command = [sys.executable, str(Path(__file__).with_name("guards.py")), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
