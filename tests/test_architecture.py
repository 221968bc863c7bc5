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
    {"typing", "compiling", "errors", "calling", "files", "checks", "places", "blas"},
    {"random", "schedules", "normal"},
    {"policies"},
    {"problem", "outcomes", "questions", "samples"},
    {"spaces"},
    {"estimators", "steps", "sampler", "timetable"},
    {"recipes", "history", "theory", "trials"},
    {"evaluations"},
    {"plots"},
    {"results"},
    {"searches"},
    {"plans"},
    {"constraints"},
    {"checkpoint", "run"},
    {"explore", "workers", "progress"},
    {"driving", "optimizer"},
    {"minimize"},
    {"desk"},
    {"scipy", "optuna", "sklearn"},
    {"status", "command"},
    {"linear", "torch"},
    {"experiments", "compare"},
    {"cli", "__main__"},
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
    for registry in (scgd.POLICIES, scgd.ESTIMATORS, scgd.STEPS, scgd.METHODS):
        for name in registry:
            assert f"`{name}`" in text, f"docs/choosing.md does not mention {name!r}"


def test_import_is_light():
    code = "import sys, scgd; print([m for m in ('sklearn', 'torch', 'plotly', 'distributed') if m in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"


def test_every_room_has_a_place():
    rooms = {room_of(path) for path in SOURCE.rglob("*.py")} - {"__init__"}
    assert rooms == LEVEL.keys()


def test_no_file_is_long():
    """About 200 lines; past 460 a file does two things."""
    for path in SOURCE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 460, path


def assigned(path):
    """Yield the attributes that a file writes, as (owner, name), loops and deletions included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield ast.unparse(node.value), node.attr


@pytest.mark.parametrize("room", ["searches", "plans"])
def test_no_search_writes_the_run(room):
    """A run has one writer: itself."""
    for path in (SOURCE / room).glob("*.py"):
        for owner, name in assigned(path):
            assert "run" not in owner.split("."), f"{path.name} writes {owner}.{name}"


@pytest.mark.parametrize("room", ["questions.py", "samples.py", "searches", "plans", "run"])
def test_no_module_sees_the_one_above_it_as_any(room):
    here = SOURCE / room
    for path in [here] if here.suffix else here.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                assert ast.unparse(node.value) != "Any", f"{path.name}:{node.lineno}"


def test_every_search_is_exported_and_described():
    import scgd.searches as searches
    from scgd.searches.base import Search

    for path in (SOURCE / "searches").glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and any(
                ast.unparse(base) in ("Search", "Around") for base in node.bases
            ):
                cls = getattr(searches, node.name)
                assert issubclass(cls, Search) and cls.__doc__
                inherited = node.name in ("Told", "Around")
                named = cls.name != Search.name or inherited
                assert named, f"{node.name} has no name for people"
