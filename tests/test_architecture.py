"""Imports only go up the list, and what is registered is what is exported and documented."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import scgd

SOURCE = Path(scgd.__file__).parent
# Each row may import from the rows above it (and rows of one line from each other).
ORDER = [
    {"typing", "compiling", "errors"},
    {"random", "schedules", "normal"},
    {"policies"},
    {"problem", "sampler", "estimators", "steps"},
    {"recipes", "result", "scale", "auto", "theory"},
    {"course"},
    {"optimizer"},
    {"explore", "workers", "checkpoint", "progress", "states"},
    {"asynchronous"},
    {"minimize"},
    {"status", "command"},
    {"linear", "torch"},
    {"experiments", "compare"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path):
    tree = ast.parse(path.read_text())
    for node in tree.body:  # what only the type checker sees is no import
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module]
            if node.module == "scgd":
                modules = [f"scgd.{alias.name}" for alias in node.names]
        for module in modules:
            parts = module.split(".")
            if parts[0] == "scgd" and len(parts) > 1:
                yield parts[1]


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE))
)
def test_imports_go_up(path):
    room = room_of(path)
    if room == "__init__":
        return
    assert room in LEVEL, f"add {room} to the list of rooms"
    for other in imported_rooms(path):
        if other in LEVEL:
            assert LEVEL[other] <= LEVEL[room], f"{room} imports {other}, which lies below it"


def test_registries_are_exported():
    for registry in (scgd.POLICIES, scgd.ESTIMATORS, scgd.STEPS, scgd.SCHEDULES):
        for cls in registry.values():
            assert cls.__name__ in scgd.__all__
            assert cls.__doc__ and cls.__doc__.strip()


def test_registered_names_are_documented():
    docs = SOURCE.parents[1] / "docs"
    if not docs.exists():
        pytest.skip("installed without the repository's docs")
    text = (docs / "choosing.md").read_text()
    for registry in (scgd.POLICIES, scgd.ESTIMATORS, scgd.STEPS, scgd.RECIPES):
        for name in registry:
            assert f"`{name}`" in text, f"docs/choosing.md does not mention {name!r}"


def test_import_is_light():
    code = "import sys, scgd; print([m for m in ('sklearn', 'torch', 'plotly', 'distributed') if m in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"
