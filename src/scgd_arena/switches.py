"""The changes of `auto` that an ablation tries: rules switched off, constants moved by half.

A change overrides names of modules for the time of a run. The library knows nothing of it.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from inspect import getsource
from math import inf
from types import FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

import scgd.strategies
from scgd.strategies import (
    auto,
    bfgs,
    box,
    cma_es,
    length_scale,
    model_lead,
    noisy,
    portfolio,
    regression,
    restarts,
    spsa,
)
from scgd.strategies.gradient_agreement import Trend
from scgd.strategies.precision import Precision

__all__ = ["Change", "Name", "changes", "names_used"]

Name = tuple[str, str]
"""A module of strategies and what it calls something."""
GIVEN = {"EPS", "ROOT", "STEP", "SINGLE", "CHUNK"}
"""Constants that follow from arithmetic or memory."""
EXTREME, FACTOR = (1e-3, 1e3), 10.0
"""Constants outside these limits are moved by this factor: half of a tolerance is the same one."""


@dataclass(frozen=True)
class Change:
    """What is overridden, and how it is called.

    Attributes
    ----------
    kind, name
        ``rule`` or ``constant``, and what the table says.
    overrides
        Objects, the names of their attributes, and what takes their place.
    uses
        Names that code must use for the change to make a difference.
    """

    kind: str
    name: str
    overrides: tuple[tuple[Any, str, Any], ...]
    uses: frozenset[Name]

    @contextmanager
    def made(self) -> Iterator[None]:
        """Override for a while."""
        before = [(owner, name, getattr(owner, name)) for owner, name, _ in self.overrides]
        try:
            for owner, name, value in self.overrides:
                setattr(owner, name, value)
            yield
        finally:
            for owner, name, value in before:
                setattr(owner, name, value)


# ---- rules -------------------------------------------------------------------------------------


def returning(value: Any) -> Callable[..., Any]:
    """Return a strategy that asks nothing and returns a value, or that of its arguments."""

    def strategy(*args: Any, **options: Any) -> Any:
        return value(*args, **options) if callable(value) else value
        yield

    return strategy


def first_of(x: Any, f: float, *rest: Any) -> tuple[float, Any, float, bool]:
    """Return a length scale of a tenth, whatever f does."""
    return 0.1, x, f, False


def only_restarts(share: Any, x: Any, start: Any, s: float) -> Any:
    """Restart BFGS where populations would be restarted."""
    share.n_restarts += 1
    yield from restarts.restarts(share, x, s)


class Alone(restarts.Sample):
    """No sample of the box."""

    def __init__(self, box: Any) -> None:
        super().__init__(box)
        self.finite = False


def unverified(inner: Any, budget: Any, first: int) -> Any:
    """Run a strategy to its end."""
    return (yield from inner)


def every(p: int) -> Any:
    """Return a mask of all coordinates."""
    return np.ones(p, np.bool_)


def rule(name: str, *overrides: tuple[Any, str, Any]) -> Change:
    """Return a rule that is switched off; attributes of classes may be used in any module."""
    uses = {
        (module, attribute)
        for owner, attribute, _ in overrides
        for module in ([owner.__name__] if isinstance(owner, ModuleType) else modules())
    }
    short = frozenset((module.rpartition(".")[2], attribute) for module, attribute in uses)
    return Change("rule", name, overrides, short)


def rules() -> list[Change]:
    """Return members and rules, each switched off."""
    return [
        rule("line searches on sums", (restarts.Shared, "is_sum", returning(False))),
        rule("inactive coordinates left out",
             (portfolio, "active_coordinates", returning(lambda x, *rest: every(x.size)))),
        rule("length scale from how far f falls",
             (portfolio, "initial_step_size", returning(first_of))),
        rule("precision of values measured",
             (portfolio, "measure_precision",
              returning(lambda x, f, s, change, *rest: Precision(0.0, change)))),
        rule("the unit as length on a plateau",
             (length_scale.Fall, "nothing", property(lambda self: 0.1))),
        rule("a choice of who leads (always BFGS)",
             (portfolio, "slopes_tell", returning(Trend(1.0, 1.0)))),
        rule("a choice of who leads (always CMA-ES)",
             (portfolio, "slopes_tell", returning(Trend(0.0, 1.0)))),
        rule("quadratic models that lead", (model_lead, "lead_by_model", returning(None))),
        rule("a Gaussian process that leads",
             (model_lead, "lead_by_process", returning(None)),
             (portfolio, "lead_by_process", returning(None))),
        rule("a first step that tells whether a model goes on",
             (portfolio, "first_step", returning(None))),
        rule("a descent from the best of a population", (portfolio, "AT_MOST", 0.0)),
        rule("lines that look beyond kinks", (bfgs, "STRAIGHT", inf)),
        rule("CMA-ES", (portfolio, "populations", only_restarts)),
        rule("restarts from a sample of the box", (restarts, "Sample", Alone)),
        rule("the same, and a population across the box",
             (box.Box, "finite", property(lambda self: False))),
        rule("few coordinates differentiated",
             (bfgs.BFGS, "_find_active", lambda self, *rest: None)),
        rule("long first metric", (bfgs.BFGS, "_rate_metric",
                                   lambda self, rate: setattr(self, "trust", 0.0))),
        rule("penalties beyond walls",
             (cma_es.Evolution, "penalties", lambda self, outside, values: 0.0 * values)),
        rule("best point evaluated again", (auto, "verified", unverified)),
        rule("common random numbers", (auto, "common_random_numbers", returning(None))),
        rule("BFGS far above the noise",
             (noisy, "descend", returning(lambda problem, budget, rng, x, found, *_: (x, found)))),
        rule("a population where no slope shows", (noisy, "least_budget", lambda p: 10**9)),
        rule("quadratic proposals", (spsa.SPSA, "propose", lambda self, data: None)),
        rule("outliers weigh less", (regression.Regression, "find_outliers",
                                     lambda self, sizes: False)),
        rule("screening", (noisy, "relevant_coordinates", returning(np.empty(0, np.int64)))),
        rule("going back to the best point checked", (spsa.SPSA, "go_back", lambda self: None)),
        rule("pairs adapt to the noise", (spsa.SPSA, "adapt_radius", lambda self: None)),
    ]  # fmt: skip


# ---- constants ---------------------------------------------------------------------------------


@cache
def modules() -> dict[str, ModuleType]:
    """Return the modules of strategies by their short names."""
    path = scgd.strategies.__path__
    found = [info.name for info in pkgutil.iter_modules(path)]
    return {name: importlib.import_module(f"scgd.strategies.{name}") for name in found}


@cache
def tree(name: str) -> ast.Module:
    """Return what a module is made of."""
    return ast.parse(getsource(modules()[name]))


def constants(name: str) -> list[str]:
    """Return the names of numbers, or tuples of numbers, that a module defines."""
    module, found = modules()[name], []
    for node in tree(name).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            found += [part.id for part in parts if isinstance(part, ast.Name)]
    return [
        each
        for each in found
        if each.isupper() and each not in GIVEN and is_number(getattr(module, each))
    ]


def is_number(value: Any) -> bool:
    """Tell whether something is a number or a tuple of numbers."""
    if isinstance(value, tuple):
        return all(map(is_number, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def moved(value: Any, up: bool) -> Any:
    """Return a number half as large again, or half as large; a whole one by at least one."""
    if isinstance(value, tuple):
        return tuple(moved(part, up) for part in value)
    if isinstance(value, int):
        return value + max(1, value // 2) if up else value - max(1, value // 2)
    usual = EXTREME[0] <= abs(value) <= EXTREME[1]
    return value * ((1.5 if up else 0.5) if usual else (FACTOR if up else 1 / FACTOR))


def importers(home: str, name: str) -> list[str]:
    """Return the modules that take a name from its home."""
    return [
        other
        for other in modules()
        for node in tree(other).body
        if isinstance(node, ast.ImportFrom) and node.module == f"scgd.strategies.{home}"
        if any(alias.name == name for alias in node.names)
    ]


def with_default(home: str, name: str, value: Any) -> list[tuple[Any, str, Any]]:
    """Return the defaults of arguments that a constant gives, as overrides."""
    found: list[tuple[Any, str, Any]] = []
    for other in [home, *importers(home, name)]:
        for node in ast.walk(tree(other)):
            if isinstance(node, ast.FunctionDef):
                plain = {i for i, d in enumerate(node.args.defaults) if is_name(d, name)}
                keys = {
                    arg.arg
                    for arg, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                    if d is not None and is_name(d, name)
                }
                if not plain and not keys:
                    continue
                function = function_of(modules()[other], node)
                old = function.__defaults__ or ()
                new = tuple(value if i in plain else d for i, d in enumerate(old))
                found.append((function, "__defaults__", new or None))
                kept = function.__kwdefaults__
                both = kept and {**kept, **dict.fromkeys(keys, value)}
                found.append((function, "__kwdefaults__", both))
    return found


def is_name(node: ast.expr, name: str) -> bool:
    """Tell whether an expression is a name."""
    return isinstance(node, ast.Name) and node.id == name


def function_of(module: ModuleType, node: ast.FunctionDef) -> Any:
    """Return the function that a definition made, of the module or of one of its classes."""
    owners = [module, *(value for value in vars(module).values() if isinstance(value, type))]
    found = (getattr(owner, node.name, None) for owner in owners)
    functions = (f for f in found if isinstance(f, FunctionType))
    return next(f for f in functions if f.__code__.co_firstlineno == node.lineno)


def moves(home: str, name: str) -> list[Change]:
    """Return a constant moved down and up."""
    module, found = modules()[home], []
    users = [home, *importers(home, name)]
    for up in (False, True):
        value = moved(getattr(module, name), up)
        places = [(modules()[user], name, value) for user in users]
        defaults = with_default(home, name, value)
        uses = {(user, name) for user in users}
        if defaults:
            uses |= {(f.__module__.rpartition(".")[2], f.__name__) for f, *_ in defaults}
        label = f"{home}.{name} {shown(getattr(module, name))} to {shown(value)}"
        found.append(Change("constant", label, (*places, *defaults), frozenset(uses)))
    return found


def shown(value: Any) -> str:
    """Return a number as people write it."""
    if isinstance(value, tuple):
        return "(" + ", ".join(map(shown, value)) + ")"
    return f"{value:.4g}"


def changes() -> list[Change]:
    """Return all changes: rules first."""
    return rules() + [
        change for home in modules() for name in constants(home) for change in moves(home, name)
    ]


# ---- which changes can matter ------------------------------------------------------------------


@contextmanager
def names_used() -> Iterator[set[Name]]:
    """Collect the names that code of strategies uses while it runs.

    A change whose names are not among them changes nothing, and needs no run.
    """
    found: set[Name] = set()
    seen: set[Any] = set()
    files = {module.__file__: name for name, module in modules().items()}

    def look(frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call" and code not in seen:
            seen.add(code)
            if code.co_filename in files:
                module = files[code.co_filename]
                found.update((module, name) for name in (*code.co_names, code.co_name))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(before)
