"""What a run writes down of its evaluations: a table in memory, and a file that grows with it."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.evaluations import Evaluations, Points
from scgd.problem import Problem
from scgd.questions import Point, Question
from scgd.run.log import Log
from scgd.typing import Floats, Ints

if TYPE_CHECKING:
    from scgd.run.run import Run

NOWHERE: Ints = np.empty(0, np.int64)
NOTHING: Floats = np.empty(0)

LIMIT = 100_000
"""Evaluations that the table holds where nobody asked for it: 24 bytes each."""


class Record:
    """The evaluations of a run.

    Parameters
    ----------
    problem
        What points are compared with, and the space that they belong to: they are then kept in any
        case.
    began
        When the run began, on the clock of ``time.monotonic``.
    wanted
        Keep all of them, with points; else the first ``LIMIT``, without.
    log
        A file that gets a row for each, with points.
    sign
        -1 where values are the negatives of the user's.
    """

    def __init__(
        self,
        problem: Problem,
        began: float,
        *,
        wanted: bool = False,
        log: Log | None = None,
        sign: float = 1.0,
    ) -> None:
        self.number, self.member = array("q"), array("H")
        self.value, self.seconds = array("d"), array("d")
        self.names: dict[str, int] = {}
        self.log, self.space, self.sign, self.began = log, problem.space, sign, began
        start, whole = problem.x0, wanted or log is not None or problem.space is not None
        self.limit = float("inf") if whole else LIMIT
        self.points = Points(start) if whole else None
        self.point: Point | None = None
        if whole:
            self.every: Ints = np.arange(start.size)
            self.last: Floats = start.copy()  # the point evaluated last, and where it was not
            self.poked: Ints = NOWHERE  # at the base of its question

    # ---- rows ------------------------------------------------------------------------------------

    def add(self, number: int, member: str, value: Any, question: Question, j: int) -> None:
        """Note the value of a question's j-th point."""
        seconds = time.monotonic() - self.began
        values = question.kind == "values"  # with constraints, f and what they measure
        scalar = self.sign * float(np.ravel(value)[0]) if values else float("nan")
        if self.room <= 0:
            return
        self._row(number, member, scalar, seconds)
        if self.points is not None:
            changed = self._changed(question, j)
            self.points.add(changed, self.last[changed])
            if self.log is not None:
                self.log.write(number, member, scalar, seconds, changed, self.last)

    def _row(self, number: int, member: str, value: float, seconds: float) -> None:
        self.number.append(number)
        self.member.append(self.names.setdefault(member, len(self.names)))
        self.value.append(value)
        self.seconds.append(seconds)

    @property
    def room(self) -> float:
        """How many more there is room for."""
        return self.limit - len(self.number)

    def extend(self, first: int, member: str, values: Sequence[float], marks: Any) -> None:
        """Note values that a body has seen; ``marks`` tell when at some places."""
        n = int(min(len(values), self.room))
        marks = [*marks, (len(values), time.monotonic())]  # the last stretch may have been cut
        places, times = np.array(marks).T
        counts = np.diff(np.minimum(places, len(values))).astype(np.int64)
        each = np.repeat(np.diff(times) / np.maximum(1, counts), counts)  # evenly between marks
        seconds = times[0] - self.began + np.cumsum(each)[:n]
        self.number.frombytes(np.arange(first, first + n).tobytes())
        self.member.extend(array("H", [self.names.setdefault(member, len(self.names))]) * n)
        self.value.frombytes((self.sign * np.array(values[:n])).tobytes())
        self.seconds.frombytes(seconds.tobytes())

    def begin_log(self, *, resumed: bool) -> None:
        """Begin the file, with the rows that a run knows which was taken up."""
        assert self.log is not None and self.points is not None
        names = [*self.names]
        members = (names[code] for code in self.member)
        rows = zip(self.number, members, self.value, self.seconds, strict=True)
        self.log.begin(rows, self.points, resumed=resumed)

    def state_dict(self) -> dict[str, Any] | None:
        """Return the rows for a checkpoint; None where nobody wants all."""
        if self.points is None:
            return None
        return {
            "number": np.array(self.number, np.int64),
            "member": np.array(self.member, np.int64),
            "value": np.array(self.value),
            "seconds": np.array(self.seconds),
            "names": "\n".join(self.names),
            "points": self.points.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up the rows of a run that is resumed."""
        if self.points is None:
            return
        columns = [state[name] for name in ("number", "member", "value", "seconds")]
        names, points = state["names"].split("\n"), Points(self.points.start)
        points.load_state_dict(state["points"])
        if {len(column) for column in columns} != {len(points)}:
            raise ValueError("the table of evaluations has columns of several lengths")
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for number, code, value, seconds in rows:
            self._row(number, names[code], value, seconds)
        for where, entries in points.changes():
            self.last[where] = entries
        self.points = points
        self.began -= self.seconds[-1] if self.seconds else 0.0

    # ---- points ----------------------------------------------------------------------------------

    def _changed(self, question: Question, j: int) -> Ints:
        """Bring ``last`` to the j-th point; return the coordinates in which that changed it."""
        place = question.place(j)
        put = NOWHERE if place is None else np.atleast_1d(self.every[place])
        where, loose = self.every, self._loose(question)
        if max(len(loose), len(put)) < len(self.every):
            where = np.unique(np.concatenate((loose, put)))
        now = (question.point.x if question.base is None else question.base)[where]
        now[np.searchsorted(where, put)] = question.entries[j] if put.size else NOTHING
        changed = self.last[where] != now
        where = np.asarray(where[changed], np.int64)
        self.last[where] = now[changed]
        self.poked = put
        return where

    def _loose(self, question: Question) -> Ints:
        """Return where ``last`` may differ from the base of a question."""
        point = question.point
        if question.base is not None or point is not self.point:
            self.point = None if question.base is not None else point
            if self.point is not None:
                self.trail = point.trail.fork("record")
            return self.every
        moved = self.trail.moved()
        return self.every if moved is None else np.concatenate((moved, self.poked))

    def so_far(self) -> Callable[[], Evaluations]:
        """Return what makes the table of what was noted until now, when it is wanted."""
        return partial(self.table, len(self.number))

    def table(self, n: int) -> Evaluations:
        """Return the first n that were noted."""
        names = np.array([*self.names, ""], object)
        points = None if self.points is None else self.points.head(n)
        return Evaluations(
            np.array(self.number[:n], np.int64), names[np.array(self.member[:n], np.int64)],
            np.array(self.value[:n]), np.array(self.seconds[:n]), points, self.space,
        )  # fmt: skip

    def close(self) -> None:
        """Close the file."""
        if self.log is not None:
            self.log.close()


def record_all(run: Run, log: Any = None) -> None:
    """Have a run note all its evaluations with their points, and in a file."""
    file = None if log is None else Log(log, run.problem.x0, run.problem.space)
    run.keep(Record(run.problem, run.began, wanted=True, log=file, sign=run.ledger.sign))
