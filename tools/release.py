"""Build wheel and sdist, and try both in fresh virtual environments of every Python at hand.

Both are built twice and must be the same bytes. Beside them stands a bill of materials (CycloneDX):
what installing the wheel brings, with versions, hashes and licences.

``make dist`` runs it: import, ``scgd --version``, one minimize, one fit; and every extra resolves.
A Python at hand is one on the path, or one that pyenv or uv keeps; one interpreter per version.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOWEST = (3, 11)
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


ASK = """
import sys
major, minor = sys.version_info[:2]
if (major, minor) >= (3, 11):
    import ensurepip, venv
sys.stdout.write("%d %d %s" % (major, minor, sys.executable))
"""
"""What an interpreter of any version is asked: who it is, and whether it can make environments."""


def pythons() -> list[str]:
    """Return an interpreter per version to try, and print which names were passed over, and why."""
    chosen: dict[tuple[int, int], str] = {}
    skipped: list[str] = []
    for name in candidates():
        version, told = ask(name)
        if version is None:
            skipped.append(f"{name}: {told}")
        elif version < LOWEST:
            skipped.append(f"{name}: {version[0]}.{version[1]} is too old")
        elif version not in chosen:
            chosen[version] = told
    for version, path in sorted(chosen.items()):
        print(f"== to try: Python {version[0]}.{version[1]}, {path}")
    for line in skipped:
        print(f"== skipped: {line}")
    if not chosen:
        raise SystemExit("no Python of version 3.11 or later was found")
    return [path for _, path in sorted(chosen.items())]


def candidates() -> list[str]:
    """Return every interpreter on the path, then those that pyenv and uv keep beside it."""
    found = [sys.executable]
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found += sorted(map(str, Path(folder).glob("python3.*"))) if folder else []
    keeps = (
        Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions",
        Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path.home() / ".local/share/uv/python"),
    )
    for keep in keeps:
        found += sorted(map(str, keep.glob("*/bin/python")))
    named = [path for path in found if re.fullmatch(r"python(3\.\d+)?", Path(path).name)]
    return list(dict.fromkeys(named))


def ask(python: str) -> tuple[tuple[int, int] | None, str]:
    """Return an interpreter's version and true path; or None and why it does not serve."""
    try:
        done = subprocess.run([python, "-c", ASK], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it ends with an error"]
        last = lines[-1] if "Traceback" in lines[0] else lines[0]
        return None, f"does not start ({last.strip()})"
    major, minor, path = done.stdout.strip().split(" ", 2)
    return (int(major), int(minor)), path


def call(*command: object, **keywords: object) -> None:
    """Run a command and stop where it fails."""
    subprocess.run([str(part) for part in command], check=True, **keywords)  # type: ignore[call-overload]


def build(folder: Path) -> list[Path]:
    """Build both archives, and once more to see that they are the same bytes."""
    shutil.rmtree(folder, ignore_errors=True)
    call(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    archives = sorted(folder.iterdir())
    with tempfile.TemporaryDirectory() as other:
        call(sys.executable, "-m", "build", "--outdir", other, ROOT)
        for archive in archives:
            if archive.read_bytes() != (Path(other) / archive.name).read_bytes():
                raise SystemExit(f"{archive.name} is not the same bytes when it is built again")
            print(f"== {archive.name}: sha256 {digest(archive)}", flush=True)
    return archives


def digest(path: Path) -> str:
    """Return the checksum of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def bill(wheel: Path, install: list[dict]) -> dict:
    """Return the bill of materials of a wheel, from pip's report of what it would install."""
    parts = [component(item) for item in install]
    of = {part["name"]: part for part in parts}
    own = of.pop(normal(wheel.name.split("-")[0]))
    own["hashes"] = [{"alg": "SHA-256", "content": digest(wheel)}]
    needs = {normal(item["metadata"]["name"]): required(item, of) for item in install}
    refs = {name: part["bom-ref"] for name, part in {**of, own["name"]: own}.items()}
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": own},
        "components": [of[name] for name in sorted(of)],
        "dependencies": [
            {"ref": refs[name], "dependsOn": [refs[other] for other in needs[name]]}
            for name in sorted(refs)
        ],
    }  # fmt: skip


def normal(name: str) -> str:
    """Return a package's name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def component(item: dict) -> dict:
    """Return what the bill says of a package."""
    data = item["metadata"]
    name, version = normal(data["name"]), data["version"]
    ref = f"pkg:pypi/{name}@{version.replace('+', '%2B')}"
    found = {"type": "library", "bom-ref": ref, "name": name, "version": version, "purl": ref}
    hashes = item["download_info"].get("archive_info", {}).get("hashes", {})
    if "sha256" in hashes:
        found["hashes"] = [{"alg": "SHA-256", "content": hashes["sha256"]}]
    licence = data.get("license_expression") or data.get("license") or ""
    if licence and "\n" not in licence:
        found["licenses"] = [{"license": {"name": licence}}]
    return found


def required(item: dict, of: dict) -> list[str]:
    """Return which of the packages at hand a package needs itself."""
    wanted = [text for text in item["metadata"].get("requires_dist", []) if "extra ==" not in text]
    names = {normal(re.split(r"[^\w.-]", text, maxsplit=1)[0]) for text in wanted}
    return sorted(names & of.keys())


def write_bill(wheel: Path, constraints: Path) -> None:
    """Write the bill of materials beside the wheel."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        call(
            sys.executable, "-m", "pip", "-qq", "--no-input", "install", "--dry-run",
            "--ignore-installed", "--report", report, "-c", constraints, wheel,
        )  # fmt: skip
        install = json.loads(report.read_text())["install"]
    path = wheel.with_name("-".join(wheel.name.split("-")[:2]) + ".cdx.json")
    path.write_text(json.dumps(bill(wheel, install), indent=1) + "\n")
    print(f"== {path.name}: {len(install) - 1} packages", flush=True)


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
    wheel = next(path for path in archives if path.suffix == ".whl")
    write_bill(wheel, ROOT / "constraints.txt")
    resolve(wheel, ROOT / "constraints.txt")
    for python in pythons():
        for archive in archives:
            print(f"== {archive.name} with {python}", flush=True)
            attempt(python, archive, ROOT / "constraints.txt")


if __name__ == "__main__":
    main()
