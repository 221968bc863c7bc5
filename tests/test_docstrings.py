"""Docstrings of public names are complete: every argument, every method, an example for users."""

import ast
import inspect
import re
import runpy
from importlib import import_module
from pathlib import Path
from types import GenericAlias

import pytest

ROOT = Path(__file__).parent.parent
REFERENCE = runpy.run_path(str(ROOT / "docs" / "reference.py"))
BESIDE = REFERENCE["BESIDE"]
ROOMS = ("scgd", *REFERENCE["MODULES"], *BESIDE)
NEEDS = {"scgd.torch": "torch", "scgd.optuna": "optuna"}
SHOWN = ("scgd", "scgd.linear", "scgd.torch")
"""Rooms of users: what they call has an example. The rest is for people who write searches."""

SECTION = r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\w[^\n]*\n-{3,}|\Z)"


def things(rooms):
    for room in rooms:
        for start in NEEDS:
            if room.startswith(start):
                pytest.importorskip(NEEDS[start])
        module = import_module(room.rpartition(".")[0] if room in BESIDE else room)
        for name in [room.rpartition(".")[2]] if room in BESIDE else module.__all__:
            thing = getattr(module, name)
            if not callable(thing) or isinstance(thing, GenericAlias):
                continue
            if not (inspect.isclass(thing) and issubclass(thing, Exception)):
                yield f"{room}.{name}", thing


def explained(text):
    """Return the names that the sections of a docstring explain."""
    lines = [
        line.split(":")[0]
        for body in re.findall(SECTION, text, re.S | re.M)
        for line in body.splitlines()
        if line and not line[0].isspace()
    ]
    return {name.strip().lstrip("*") for line in lines for name in line.split(",")}


@pytest.mark.parametrize("room", ROOMS)
def test_every_argument_is_explained(room):
    for name, thing in things([room]):
        arguments = set(inspect.signature(thing).parameters) - {"self", "args", "kwargs"}
        missing = sorted(arguments - explained(inspect.getdoc(thing) or ""))
        assert not missing, f"{name} does not explain {missing}"


@pytest.mark.parametrize("room", ROOMS)
def test_every_method_says_what_it_does(room):
    for name, thing in things([room]):
        assert inspect.getdoc(thing), f"{name} has no docstring"
        for method in vars(thing) if inspect.isclass(thing) else ():
            if not method.startswith("_") and callable(getattr(thing, method)):
                assert inspect.getdoc(getattr(thing, method)), f"{name}.{method} has no docstring"


@pytest.mark.parametrize("room", SHOWN)
def test_what_users_call_has_an_example(room):
    for name, thing in things([room]):
        assert ">>>" in inspect.getdoc(thing), f"{name} shows no example"


INSIDE = ("scgd_paper", "scgd_arena", "scgd.questions", "scgd.random", "scgd.typing")
"""Rooms that pages for people who change the library import from; names there may change."""


def test_every_name_that_a_page_or_an_example_imports_is_in_the_reference():
    pytest.importorskip("torch")
    pytest.importorskip("optuna")
    known = {name for names in REFERENCE["pages"]().values() for name in names}
    known |= {"scgd.torch.BlockOptimizer", "scgd.torch.blocks.BlockOptimizer"}
    programs = [path.read_text() for path in sorted((ROOT / "examples").glob("*.py"))]
    programs += [path.read_text() for path in sorted((ROOT / "docs" / "tutorials").glob("*.py"))]
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        programs += re.findall(r"^```python[^\n]*\n(.*?)^```", page.read_text(), re.S | re.M)
    imported = set().union(*(names_of(program) for program in programs))
    assert len(imported) > 15
    missing = {name for name in imported - known if not name.startswith(INSIDE)}
    assert not missing, f"docs/reference.py has no page for {sorted(missing)}"


def names_of(program):
    """Return what a program imports from scgd by its full name."""
    return {
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "scgd"
        for alias in node.names
    }


def test_every_name_of_a_public_module_has_one_place_in_the_reference():
    pytest.importorskip("torch")
    pytest.importorskip("optuna")
    placed = [name for names in REFERENCE["pages"]().values() for name in names]
    assert len(placed) == len(set(placed))
    assert next(iter(REFERENCE["pages"]().values()))[0] == "scgd.minimize"
    short = {name.rpartition(".")[2] for name in placed}
    for room in ("scgd", *REFERENCE["MODULES"]):
        missing = set(import_module(room).__all__) - short
        assert not missing, f"{room}: {sorted(missing)}"
