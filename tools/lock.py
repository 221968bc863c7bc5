"""Write ``locked.txt``: every package that CI installs, with its version and the hash of its file.

``make lock`` runs it, on the machine whose packages CI takes (CPython 3.11 on Linux, x86-64). pip
accepts no hashes beside an editable install, so CI installs in three steps: what is locked, by
``--require-hashes --no-deps``; torch, which has a file per machine, by ``constraints.txt``;
and the project itself by ``--no-deps --no-build-isolation``, which fetches nothing.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEFT = {"scgd", "torch"}
"""The project itself, and what has a file of its own per machine."""
HEAD = """\
# Written by tools/lock.py (`make lock`): what CI installs, for CPython 3.11 on Linux, x86-64.
# torch is left to constraints.txt: its file is another one per machine.
"""


def resolved() -> list[dict]:
    """Return what pip would install for the tests and for building, with the hash of each file."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        subprocess.run(
            [sys.executable, "-m", "pip", "-qq", "install", "--dry-run", "--ignore-installed",
             "--report", report, "-c", ROOT / "constraints.txt", f"{ROOT}[dev]", *build],
            check=True,
        )  # fmt: skip
        return json.loads(report.read_text())["install"]


def lines(install: list[dict]) -> list[str]:
    """Return a line per package, in the order of names."""
    found = {}
    for item in install:
        name = item["metadata"]["name"].lower().replace("_", "-")
        if name in LEFT:
            continue
        digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
        found[name] = f"{name}=={item['metadata']['version']} --hash=sha256:{digest}"
    return [found[name] for name in sorted(found)]


def main() -> None:
    """Write the file."""
    (ROOT / "locked.txt").write_text(HEAD + "\n".join(lines(resolved())) + "\n")


if __name__ == "__main__":
    main()
