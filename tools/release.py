"""Build wheel and sdist, and try both in fresh virtual environments of every Python at hand.

``make dist`` runs it: import, ``scgd --version``, one minimize, one fit; and every extra resolves.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
TRIAL = """
import numpy as np
import scgd
from scgd.linear import SCGDRegressor

result = scgd.minimize(lambda x: float(np.sum((x - 1) ** 2)), np.zeros(5), max_evals=400, seed=0)
assert result.fun < 1e-3, result
X = np.random.default_rng(0).standard_normal((50, 3))
model = SCGDRegressor(alpha=1e-6, random_state=0).fit(X, X @ [1.0, 2.0, 3.0])
assert np.allclose(model.coef_, [1, 2, 3], atol=1e-2), model.coef_
print("scgd", scgd.__version__, "works")
"""


def pythons() -> list[str]:
    """Return the interpreters to try: those that start (a name on the path may lead nowhere)."""
    found = [shutil.which(f"python{version}") for version in VERSIONS]
    return [path for path in found if path and starts(path)] or [sys.executable]


def starts(python: str) -> bool:
    """Tell whether an interpreter runs and can make environments."""
    return subprocess.run([python, "-c", "import venv"], capture_output=True).returncode == 0


def call(*command: object, **keywords: object) -> None:
    """Run a command and stop where it fails."""
    subprocess.run([str(part) for part in command], check=True, **keywords)  # type: ignore[call-overload]


def build(folder: Path) -> list[Path]:
    """Build both archives."""
    shutil.rmtree(folder, ignore_errors=True)
    call(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return sorted(folder.iterdir())


def attempt(python: str, archive: Path, constraints: Path) -> None:
    """Install an archive into an environment of its own, away from the sources, and use it."""
    with tempfile.TemporaryDirectory() as folder:
        call(python, "-m", "venv", f"{folder}/venv")
        own = Path(folder) / "venv" / "bin"
        call(
            own / "python", "-m", "pip", "-qq", "--no-input", "install", "-c", constraints, archive
        )
        call(own / "scgd", "--version", cwd=folder)
        call(own / "python", "-W", "error", "-c", TRIAL, cwd=folder)


def resolve(wheel: Path, constraints: Path) -> None:
    """Let pip find versions for all extras together, without installing them."""
    names = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    print(f"== extras: {', '.join(names)}", flush=True)
    wanted = f"{wheel}[{','.join(names)}]"
    call(
        sys.executable, "-m", "pip", "-qq", "--no-input", "install", "--dry-run",
        "--ignore-installed", "-c", constraints, wanted,
    )  # fmt: skip


def main() -> None:
    """Build, then try every archive with every interpreter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    archives = build(parser.parse_args().out)
    resolve(next(path for path in archives if path.suffix == ".whl"), ROOT / "constraints.txt")
    for python in pythons():
        for archive in archives:
            print(f"== {archive.name} with {python}", flush=True)
            attempt(python, archive, ROOT / "constraints.txt")


if __name__ == "__main__":
    main()
