"""The table of evaluations: number, member, value, seconds, and where it was kept the point.

Points are kept as the coordinates in which each one differs from the one before, so that a method
that moves a few of a million coordinates pays for those alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from scgd.spaces import Space
from scgd.typing import Array, Floats, Ints

ALL = -1
"""Stands for "all coordinates, in order" among the numbers of coordinates changed."""


class Points:
    """Points as what changes from one to the next.

    Parameters
    ----------
    start
        What the first point is compared with.

    Examples
    --------
    >>> points = Points(np.zeros(3))
    >>> points.add(np.array([1]), np.array([5.0]))
    >>> points.add(np.array([0, 1]), np.array([2.0, 0.0]))
    >>> [x.tolist() for x in points]
    [[0.0, 5.0, 0.0], [2.0, 0.0, 0.0]]
    """

    def __init__(self, start: Floats) -> None:
        self.start = start.copy()
        self.counts, self.entries = array("q"), array("d")
        self.coords = array("I" if start.size < 2**32 else "Q")
        self.n: int | None = None

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.counts) if self.n is None else self.n

    def head(self, n: int) -> Points:
        """Return the first n, without a copy."""
        head = copy(self)
        head.n = n
        return head

    def add(self, coords: Array, entries: Array) -> None:
        """Add a point that differs from the one before in these coordinates."""
        if len(coords) == self.start.size:
            order = np.empty(len(coords), np.int64)
            order[coords] = np.arange(len(coords))
            coords, entries = NOWHERE, np.asarray(entries)[order]
            self.counts.append(ALL)
        else:
            self.counts.append(len(coords))
        kind = np.uint32 if self.coords.typecode == "I" else np.uint64
        self.coords.frombytes(np.asarray(coords).astype(kind).tobytes())
        self.entries.frombytes(np.asarray(entries, np.float64).tobytes())

    def changes(self) -> Iterator[tuple[Any, Floats]]:
        """Yield for each point where it differs from the one before, and its entries there."""
        coords: Array = np.array(self.coords, np.int64)
        entries: Floats = np.array(self.entries)
        first = place = 0
        for count in self.counts[: len(self)]:
            n = self.start.size if count == ALL else count
            where = slice(None) if count == ALL else coords[first : first + n]
            yield where, entries[place : place + n]
            first += 0 if count == ALL else n
            place += n

    def __iter__(self) -> Iterator[Floats]:
        """Yield the points."""
        x = self.start.copy()
        for where, entries in self.changes():
            x[where] = entries
            yield x.copy()

    def columns(self, coords: Sequence[int]) -> Floats:
        """Return some coordinates of all points, one column each."""
        wanted = np.asarray(coords, np.int64)
        x, found = self.start.copy(), np.empty((len(self), len(wanted)))
        for i, (where, entries) in enumerate(self.changes()):
            x[where] = entries
            found[i] = x[wanted]
        return found

    def state_dict(self) -> dict[str, Any]:
        """Return the changes as arrays."""
        parts = {"counts": np.int64, "coords": np.int64, "entries": np.float64}
        return {name: np.array(getattr(self, name), kind) for name, kind in parts.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up changes that were saved."""
        counts, coords, entries = (state[name] for name in ("counts", "coords", "entries"))
        size, whole = self.start.size, counts == ALL
        n = int(counts[~whole].sum())
        if (
            np.any(counts < ALL) or np.any(counts > size) or n != len(coords)
            or n + size * int(whole.sum()) != len(entries)
            or np.any((coords < 0) | (coords >= size))
        ):  # fmt: skip
            raise ValueError("the points that were kept are no points of this problem")
        self.counts, self.entries = array("q", counts.tolist()), array("d", entries.tolist())
        self.coords = array(self.coords.typecode, coords.tolist())

    @property
    def nbytes(self) -> int:
        """The memory that the changes take."""
        parts = (self.counts, self.coords, self.entries)
        return sum(part.buffer_info()[1] * part.itemsize for part in parts)


NOWHERE: Ints = np.empty(0, np.int64)


class Evaluations:
    """What was evaluated, in the order in which the values were accepted.

    Attributes
    ----------
    number
        The number of each evaluation, from 0 in the order of asking.
    member
        The search that asked.
    value
        What came back: NaN where it failed, and where partial derivatives were asked.
    seconds
        When it came back, since the run began.
    points
        Where, if that was kept; else None. An iterable of arrays; ``points.columns([3, 7])`` are
        two coordinates of all of them.
    params
        With a search space, the same as dicts; else None.
    space
        The search space, or None.

    Examples
    --------
    >>> from scgd import Reporting, minimize
    >>> result = minimize(lambda x: float(x @ x), [3.0, 4.0], max_evals=50, seed=0,
    ...                   reporting=Reporting(record=True))
    >>> seen = result.evaluations
    >>> len(seen), seen.number[:3].tolist(), float(seen.value[0])
    (50, [0, 1, 2], 25.0)
    >>> x = next(iter(seen.points))
    >>> bool(x @ x == seen.value[0])
    True
    """

    def __init__(
        self,
        number: Ints,
        member: Array,
        value: Floats,
        seconds: Floats,
        points: Points | None = None,
        space: Space | None = None,
    ) -> None:
        self.number, self.member, self.value, self.seconds = number, member, value, seconds
        self.points, self.space = points, space

    @classmethod
    def none(cls) -> Evaluations:
        """Return an empty table."""
        return cls(NOWHERE, np.empty(0, object), np.empty(0), np.empty(0))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.number)

    @property
    def params(self) -> list[dict[str, Any]] | None:
        """The parameters of each one."""
        if self.space is None or self.points is None:
            return None
        return [self.space.decode(x) for x in self.points]

    def to_dict(self) -> dict[str, Any]:
        """Return the table as columns, ready for ``pandas.DataFrame`` or ``polars.DataFrame``."""
        columns = {
            "number": self.number, "member": self.member, "value": self.value,
            "seconds": self.seconds,
        }  # fmt: skip
        if (params := self.params) is not None:
            names = dict.fromkeys(name for one in params for name in one)
            return columns | {name: [one.get(name) for one in params] for name in names}
        if self.points is not None:
            every = self.points.columns(range(self.points.start.size))
            columns |= {f"x{k}": every[:, k] for k in range(every.shape[1])}
        return columns

    def __repr__(self) -> str:
        """Return the first and last rows."""
        n = len(self)
        where = "" if self.points is None else ", with points"
        lines = [f"{n} evaluations{where}", f"{'number':>8}  {'seconds':>9}  {'value':>13}  member"]
        shown = [*range(n)] if n <= 8 else [0, 1, 2, ALL, n - 3, n - 2, n - 1]
        for i in shown:
            lines.append(
                "     ..." if i == ALL else
                f"{self.number[i]:8d}  {self.seconds[i]:9.3f}  {self.value[i]:13.6g}  "
                f"{self.member[i]}"
            )  # fmt: skip
        return "\n".join(lines)
