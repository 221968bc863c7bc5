"""Run tests against a mutant, in a forked child that has imported everything but the package."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from covering import QUIET
from places import Mutant

MEMORY = 8 << 30


def mutate_imports(path: Path, source: bytes) -> None:
    """Have the import of one file see another source."""
    get_code = SourceFileLoader.get_code

    def changed(self: Any, fullname: str) -> Any:
        if self.path == str(path):
            return compile(source, str(path), "exec", dont_inherit=True)
        return get_code(self, fullname)

    SourceFileLoader.get_code = changed  # type: ignore[method-assign]


def run_tests(path: Path, source: bytes, tests: list[str]) -> int:
    """Run the tests until one fails; return what pytest says."""
    import pytest

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    mutate_imports(path, source)
    sys.dont_write_bytecode = True
    parts = path.with_suffix("").parts
    import_module(".".join(parts[parts.index("src") + 1 :]))  # before pytest reads it for examples
    imported = "ignore::pytest.PytestAssertRewriteWarning"  # hypothesis, before the fork
    return int(pytest.main([*QUIET, "-W", imported, "-x", "--hypothesis-seed=0", *tests]))


def start(root: Path, mutant: Mutant, tests: list[str]) -> int:
    """Fork a child that judges a mutant."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setsid()
            path = root / mutant.file
            code = run_tests(path, mutant.of(path.read_bytes()), tests)
        finally:
            os._exit(code)
    return child


def warm_up() -> None:
    """Import what every child needs; what is compiled stays plain Python."""
    import hypothesis
    import numba
    import pytest
    import scipy.optimize
    import scipy.stats

    assert numba.config.DISABLE_JIT and pytest and scipy and hypothesis


def judge(
    root: Path, work: list[tuple[Mutant, list[str], float]], jobs: int
) -> Iterator[tuple[Mutant, str, float]]:
    """Yield every mutant with "noticed", "survived" or "timeout", and the seconds it took.

    Each piece of work has the seconds after which it counts as a loop without end.
    """
    warm_up()
    check_control(root, work)
    queue, running = list(reversed(work)), {}
    while queue or running:
        while queue and len(running) < jobs:
            mutant, tests, limit = queue.pop()
            running[start(root, mutant, tests)] = (mutant, time.monotonic(), limit)
        for child, (mutant, began, limit) in list(running.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            spent = time.monotonic() - began
            if ended:
                del running[child]
                yield mutant, "survived" if status == 0 else "noticed", spent
            elif spent > limit:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                del running[child]
                yield mutant, "timeout", spent
        time.sleep(0.02)


def check_control(root: Path, work: list[tuple[Mutant, list[str], float]]) -> None:
    """Refuse to judge where a source without any change is "noticed" as well."""
    for mutant, tests, _ in work[:1]:
        unchanged = replace(mutant, end=mutant.start, new="")
        if os.waitpid(start(root, unchanged, tests), 0)[1] != 0:
            raise RuntimeError(f"tests fail on the source as it is: {tests}")
