"""``make dist`` finds the interpreters there are, and says which it passed over."""

import hashlib
import os
import re
import runpy
import subprocess
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


def item(name, version, *needs, **more):
    archive = {"archive_info": {"hashes": {"sha256": "ab" * 32}}}
    metadata = {"name": name, "version": version, "requires_dist": list(needs), **more}
    return {"metadata": metadata, "download_info": archive}


def test_the_bill_of_materials_names_what_the_wheel_brings(tmp_path):
    wheel = tmp_path / "scgd-9.9-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    install = [
        item("scgd", "9.9", "numpy>=2.0", "scikit_learn>=1.6", 'torch>=2.4; extra == "torch"'),
        item("numpy", "2.1", license_expression="BSD-3-Clause"),
        item("scikit-learn", "1.6+local", "numpy>=1.19", 'SciPy[all]>=1.6; extra == "x"'),
    ]
    found = runpy.run_path(str(RELEASE))["bill"](wheel, install)
    assert (found["bomFormat"], found["metadata"]["component"]["name"]) == ("CycloneDX", "scgd")
    assert (
        found["metadata"]["component"]["hashes"][0]["content"]
        == hashlib.sha256(b"wheel").hexdigest()
    )
    purls = ["pkg:pypi/numpy@2.1", "pkg:pypi/scikit-learn@1.6%2Blocal"]
    assert [part["purl"] for part in found["components"]] == purls
    assert found["components"][0]["licenses"] == [{"license": {"name": "BSD-3-Clause"}}]
    needs = {row["ref"]: row["dependsOn"] for row in found["dependencies"]}
    assert (
        needs["pkg:pypi/scgd@9.9"] == purls
        and needs[purls[1]] == purls[:1]
        and needs[purls[0]] == []
    )
    assert "http" not in str(found)  # no host of anybody's


def test_a_wheel_is_the_same_bytes_when_it_is_built_again(tmp_path):
    pytest.importorskip("hatchling")
    for name in ("one", "other"):
        words = [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "-t",
            "wheel",
            "-t",
            "sdist",
            "-d",
            str(tmp_path / name),
        ]
        subprocess.run(words, cwd=RELEASE.parents[1], check=True, capture_output=True)
    made = sorted((tmp_path / "one").iterdir())
    assert len(made) == 2
    for path in made:
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes()


def test_the_locked_packages_have_versions_and_hashes():
    lines = (RELEASE.parents[1] / "locked.txt").read_text().splitlines()
    rows = [line for line in lines if not line.startswith("#")]
    form = re.compile(r"[a-z0-9-]+==[^ ]+ --hash=sha256:[0-9a-f]{64}")
    assert len(rows) > 50 and all(form.fullmatch(row) for row in rows)
    names = {row.split("==")[0] for row in rows}
    assert {"numpy", "scipy", "numba", "scikit-learn", "hatchling", "pytest"} <= names
    assert not {"scgd", "torch"} & names
