"""Imports only go up the list, and what is registered is what is exported and documented."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import scgd

SOURCE = Path(scgd.__file__).parent
# Each row may import from the rows above it (and rows of one line from each other).
ORDER = [
    {
        "typing",
        "notice",
        "compiling",
        "errors",
        "calling",
        "files",
        "checks",
        "blas",
    },
    {"random", "schedules"},
    {"policies"},
    {"problem", "outcomes", "questions", "samples"},
    {"spaces"},
    {"estimators", "steps", "sampler", "timetable"},
    {"history", "theory", "trials", "method"},
    {"evaluations"},
    {"plots"},
    {"results"},
    {
        "descent",
        "strategies",
        "run",
        "constraints",
        "checkpoint",
        "options",
        "methods",
        "workers",
        "driving",
        "progress",
    },
    {"optimizer", "minimize", "screen"},
    {"bridge"},
    {"scipy", "optuna", "sklearn"},
    {"status", "command", "screen_command"},
    {"linear", "torch"},
    {"cli", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_modules(path):
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
        yield from modules


def imported_rooms(path):
    for module in imported_modules(path):
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


def test_the_packages_beside_the_library_import_it_and_not_each_other():
    beside = {"scgd_paper", "scgd_arena"}
    for package in ("scgd", *beside):
        for path in (SOURCE.parent / package).rglob("*.py"):
            found = {name.split(".")[0] for name in imported_modules(path)} & beside
            assert found <= {package}, f"{path} imports {found}"


def test_registries_are_exported():
    for registry in (scgd.POLICIES, scgd.ESTIMATORS, scgd.STEPS, scgd.SCHEDULES):
        for cls in registry.values():
            assert cls.__name__ in scgd.__all__
            assert cls.__doc__ and cls.__doc__.strip()


def test_registered_names_are_documented():
    docs = SOURCE.parents[1] / "docs"
    if not docs.exists():
        pytest.skip("installed without the repository's docs")
    text = (docs / "parts.md").read_text()
    for registry in (scgd.POLICIES, scgd.ESTIMATORS, scgd.STEPS, scgd.METHODS):
        for name in registry:
            assert f"`{name}`" in text, f"docs/parts.md does not mention {name!r}"


HEAVY = (
    "numba",
    "sklearn",
    "torch",
    "plotly",
    "distributed",
    "pandas",
    "scipy.linalg",
    "scipy.optimize",
)


@pytest.mark.parametrize(
    "code",
    [
        "import scgd",
        "import scgd; scgd.linear; scgd.theory",
        "import scgd.cli; scgd.cli.build_parser()",
        "import scgd; scgd.Optimizer(scgd.Space({'x': scgd.Float(0.0, 1.0)}), max_evals=9)",
    ],
)
def test_import_is_light(code):
    code += f"; import sys; print([m for m in {HEAVY} if m in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"


def test_the_package_shows_public_names_and_reaches_its_rooms():
    assert set(dir(scgd)) == {
        *scgd.__all__,
        "__version__",
        "linear",
        "optuna",
        "sklearn",
        "theory",
        "torch",
    }
    assert "SCGDRegressor" in dir(scgd.linear) and scgd.linear.SCGDRegressor
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        scgd.magic  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        scgd.linear.magic  # noqa: B018


def test_the_way_to_the_first_call_is_short():
    """What a run does not ask for is not made: workers, clocks, tables, samples, constraints."""
    before = """
import os, sys, numpy as np, scgd
root = os.path.dirname(scgd.__file__)
seen = set()
def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root) and not code.co_name.startswith("<"):
        seen.add((code.co_filename, code.co_qualname))
def fun(x):
    sys.setprofile(None)
    print(len({file for file, _ in seen}), len(seen))
    raise SystemExit
sys.setprofile(note)
scgd.minimize(fun, np.zeros(10), max_evals=1000, seed=0)
"""
    ran = subprocess.run([sys.executable, "-c", before], capture_output=True, text=True, check=True)
    n_files, n_functions = map(int, ran.stdout.split())
    assert 5 < n_files <= 15 and 20 < n_functions <= 50


def test_every_room_has_a_place():
    rooms = {room_of(path) for path in SOURCE.rglob("*.py")} - {"__init__"}
    assert rooms == LEVEL.keys()


LONG = {
    "engine.py": 545, "interpreter.py": 540, "run.py": 510, "incumbent.py": 440, "optimizer.py": 410,
    "estimators.py": 410, "spsa.py": 410, "base.py": 410, "layer_sampler.py": 410,
}  # fmt: skip


def test_no_file_is_long():
    """Past 400 lines a file does two things; those that still do must not grow."""
    for path in SOURCE.parent.rglob("*.py"):
        n_lines = len(path.read_text().splitlines())
        assert n_lines <= LONG.get(path.name, 400), path


def assigned(path):
    """Yield the attributes that a file writes, as (owner, name), loops and deletions included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield ast.unparse(node.value), node.attr


def test_strategies_know_nothing_of_the_run():
    """They yield and are sent values; engine, ledger and workers are somebody else's."""
    above = {"run", "workers", "driving", "minimize", "optimizer", "results", "checkpoint"}
    for path in (SOURCE / "strategies").glob("*.py"):
        assert not above & set(imported_rooms(path)), path.name


def test_no_two_files_have_one_name():
    """Within the core; the packages of linear models and networks are libraries of their own."""
    beside = {"linear", "torch", "__init__.py"}
    paths = [p.relative_to(SOURCE) for p in SOURCE.rglob("*.py") if p.name != "__init__.py"]
    names = [path.name for path in paths if path.parts[0] not in beside]
    assert sorted(names) == sorted(set(names))


def test_a_registry_refuses_a_name_twice():
    from scgd.checks import registry

    rows = list(scgd.POLICIES.items())
    with pytest.raises(ValueError, match="two parts are called 'uniform'"):
        registry(*rows, ("uniform", scgd.Full))


def functions(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            yield node


HOUSE = {
    "ladder", "leash", "footing", "crowd", "judge", "judged", "verdict", "contest", "niche", "slide",
    "story", "recipe", "telling", "law", "laws", "leg", "legs", "lane", "desk", "grain",
}  # fmt: skip
"""Words of our own, of which the field has better ones."""


@pytest.mark.parametrize("room", sorted(LEVEL.keys() - {"linear", "torch"}))
def test_functions_are_short_and_names_are_the_words_of_the_field(room):
    paths = (SOURCE / room).rglob("*.py") if (SOURCE / room).is_dir() else [SOURCE / f"{room}.py"]
    for path in paths:
        text = path.read_text()
        for node in functions(path):
            doc = ast.get_docstring(node) or ""
            n_lines = node.end_lineno - node.lineno - len(doc.splitlines())
            assert n_lines <= 80, f"{path.name}: {node.name} has {n_lines} lines"
        words = {part.lower() for name in re.findall(r"\w+", text) for part in name.split("_")}
        assert not words & HOUSE, f"{path.name}: {words & HOUSE}"
