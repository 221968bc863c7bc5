"""The tidy results table: one CSV per experiment, written run by run, resumed exactly.

A run's rows are appended in one write and end with its last pass, so a run that is not whole can be
told from one that is: a kill can only tear the last run, which is cut off and done again. Anything
else that is wrong with a table is named and left alone.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scgd.errors import CommandError
from scgd.typing import Array

try:
    import fcntl
except ImportError:  # Windows: two runs into one folder are then not noticed
    fcntl = None  # type: ignore[assignment]

__all__ = ["COLUMNS", "WEIGHT_COLUMNS", "Curve", "Key", "Run", "Table", "read"]

COLUMNS = (
    "experiment",
    "panel",
    "settings",
    "method",
    "run",
    "pass",
    "queries",
    "seconds",
    "value",
    "measure",
)
WEIGHT_COLUMNS = (
    "experiment",
    "panel",
    "settings",
    "method",
    "run",
    "coordinate",
    "size",
    "weight",
)


class Key(NamedTuple):
    """What names a run in a table."""

    experiment: str
    panel: str
    settings: str
    method: str
    run: int


@dataclass
class Curve:
    """One measure of one run along its passes."""

    measure: str
    passes: Array
    queries: Array
    seconds: Array
    values: Array


@dataclass
class Run:
    """What one run brings home: its curves and, where it learned one, its sampling law.

    ``weights`` has one entry per coordinate and ``sizes`` what to order the coordinates by in the
    picture (the column's standard deviation, a pixel's number).
    """

    key: Key
    curves: list[Curve] = field(default_factory=list)
    sizes: Array | None = None
    weights: Array | None = None

    def rows(self) -> list[list[Any]]:
        """Return the rows of the results table."""
        head = list(self.key)
        rows = []
        for curve in self.curves:
            columns = (curve.passes, curve.queries, curve.seconds, curve.values)
            for k, q, s, v in zip(*(np.asarray(c).tolist() for c in columns), strict=True):
                rows.append([*head, f"{k:g}", f"{q:.0f}", f"{s:.4g}", f"{v:.10g}", curve.measure])
        return rows

    def weight_rows(self) -> list[list[Any]]:
        """Return the rows of the table of sampling laws."""
        if self.weights is None or self.sizes is None:
            return []
        head, pairs = list(self.key), zip(self.sizes.tolist(), self.weights.tolist(), strict=True)
        return [[*head, k, f"{size:.6g}", f"{w:.6g}"] for k, (size, w) in enumerate(pairs)]


class Table:
    """A results table open for appending, with the runs that are already whole.

    Parameters
    ----------
    path
        The CSV file; made with its header if it is not there.
    ends
        The last pass and the number of measures of every panel: how a whole run ends.
    """

    def __init__(self, path: Path, ends: dict[str, tuple[float, int]]) -> None:
        self.path = path
        self.weights_path = path.with_name(f"{path.stem}.weights.csv")
        with ExitStack() as stack:
            self.file = stack.enter_context(self._open(path))
            self.weights_file = stack.enter_context(self._open(self.weights_path))
            self.done, end = whole_runs(path, ends)
            weights_end = keep_runs(self.weights_path, self.done)
            self._start(self.file, COLUMNS, end)
            self._start(self.weights_file, WEIGHT_COLUMNS, weights_end)
            self._files = stack.pop_all()

    def _open(self, path: Path) -> io.FileIO:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = io.FileIO(path, "a+")
        except OSError as error:
            raise CommandError(f"cannot write {path}: {error.strerror}; use --out DIR") from None
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise CommandError(f"another run is writing {path}; wait for it or use --out") from None
        return file

    def _start(self, file: io.FileIO, columns: Sequence[str], end: int) -> None:
        """Cut what is torn off the end; write the header of a new table."""
        if end == 0:
            file.truncate(0)
            self._write(file, as_csv([columns]))
        elif end < os.fstat(file.fileno()).st_size:
            file.truncate(end)

    def append(self, run: Run) -> None:
        """Add a run; it is there as a whole or not at all."""
        self._write(self.weights_file, as_csv(run.weight_rows()))
        self._write(self.file, as_csv(run.rows()))
        self.done.add(run.key)

    def _write(self, file: io.FileIO, text: str) -> None:
        data, before = text.encode(), os.fstat(file.fileno()).st_size
        try:
            while data:
                data = data[os.write(file.fileno(), data) :]
        except OSError as error:
            file.truncate(before)
            raise CommandError(
                f"cannot write {file.name}: {error.strerror}; what was finished is kept, "
                "the same command goes on from there"
            ) from None

    def close(self) -> None:
        """Close the files."""
        self._files.close()


def as_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV text."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def whole_runs(path: Path, ends: dict[str, tuple[float, int]]) -> tuple[set[Key], int]:
    """Return the whole runs of a table and where the last of them ends, in bytes."""
    lines = path.read_bytes().splitlines(keepends=True)
    done: set[Key] = set()
    if not lines or (len(lines) == 1 and not lines[0].endswith(b"\n")):
        return done, 0
    check_header(path, lines[0], COLUMNS)
    position = end = len(lines[0])
    open_key: Key | None = None
    n_ended = 0
    for number, line in enumerate(lines[1:], start=2):
        torn = number == len(lines) and not line.endswith(b"\n")
        if torn:
            break
        key, last = parse_row(path, number, line)
        if open_key is not None and key != open_key and open_key not in done:
            raise CommandError(
                f"{path}, line {number}: run {open_key.run} of {open_key.method} on "
                f"{open_key.panel} is not whole; {REMEDY}"
            )
        n_ended = n_ended if key == open_key else 0
        open_key = key
        position += len(line)
        last_pass, n_measures = ends.get(key.panel, (last, 1))
        n_ended += last == last_pass
        if n_ended == n_measures:
            done.add(key)
            end = position
    return done, end


REMEDY = "move the file away or mend that line, then run again"


def check_header(path: Path, line: bytes, columns: Sequence[str]) -> None:
    """Refuse a file that is not such a table."""
    if line.decode("utf-8", "replace").strip() != ",".join(columns):
        raise CommandError(f"{path}, line 1: not a table with columns {', '.join(columns)}")


def parse_row(path: Path, number: int, line: bytes) -> tuple[Key, float]:
    """Return the run that a row belongs to and its pass; name a row that makes no sense."""
    cells = line.decode("utf-8", "replace").strip().split(",")
    try:
        if len(cells) != len(COLUMNS):
            raise ValueError
        key = Key(cells[0], cells[1], cells[2], cells[3], int(cells[4]))
        k, *_ = (float(c) for c in cells[5:9])
        if math.isnan(k):
            raise ValueError
    except ValueError:
        raise CommandError(f"{path}, line {number}: not a row of results; {REMEDY}") from None
    return key, k


def keep_runs(path: Path, done: set[Key]) -> int:
    """Return where the weights of whole runs end, in bytes: those of a torn run come last."""
    lines = path.read_bytes().splitlines(keepends=True)
    if not lines or not lines[0].endswith(b"\n"):
        return 0
    check_header(path, lines[0], WEIGHT_COLUMNS)
    end = len(lines[0])
    for number, line in enumerate(lines[1:], start=2):
        cells = line.decode("utf-8", "replace").strip().split(",")
        if len(cells) != len(WEIGHT_COLUMNS) or not line.endswith(b"\n"):
            if number == len(lines):
                break
            raise CommandError(f"{path}, line {number}: not a row of weights; {REMEDY}")
        if Key(*cells[:4], int(cells[4])) not in done:
            break
        end += len(line)
    return end


def read(path: Path, columns: Sequence[str] = COLUMNS) -> Any:
    """Return a table as a pandas DataFrame; name the file and what is wrong with it if it is."""
    import pandas as pd

    try:
        with path.open("rb") as file:
            check_header(path, file.readline(), columns)
        text = dict.fromkeys(columns[:4], "category")
        numbers = {c: "float64" for c in columns[5:] if c != "measure"}
        return pd.read_csv(path, dtype={**text, **numbers, "run": "int64"})
    except (ValueError, OSError) as error:
        raise CommandError(f"cannot read {path}: {error}; {REMEDY}") from None
