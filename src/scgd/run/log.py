"""A CSV file that grows by a row per evaluation, and is whole after a kill.

Every row is one write to the end of the file. The checkpoint of the run has the rows, too: a run
that is taken up writes those that it knows into a new file, and no number is there twice.
"""

from __future__ import annotations

import csv
import io
import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from scgd.checks import shown
from scgd.errors import cell
from scgd.evaluations import Points
from scgd.files import settled
from scgd.spaces import Space
from scgd.typing import Array, Floats

WIDEST = 100
"""Coordinates that get a column each; beyond, a row tells what has changed since the last one."""
NAME = "reporting (log)"
"""What errors call the argument: a path given as ``reporting``, or ``log`` of a Reporting."""
HEAD = ["number", "member", "value", "seconds"]
Row = tuple[int, str, float, float]


class Log:
    """The file.

    Parameters
    ----------
    path
        Where it is.
    start
        Where the run starts: what the first row is compared with.
    space
        The space that points belong to: parameters are then the columns, and the last one is the
        point as the search sees it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        start: Floats,
        space: Space | None = None,
    ) -> None:
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            raise TypeError(f"{NAME} must be the path of a file, got {shown(path)}")
        self.path = settled(path, NAME)
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"{NAME}: there is no folder {os.path.dirname(path)}")
        self.start, self.space = start.copy(), space
        self.file: io.FileIO | None = None

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        if self.space is not None:
            names = [*map(cell, self.space.names), "point"]
        elif self.start.size <= WIDEST:
            names = [f"x{k}" for k in range(self.start.size)]
        else:
            names = ["changes"]
        return [*HEAD, *names]

    def begin(self, rows: Iterable[Row], points: Points, *, resumed: bool) -> None:
        """Start a file, with rows so far; one that is there already is kept under another name."""
        if self.path.exists() and self.path.stat().st_size:
            if resumed:
                self._check_columns()
            self.path.replace(self.path.with_name(f"{self.path.name}.previous"))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self.file = io.FileIO(os.open(self.path, flags, 0o666), "w")
        self._append(self.columns)
        x, every = self.start.copy(), np.arange(self.start.size)
        for row, (where, entries) in zip(rows, points.changes(), strict=True):
            x[where] = entries
            self.write(*row, every[where], x)

    def _check_columns(self) -> None:
        """Refuse the file of another run."""
        with open(self.path, newline="", errors="replace") as file:
            if next(csv.reader(file), None) != self.columns:
                raise ValueError(f"{NAME}: {self.path} has other columns; it is not of this run")

    def write(
        self, number: int, member: str, value: float, seconds: float, changed: Array, x: Floats
    ) -> None:
        """Add a row."""
        row = [str(number), member, repr(value), f"{seconds:.6f}"]
        if self.space is not None:
            row += [*self._params(x, self.space), " ".join(map(repr, x.tolist()))]
        elif x.size <= WIDEST:
            row += map(repr, x.tolist())
        else:
            pairs = zip(changed.tolist(), x[changed].tolist(), strict=True)
            row.append(" ".join(f"{k}={entry!r}" for k, entry in pairs))
        self._append(row)

    def _params(self, x: Floats, space: Space) -> list[str]:
        """Return the parameters of a point; nothing for one that does not exist there."""
        found = space.decode(x)
        return [
            cell(str(value))
            for name, place in space.places.items()
            for value in several(found.get(name), place.stop - place.start)
        ]

    def _append(self, row: Sequence[str]) -> None:
        if self.file is None:
            return
        try:
            self.file.write(line(row).encode())
        except OSError as error:  # a full disk does not end the run
            warnings.warn(
                f"{NAME}: {self.path} cannot be written ({error}); it ends here", RuntimeWarning,
                stacklevel=2,
            )  # fmt: skip
            self.close()

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            self.file.close()
            self.file = None


def several(value: Any, n: int) -> list[Any]:
    """Return a parameter as so many values; blanks where it does not exist."""
    if value is None:
        return [""] * n
    return list(value) if isinstance(value, np.ndarray) else [value]


def line(row: Sequence[str]) -> str:
    """Return a row of a CSV file."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(row)
    return out.getvalue()
