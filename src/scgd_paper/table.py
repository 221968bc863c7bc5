"""The tidy results table: one CSV per experiment, written run by run, resumed exactly.

A run's rows are appended in one write and which rows they are is known beforehand, so a run that is
not whole can be told from one that is: a kill can only tear the last run, which is cut off and done
again. Anything else that is wrong with a table is named and left alone.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

__all__ = ["COLUMNS", "WEIGHT_COLUMNS", "Curve", "Key", "Run", "Shape", "Table", "read"]

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


@dataclass(frozen=True)
class Shape:
    """Which rows a whole run of a method has.

    Parameters
    ----------
    measures, passes
        What is recorded, and when.
    n_weights
        Entries of the sampling distribution it learns; 0 if it learns none.
    """

    measures: tuple[str, ...]
    passes: Array
    n_weights: int = 0

    def rows(self) -> list[tuple[str, str]]:
        """Return pass and measure of every row, as they are written."""
        passes = [f"{k:g}" for k in self.passes.tolist()]
        return [(k, measure) for measure in self.measures for k in passes]


Shapes = Mapping[tuple[str, ...], Shape]
"""The shape of every method's runs, by what comes before the run's number in a :class:`Key`."""


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
    """What one run brings home: its curves and, where it learned one, its sampling distribution.

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
        """Return the rows of the table of sampling distributions."""
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
    shapes
        Which rows a whole run has, for every method that may be in the table.
    """

    def __init__(self, path: Path, shapes: Shapes) -> None:
        self.path = path
        self.weights_path = path.with_name(f"{path.stem}.weights.csv")
        with ExitStack() as stack:
            self.file = stack.enter_context(self._open(path))
            self.weights_file = stack.enter_context(self._open(self.weights_path))
            self.done, end = whole_runs(path, shapes)
            weights_end = whole_laws(self.weights_path, self.done, shapes)
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


def whole_runs(path: Path, shapes: Shapes) -> tuple[set[Key], int]:
    """Return the whole runs of a table and where the last of them ends, in bytes."""
    done: set[Key] = set()
    position = end = 0
    run: Key | None = None
    expected: list[tuple[str, str]] = []
    for number, line in whole_lines(path, COLUMNS):
        position += len(line)
        if number == 1:
            end = position
            continue
        key, row = parse_row(path, number, line)
        if run is None:
            run, expected = key, shape_of(path, number, key, shapes).rows()[::-1]
        if key != run:
            raise damaged(path, number, f"{name_of(run)} is not whole")
        if key in done:
            raise damaged(path, number, f"{name_of(key)} is here twice")
        if row != (wanted := expected.pop()):
            found, due = (f"pass {k} of {measure}" for k, measure in (row, wanted))
            raise damaged(path, number, f"{name_of(key)} has {found} where {due} should be")
        if not expected:
            done.add(key)
            run, end = None, position
    return done, end


def whole_laws(path: Path, done: set[Key], shapes: Shapes) -> int:
    """Return where the laws of whole runs end, in bytes: those of torn runs come last."""
    n_found = dict.fromkeys(done, 0)
    position = end = 0
    torn: Key | None = None
    for number, line in whole_lines(path, WEIGHT_COLUMNS):
        position += len(line)
        if number == 1:
            end = position
            continue
        key, coordinate = parse_weight(path, number, line)
        shape = shape_of(path, number, key, shapes)
        if key not in done:
            torn = key
            continue
        if torn is not None:
            raise damaged(path, number - 1, f"{name_of(torn)} is not in {table_of(path)}")
        if coordinate != n_found[key] or coordinate >= shape.n_weights:
            raise damaged(path, number, f"coordinate {coordinate} of {name_of(key)} is out of turn")
        n_found[key] += 1
        end = position
    for key, n in n_found.items():
        if n != shapes[key[:4]].n_weights:
            what = f"the law of {name_of(key)} is not whole"
            raise CommandError(f"{path}: {what}; {law_remedy(path)}")
    return end


def whole_lines(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    """Return the lines that a kill did not tear, numbered from 1, the header checked."""
    header = ",".join(columns).encode() + b"\n"
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            whole = line.endswith(b"\n")
            if number == 1 and not (header == line or (not whole and header.startswith(line))):
                check_header(path, line, columns)
            if whole:
                yield number, line


def shape_of(path: Path, number: int, key: Key, shapes: Shapes) -> Shape:
    """Return which rows a run has; name a row of a method that does not exist."""
    if key[:4] not in shapes:
        found = " ".join(key[:4])
        raise damaged(path, number, f"there is no method {found!r} in {table_of(path)}")
    return shapes[key[:4]]


def name_of(key: Key) -> str:
    """Return a run's name for a sentence."""
    return f"run {key.run} of {key.method} on {key.panel}, {key.settings} settings,"


