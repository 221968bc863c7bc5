"""Change functions that are imported already: a mutant of a body then needs no new import.

Without compilation a function is its code object, so the code of a changed source is put into
every function that the old one made. What runs at import (constants, classes, defaults) cannot be
changed like that; such a mutant is imported anew.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType


def codes(outer: CodeType) -> Iterator[CodeType]:
    """Yield the code of every function and class inside another, in the order of the source."""
    for constant in outer.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes(constant)


def shallow(code: CodeType) -> tuple[object, ...]:
    """Return what a code object does itself, without the functions inside it."""
    own = tuple(
        "code" if isinstance(constant, CodeType) else (type(constant), constant)
        for constant in code.co_consts
    )
    return code.co_code, own, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars


def changed(path: Path, old: bytes, new: bytes) -> list[tuple[CodeType, CodeType]] | None:
    """Return pairs of function codes that differ; None where what runs at import does."""
    first, second = (compile(source, str(path), "exec", dont_inherit=True) for source in (old, new))
    before, after = [first, *codes(first)], [second, *codes(second)]
    if len(before) != len(after):
        return None
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if shallow(a) != shallow(b)]
    functions = all(a.co_flags & 0x2 for a, _ in pairs)  # CO_NEWLOCALS: no module, no class body
    return pairs if functions else None


def swap(path: Path, old: bytes, new: bytes) -> bool:
    """Put changed code into the functions in memory; False where a new import is needed."""
    pairs = changed(path, old, new)
    if pairs is None:
        return False
    names = {(a.co_qualname, a.co_firstlineno): b for a, b in pairs}
    found, places = [], set()
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == str(path):
            place = function.__code__.co_qualname, function.__code__.co_firstlineno
            if place in names:
                found.append((function, names[place]))
                places.add(place)
    if places != names.keys():
        return False  # a function inside another: made when that runs, from the old code
    if any(f.__code__.co_freevars != code.co_freevars for f, code in found):
        return False
    for function, code in found:
        function.__code__ = code
    return True


def forget(root: Path) -> None:
    """Drop the package and its tests from memory, so that they are imported anew."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if file.startswith((str(root / "src"), str(root / "tests"))):
            del sys.modules[name]
