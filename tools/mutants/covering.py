"""Which test runs which line: recorded once per group of tests, without compiled code.

Run as a program it records one group: ``python covering.py OUT SOURCES -- TESTS``. Tests that fail,
are skipped or take too long where nothing is compiled are left out; how many were too slow is kept.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import coverage
import pytest

LONGEST = 2.0
"""Seconds of processor time that a test may take while it is recorded."""
WAITING = 20.0
"""Seconds that it may wait."""
IMPORT = ""
"""The context of what runs outside of tests."""
QUIET = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::RuntimeWarning"]
"""Random words overflow on purpose, which plain Python reports and compiled code does not."""


class Record(NamedTuple):
    """What the tests of a group run.

    ``tests`` has their seconds and lines by file, ``imported`` the lines that run outside of tests
    (imports, fixtures), ``slow`` those that were left out for their time; ``seconds`` is the
    processor time of recording.
    """

    tests: dict[str, tuple[float, dict[str, list[int]]]]
    imported: dict[str, list[int]]
    slow: list[str]
    seconds: float


class TooSlow(BaseException):
    """Ends a test that takes too long; no test catches it."""


def give_up(_: int, frame: Any) -> None:
    """Leave the test; not while coverage holds its lock, which would stay locked."""
    if "coverage" in Path(frame.f_code.co_filename).parts:
        signal.setitimer(signal.ITIMER_PROF, 1e-3, LONGEST)
        return
    raise TooSlow


class Recorder:
    """A plugin of pytest: one context of coverage and one duration per test."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.seconds: dict[str, float] = {}
        self.slow: list[str] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: Any) -> Any:
        """Run a test against the clock."""
        self.measured.switch_context(item.nodeid)
        signal.signal(signal.SIGPROF, give_up)
        signal.signal(signal.SIGALRM, give_up)
        signal.setitimer(signal.ITIMER_PROF, LONGEST, LONGEST)
        signal.setitimer(signal.ITIMER_REAL, WAITING, WAITING)  # again: it may wait for a thread
        began = time.process_time()
        outcome = yield
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        self.measured.switch_context(IMPORT)
        if outcome.excinfo is None:
            self.seconds[item.nodeid] = time.process_time() - began
        elif outcome.excinfo[0] is TooSlow:
            self.slow.append(item.nodeid)
            outcome.force_exception(RuntimeError("too slow"))


def write_record(out: Path, sources: list[str], tests: list[str]) -> None:
    """Run the tests; write a :class:`Record`."""
    root = Path.cwd()
    measured = coverage.Coverage(data_file=None, include=[str(root / name) for name in sources])
    recorder = Recorder(measured)
    measured.start()
    pytest.main(
        [*QUIET, "--hypothesis-seed=0", "-m", "not slow and not faults", *tests], [recorder]
    )
    measured.stop()
    data = measured.get_data()
    lines: dict[str, dict[str, list[int]]] = {test: {} for test in (IMPORT, *recorder.seconds)}
    for path in data.measured_files():
        name = Path(path).relative_to(root).as_posix()
        for line, contexts in data.contexts_by_lineno(path).items():
            for test in contexts:
                if test in lines:
                    lines[test].setdefault(name, []).append(line)
    found = {test: (seconds, lines[test]) for test, seconds in recorder.seconds.items()}
    record = Record(found, lines[IMPORT], recorder.slow, time.process_time())
    out.write_text(json.dumps(record._asdict()))


def recorded(out: Path, sources: list[str], tests: list[str]) -> Record:
    """Return the record of a group, made now where there is none."""
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        print(f"recording what {' '.join(tests)} runs ...", flush=True)
        paths = [str(Path.cwd() / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        here = {"PYTHONPATH": os.pathsep.join(paths), "NUMBA_DISABLE_JIT": "1"}
        command = [sys.executable, __file__, str(out), *sources, "--", *tests]
        subprocess.run(command, env={**os.environ, **here}, check=True, stdout=subprocess.DEVNULL)
    found = Record(**json.loads(out.read_text()))
    if not any(lines for _, lines in found.tests.values()):
        out.unlink()
        raise RuntimeError(f"no test of {' '.join(tests)} runs a line of these sources")
    if found.slow:
        print(f"{len(found.slow)} tests take more than {LONGEST:g} s and are left out", flush=True)
    return found


if __name__ == "__main__":
    middle = sys.argv.index("--")
    write_record(Path(sys.argv[1]), sys.argv[2:middle], sys.argv[middle + 1 :])
    os._exit(0)  # whatever threads a test that was left has left
