"""Docstrings of public names are complete: every argument, every method, an example for users."""

import inspect
import re
from importlib import import_module
from types import GenericAlias

import pytest

ROOMS = (
    "scgd", "scgd.linear", "scgd.torch", "scgd.torch.blocks", "scgd.theory", "scgd.searches",
    "scgd.scipy", "scgd.optuna", "scgd.sklearn",
)  # fmt: skip
NEEDS = {"scgd.torch": "torch", "scgd.torch.blocks": "torch", "scgd.optuna": "optuna"}
SHOWN = ("scgd", "scgd.linear", "scgd.torch")
"""Rooms of users: what they call has an example. The rest is for people who write searches."""

SECTION = r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\w[^\n]*\n-{3,}|\Z)"


def things(rooms):
    for room in rooms:
        if room in NEEDS:
            pytest.importorskip(NEEDS[room])
        module = import_module(room)
        for name in module.__all__:
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
