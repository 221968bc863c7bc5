"""How large the project is, as one table: ``python tools/figures.py``.

Lines per package and room of the library, what runs before the user's function is first called,
arguments of the front doors, named numbers at the top of modules, and the size of a wheel.
"""

from __future__ import annotations

import ast
import inspect
import io
import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"
LIBRARY = SOURCES / "scgd"
STRATEGIES = ("strategies", "searches", "plans")
APART = ("linear", "torch")
DOORS = (
    "scgd.minimize", "scgd.Optimizer", "scgd.SCGD", "scgd.linear.SCGDRegressor",
    "scgd.linear.SCGDClassifier", "scgd.linear.SCGDRegressorCV", "scgd.linear.SCGDClassifierCV",
    "scgd.torch.BlockOptimizer", "scgd.torch.SCGD", "scgd.torch.ZeroOrderSCGD",
)  # fmt: skip


def sources(folder: Path) -> list[Path]:
    """Return the modules of a folder, or of a file."""
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]


def n_lines(paths: list[Path]) -> int:
    """Count lines."""
    return sum(len(path.read_text().splitlines()) for path in paths)


def rooms() -> dict[str, list[Path]]:
    """Return the modules of each room of the library."""
    found: dict[str, list[Path]] = {}
    for path in sources(LIBRARY):
        found.setdefault(path.relative_to(LIBRARY).parts[0].removesuffix(".py"), []).append(path)
    return found


def before_first_call() -> tuple[set[str], set[tuple[str, str]]]:
    """Return the files and functions of ours that run in ``minimize(f, x0)`` before f does."""
    import numpy as np

    import scgd

    files: set[str] = set()
    functions: set[tuple[str, str]] = set()

    class Reached(Exception):
        pass

    def f(x: Any) -> float:
        raise Reached

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        ours = code.co_filename.startswith(f"{LIBRARY}/") and not code.co_name.startswith("<")
        if event == "call" and ours:
            files.add(code.co_filename)
            functions.add((code.co_filename, code.co_qualname))
        elif event == "call" and code is f.__code__:
            sys.setprofile(None)

    sys.setprofile(note)
    try:
        scgd.minimize(f, np.zeros(10), max_evals=1000, seed=0)
    except Reached:
        pass
    finally:
        sys.setprofile(None)
    return files, functions


def arguments() -> Iterator[tuple[str, int]]:
    """Yield how many arguments each front door takes; those that are not there are left out."""
    for name in DOORS:
        module, _, attribute = name.rpartition(".")
        try:
            door = getattr(import_module(module), attribute)
        except (ImportError, AttributeError):
            continue
        yield name, len(set(inspect.signature(door).parameters) - {"self"})


def is_number(node: ast.expr) -> bool:
    """Tell whether an expression is a number that somebody wrote down."""
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def n_constants(paths: list[Path]) -> int:
    """Count the names that modules give to numbers."""
    count = 0
    for path in paths:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.AnnAssign):
                count += node.value is not None and is_number(node.value)
            elif isinstance(node, ast.Assign):
                given = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                count += sum(map(is_number, given))
    return count


def wheel_bytes() -> int:
    """Return the size of the library's files as a wheel keeps them, compressed."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(LIBRARY.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(SOURCES))
    return packed.tell()


def main() -> None:
    """Print the table."""
    for package in sorted(path for path in SOURCES.iterdir() if (path / "__init__.py").exists()):
        paths = sources(package)
        print(f"{package.name:36}{n_lines(paths):7} lines in {len(paths)} files")
    found = rooms()
    core = [path for name, paths in found.items() if name not in APART for path in paths]
    strategies = [path for name in STRATEGIES for path in found.get(name, [])]
    print(f"{'scgd without ' + ' and '.join(APART):36}{n_lines(core):7} lines in {len(core)} files")
    print(f"{'strategies':36}{n_lines(strategies):7} lines in {len(strategies)} files")
    for name, paths in sorted(found.items(), key=lambda room: -n_lines(room[1])):
        print(f"  {name:34}{n_lines(paths):7} lines in {len(paths)} files")
    files, functions = before_first_call()
    print(f"{'before f is first called':36}{len(functions):7} functions in {len(files)} files")
    for name, count in arguments():
        print(f"{name:36}{count:7} arguments")
    total, inside = n_constants(core), n_constants(strategies)
    print(f"{'named numbers without ' + ' and '.join(APART):36}{total:7} ({inside} of strategies)")
    print(f"{'wheel':36}{wheel_bytes() / 1e6:7.3f} MB")


if __name__ == "__main__":
    main()
