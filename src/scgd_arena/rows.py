"""Rows of results: one line for a cell, a method and some instances, in a file that only grows.

A line keeps what a median and a data profile need and no more: the gap of every instance, and
after how many evaluations it had come down to a tenth, a hundredth and a thousandth of the start's
gap, on a grid of ``GRID`` steps per decade, two digits each.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from math import ceil, inf, log10
from pathlib import Path

import numpy as np

from scgd.errors import UsageError

__all__ = ["STORED", "Line", "Rows", "Run", "packed"]

HEADER = ("cell", "method", "first", "micros", "spent", "runs", "note")
GRID = 19
STORED = Path(str(files("scgd_arena"))) / "rows"
"""Where the rows of the repository are: ``peers.csv``, ``auto.csv`` and so on."""


@dataclass(frozen=True)
class Run:
    """What is kept of one run."""

    gap: float
    reached: tuple[float, ...] = ()

    def text(self) -> str:
        """Return it as it is stored.

        Examples
        --------
        >>> Run(0.0123456, (100.0, 5000.0, float("inf"))).text()
        '0.0123:3871--'
        >>> Run(2.0).text()
        '2'
        """
        gap = f"{self.gap:.3g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
        return f"{gap}:{''.join(map(code, self.reached))}" if self.reached else gap

    @classmethod
    def parse(cls, text: str) -> Run:
        """Return a run from its text.

        Examples
        --------
        >>> Run.parse("0.0123:3871--").reached[2]
        inf
        """
        gap, _, codes = text.partition(":")
        pairs = [codes[i : i + 2] for i in range(0, len(codes), 2)]
        reached = tuple(inf if pair == "--" else 10 ** (int(pair) / GRID) for pair in pairs)
        return cls(float(gap), reached)


def code(evaluations: float) -> str:
    """Return a number of evaluations as two digits, rounded up on the grid."""
    if evaluations == inf:
        return "--"
    return f"{min(99, ceil(GRID * log10(max(1.0, evaluations)) - 1e-9)):02d}"


@dataclass(frozen=True)
class Line:
    """The runs of one method on one cell.

    Attributes
    ----------
    cell, method
        What was run.
    first
        The first instance; the others follow one by one.
    micros
        Median CPU time per evaluation in microseconds, f included.
    spent
        Smallest share of the budget that was used, in percent.
    runs
        One per instance.
    note
        How it was set, or what failed.
    """

    cell: str
    method: str
    first: int
    micros: int
    spent: int
    runs: tuple[Run, ...]
    note: str = ""

    def fields(self) -> tuple[str, ...]:
        """Return the fields of the file."""
        runs = " ".join(run.text() for run in self.runs)
        numbers = (str(self.first), str(self.micros), str(self.spent))
        return self.cell, self.method, *numbers, runs, self.note

    @classmethod
    def parse(cls, fields: Sequence[str]) -> Line:
        """Return a line from the fields of the file."""
        cell, method, first, micros, spent, runs, note = fields
        parsed = tuple(Run.parse(run) for run in runs.split(" "))
        return cls(cell, method, int(first), int(micros), int(spent), parsed, note)


class Rows:
    """A file of lines; a run that is in it is not made again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[Line] = []
        self.runs: dict[tuple[str, str], dict[int, Run]] = {}
        if path.exists():
            drop_torn_line(path)
            for line in read(path):
                self.remember(line)

    def remember(self, line: Line) -> None:
        """Keep a line in memory; a later one replaces the runs of an earlier one."""
        self.lines.append(line)
        known = self.runs.setdefault((line.cell, line.method), {})
        known.update({line.first + i: run for i, run in enumerate(line.runs)})

    def add(self, line: Line) -> None:
        """Append a line to the file."""
        self.remember(line)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = not self.path.exists() or self.path.stat().st_size == 0
        with self.path.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if fresh:
                writer.writerow(HEADER)
            writer.writerow(line.fields())

    def pack(self) -> None:
        """Write the file anew: sorted, and one line where instances follow each other."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(HEADER)
        self.lines = packed(self.lines)
        writer.writerows(line.fields() for line in self.lines)
        part = self.path.with_suffix(".part")
        part.write_text(text.getvalue())
        part.replace(self.path)

    def forget(self, cells: Collection[str], instances: Collection[int]) -> None:
        """Drop the runs of some instances of some cells, here and in the file."""
        lines, self.lines, self.runs = self.lines, [], {}
        for line in lines:
            for i, run in enumerate(line.runs, start=line.first):
                if line.cell not in cells or i not in instances:
                    self.remember(replace(line, first=i, runs=(run,)))
        if lines:
            self.pack()

    def missing(self, cell: str, method: str, instances: Iterable[int]) -> list[int]:
        """Return the instances that have no run yet."""
        return [i for i in instances if i not in self.runs.get((cell, method), {})]

    def gap(self, cell: str, method: str, instances: Iterable[int]) -> float:
        """Return the median gap over instances; NaN unless all of them are there."""
        known = self.runs.get((cell, method), {})
        gaps = [known[i].gap if i in known else float("nan") for i in instances]
        return float(np.median(gaps)) if gaps else float("nan")

    def micros(self, cells: Collection[str], method: str) -> float:
        """Return the median CPU time per evaluation of a method on some cells; NaN without rows."""
        found = [ln.micros for ln in self.lines if ln.method == method and ln.cell in cells]
        return float(np.median(found)) if found else float("nan")

    def methods(self, cell: str) -> list[str]:
        """Return who was run on a cell."""
        return self.by_cell().get(cell, [])

    def by_cell(self) -> dict[str, list[str]]:
        """Return the methods of every cell."""
        found: dict[str, list[str]] = {}
        for cell, method in self.runs:
            found.setdefault(cell, []).append(method)
        return found


def packed(lines: Iterable[Line]) -> list[Line]:
    """Return the same runs in as few lines as can be; of two of an instance the later counts."""
    parts: dict[tuple[str, str], dict[int, tuple[Run, Line]]] = {}
    for line in lines:
        at = parts.setdefault((line.cell, line.method), {})
        at.update({line.first + i: (run, line) for i, run in enumerate(line.runs)})
    found = []
    for cell, method in sorted(parts):
        at = parts[cell, method]
        for chunk in consecutive(sorted(at)):
            runs, whence = zip(*(at[i] for i in chunk), strict=True)
            micros = round(float(np.median([line.micros for line in whence])))
            note = "; ".join(dict.fromkeys(line.note for line in whence if line.note))
            spent = min(line.spent for line in whence)
            found.append(Line(cell, method, chunk[0], micros, spent, runs, note))
    return found


def consecutive(instances: Sequence[int]) -> list[Sequence[int]]:
    """Return the runs of consecutive numbers.

    Examples
    --------
    >>> consecutive([1, 2, 5])
    [[1, 2], [5]]
    """
    breaks = [i for i in range(1, len(instances)) if instances[i] != instances[i - 1] + 1]
    edges = [0, *breaks, len(instances)]
    return [instances[a:b] for a, b in itertools.pairwise(edges)]


def drop_torn_line(path: Path) -> None:
    """Cut off a last line that a killed run left unfinished."""
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        path.write_bytes(whole)


def read(path: Path) -> list[Line]:
    """Read the lines of a file."""
    with path.open(newline="") as file:
        reader = csv.reader(file)
        if tuple(next(reader, HEADER)) != HEADER:
            raise refused(path, "its first line is another table's")
        try:
            return [Line.parse(fields) for fields in reader]
        except ValueError as error:
            raise refused(path, str(error)) from None


def refused(path: Path, why: str) -> UsageError:
    """Return the error of a file that is not ours."""
    return UsageError(
        f"{path} is not a table of this arena ({why}); move it away, or choose another folder "
        "with --out"
    )
