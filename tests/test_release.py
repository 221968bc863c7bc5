"""``make dist`` finds the interpreters there are, and says which it passed over."""

import os
import runpy
import sys
from pathlib import Path

import pytest

RELEASE = Path(__file__).parent.parent / "tools" / "release.py"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="makes programs for a POSIX shell")


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_interpreters_behind_a_shim_that_fails_are_found(tmp_path, monkeypatch, capsys):
    program(tmp_path / "shims" / "python3.90", "echo 'not set here' >&2; exit 127")
    program(tmp_path / "shims" / "python3.5", "echo 3 5 old")
    kept = tmp_path / "pyenv" / "versions" / "3.90.1" / "bin" / "python"
    program(kept, f"echo 3 90 {kept}")
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "none"))
    found = runpy.run_path(str(RELEASE))["pythons"]()
    assert found == [sys.executable, str(kept)]
    said = capsys.readouterr().out
    assert "to try: Python 3.90" in said
    assert "python3.90: does not start (not set here)" in said
    assert "python3.5: 3.5 is too old" in said
