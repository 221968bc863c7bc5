"""A CSV file that grows by a row per evaluation, is whole after a kill, and resumes.

Every row is one write to the end of the file. A run that is taken up may have saved its checkpoint
before the last rows were written: those evaluations are made again, so their rows are dropped first
and no number is there twice.
"""

from __future__ import annotations

import csv
import io
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scgd.checks import shown
from scgd.errors import cell
from scgd.evaluations import Points
from scgd.files import replacing, settled
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

    # ---- opening ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start a file; one that is there already is kept under another name."""
        if self.path.exists() and self.path.stat().st_size:
            self.path.replace(self.path.with_name(f"{self.path.name}.previous"))
        self._open()
        self._append(self.columns)

    def go_on(self, known: Callable[[int], bool]) -> tuple[list[Row], Points]:
        """Take up a file: keep the rows of evaluations that the run knows, and return them."""
        text = self.path.read_bytes() if self.path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]  # without a row that was cut
        if not whole:
            self.begin()
            return [], Points(self.start)
        head, *rows = csv.reader(io.StringIO(whole.decode(), newline=""))
        if head != self.columns:
            raise ValueError(f"{NAME}: {self.path} has other columns; it is not of this run")
        try:
            kept = [row for row in rows if known(int(row[0]))]
            if self.start.size > WIDEST and rows[: len(kept)] != kept:
                raise ValueError("rows are missing between others")
            parsed = [(int(a), b, float(c), float(d)) for a, b, c, d, *_ in kept]
            points = self._points(kept)
        except (ValueError, IndexError) as error:
            raise ValueError(f"{NAME}: {self.path} is not a log of this run ({error})") from None
        if len(kept) < len(rows) or len(whole) < len(text):
            with replacing(self.path) as file:
                file.write("".join(map(line, [head, *kept])).encode())
        self._open()
        return parsed, points

    def _points(self, rows: Sequence[Sequence[str]]) -> Points:
        """Return the points of rows."""
        points, last = Points(self.start), self.start.copy()
        for row in rows:
            if self.space is not None or self.start.size <= WIDEST:
                now = np.array([float(entry) for entry in self._entries(row)])
                if now.shape != last.shape:
                    raise ValueError(f"a point has {now.size} numbers")
                coords: Array = np.flatnonzero(now != last)
                last = now
                points.add(coords, now[coords])
            else:
                pairs = [pair.split("=") for pair in row[4].split()]
                points.add(
                    np.array([int(k) for k, _ in pairs], np.int64),
                    np.array([float(entry) for _, entry in pairs]),
                )
        return points

    def _entries(self, row: Sequence[str]) -> Sequence[str]:
        return row[4:] if self.space is None else row[-1].split()

    # ---- writing ---------------------------------------------------------------------------------

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self.file = io.FileIO(os.open(self.path, flags, 0o666), "w")

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