def table_of(path: Path) -> str:
    """Return the name of the table of results that belongs to a table of laws."""
    return path.name.replace(".weights.csv", ".csv")


REMEDY = "move the file away or mend that line, then run again"


def law_remedy(path: Path) -> str:
    """Return what to do about a damaged law: runs that count as done are not done again."""
    other = table_of(path)
    return f"mend it, or delete that run's lines here and in {other}, then run again"


def damaged(path: Path, number: int, what: str) -> CommandError:
    """Return the error that names a line."""
    remedy = law_remedy(path) if path.name.endswith(".weights.csv") else REMEDY
    return CommandError(f"{path}, line {number}: {what}; {remedy}")


def check_header(path: Path, line: bytes, columns: Sequence[str]) -> None:
    """Refuse a file that is not such a table."""
    if line.decode("utf-8", "replace").strip() != ",".join(columns):
        raise CommandError(
            f"{path}, line 1: not a table with columns {', '.join(columns)}; move the file away"
        )


def parse_row(path: Path, number: int, line: bytes) -> tuple[Key, tuple[str, str]]:
    """Return a row's run, and its pass and measure; name a row that makes no sense."""
    cells = line.decode("utf-8", "replace").strip().split(",")
    try:
        if len(cells) != len(COLUMNS):
            raise ValueError
        for cell in cells[5:9]:
            float(cell)
        return Key(cells[0], cells[1], cells[2], cells[3], int(cells[4])), (cells[5], cells[9])
    except ValueError:
        raise damaged(path, number, "not a row of results") from None


def parse_weight(path: Path, number: int, line: bytes) -> tuple[Key, int]:
    """Return a row's run and coordinate; name a row that makes no sense."""
    cells = line.decode("utf-8", "replace").strip().split(",")
    try:
        if len(cells) != len(WEIGHT_COLUMNS):
            raise ValueError
        for cell in cells[6:]:
            float(cell)
        return Key(cells[0], cells[1], cells[2], cells[3], int(cells[4])), int(cells[5])
    except ValueError:
        raise damaged(path, number, "not a row of weights") from None


def read(path: Path, columns: Sequence[str] = COLUMNS) -> Any:
    """Return a table as a pandas DataFrame; name the file and what is wrong with it if it is."""
    import pandas as pd

    try:
        with path.open("rb") as file:
            check_header(path, file.readline(), columns)
        text = dict.fromkeys(columns[:4], "category") | dict.fromkeys(columns[9:], "str")
        numbers = dict.fromkeys(columns[5:9], "float64")
        # Only what a run writes for a number that is not finite; an empty cell is damage.
        table = pd.read_csv(  # a whole path: a folder may be called ~
            path.absolute(), dtype={**text, **numbers, "run": "int64"}, keep_default_na=False,
            na_values={c: ["nan"] for c in numbers},
        )  # fmt: skip
    except (ValueError, OSError) as error:
        raise CommandError(f"cannot read {path}: {error}; {REMEDY}") from None
    check_counts(path, table, columns)
    return table


def check_counts(path: Path, table: Any, columns: Sequence[str]) -> None:
    """Refuse a table in which a run has fewer rows than another of its method."""
    kind = ["panel", "settings", "method", *columns[9:]]
    counts = table.groupby([*kind, "run"], observed=True, sort=False).size()
    usual = counts.groupby(kind, observed=True).transform("max")
    odd = counts[counts != usual]
    if len(odd):
        panel, settings, method, *_, run = odd.index[0]
        raise CommandError(
            f"{path}: run {run} of {method} on {panel}, {settings} settings, has {odd.iloc[0]} "
            f"rows where another has {usual.loc[odd.index[0]]}; run the experiment again: it goes "
            "on after a kill and names any other damage"
        )
