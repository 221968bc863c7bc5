"""Run tests against a mutant, in a forked child that has imported everything.

Where the change is inside a function its code is exchanged (:mod:`swapping`); else the child
imports the package again.
"""

from __future__ import annotations

import gc
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
from typing import Any, NamedTuple

from covering import QUIET
from places import Mutant
from swapping import forget, swap

MEMORY = 8 << 30
WAITING = 10.0
"""Times its processor time that a child may take."""
ANEW = 99
"""What a child says when it cannot judge without a new import."""
ENDS = {0: "survived", -signal.SIGXCPU: "timeout"}
LEAN = [
    "--assert=plain", "-p", "_hypothesis_pytestplugin", "-p", "no:unraisableexception",
    "-p", "no:threadexception", "-W", "ignore::pytest.PytestAssertRewriteWarning",
]  # fmt: skip
"""No plugin but one, no messages: most of the time of a child would go there."""


class Work(NamedTuple):
    """A mutant, its tests, the processor time it may take, and whether it must be imported anew.

    ``spent`` is the processor time of a first attempt without that.
    """

    mutant: Mutant
    tests: list[str]
    limit: float
    anew: bool
    spent: float = 0.0


def mutate_imports(path: Path, source: bytes) -> None:
    """Have the import of one file see another source."""
    get_code = SourceFileLoader.get_code

    def changed(self: Any, fullname: str) -> Any:
        if self.path == str(path):
            return compile(source, str(path), "exec", dont_inherit=True)
        return get_code(self, fullname)

    SourceFileLoader.get_code = changed  # type: ignore[method-assign]


def run_tests(root: Path, path: Path, source: bytes, tests: list[str], anew: bool) -> int:
    """Run the tests until one fails; return what pytest says, or ANEW to be called with that."""
    import pytest

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.dont_write_bytecode = True
    if not anew and not swap(path, path.read_bytes(), source):
        return ANEW
    if anew:
        forget(root)
        mutate_imports(path, source)
        import_module(dotted(path))  # before pytest reads it for examples
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return int(pytest.main([*QUIET, *LEAN, "-x", "--hypothesis-seed=0", *tests]))


def dotted(path: Path) -> str:
    """Return the name of a module of the package, or of a test, which stands in no package."""
    parts = path.with_suffix("").parts
    return ".".join(parts[parts.index("src") + 1 :]) if "src" in parts else path.stem


def start(root: Path, work: Work) -> int:
    """Fork a child that judges a mutant."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(work.limit), int(work.limit) + 5))
            path = root / work.mutant.file
            source = work.mutant.of(path.read_bytes())
            code = run_tests(root, path, source, work.tests, work.anew)
        finally:
            os._exit(code)
    return child


def warm_up(root: Path, files: set[str]) -> None:
    """Import what every child needs; what is compiled stays plain Python."""
    import hypothesis
    import numba
    import pytest
    import scipy.optimize
    import scipy.stats

    assert numba.config.DISABLE_JIT and pytest and scipy and hypothesis
    sys.path.insert(0, str(root / "tests"))  # helpers
    for file in sorted(files):
        path = root / file
        if "src" not in path.parts and str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
        import_module(dotted(path))
    gc.freeze()


def judge(root: Path, work: list[Work], jobs: int) -> Iterator[tuple[Mutant, str, float]]:
    """Yield every mutant with "noticed", "survived" or "timeout", and its processor seconds.

    Who uses more processor time than allowed counts as a loop without end (cores may be busy:
    waiting is cut much later). Code is exchanged where that can be done and the line runs in tests
    alone; else the child imports the package anew.
    """
    warm_up(root, {test.split("::")[0] for piece in work for test in piece.tests})
    check_control(root, work)
    queue, running = list(reversed(work)), {}
    while queue or running:
        while queue and len(running) < jobs:
            piece = queue.pop()
            running[start(root, piece)] = (piece, time.monotonic())
        for child, (piece, began) in list(running.items()):
            ended, status, used = os.wait4(child, os.WNOHANG)
            late = not ended and time.monotonic() - began > WAITING * piece.limit
            if late:
                os.killpg(child, signal.SIGKILL)
                ended, status, used = os.wait4(child, 0)
            if not ended:
                continue
            del running[child]
            code, spent = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
            piece = piece._replace(spent=piece.spent + spent)
            if code == ANEW:
                queue.append(piece._replace(anew=True))
            else:
                found = "timeout" if late else ENDS.get(code, "noticed")
                yield piece.mutant, found, piece.spent
        time.sleep(0.02)


def check_control(root: Path, work: list[Work]) -> None:
    """Refuse to judge where a source without any change is "noticed" as well."""
    for piece in work[:1]:
        same = piece._replace(mutant=replace(piece.mutant, end=piece.mutant.start, new=""))
        starts = (start(root, same._replace(anew=anew)) for anew in (False, True))
        if any(os.waitpid(child, 0)[1] for child in starts):
            raise RuntimeError(f"tests fail on the source as it is: {piece.tests}")
