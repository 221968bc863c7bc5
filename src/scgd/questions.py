"""What a search asks: points near its own, evaluated with one sample.

A :class:`Point` is where a search stands, together with the buffer in which the user's function
sees it. The two are equal except while something is evaluated, and only the buffer is ever poked:
whatever interrupts an evaluation, the point itself is untouched.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from scgd.typing import Array, Floats, Ints

EVERYWHERE: Ints = np.empty(0, np.int64)
"""The support of joint moves of all coordinates, in order."""
BASE = -1
"""Stands for "no coordinate" in ``Question.coords``: the base point itself, or a joint move."""
NOWHERE: Ints = np.empty(0, np.int64)
"""The support of points that set one coordinate each."""
NOTHING: Floats = np.empty(0)
Sample = tuple[int, int]


class Point:
    """A point and the buffer in which functions see it.

    Attributes
    ----------
    x
        The point; moved by the search that owns it, never by an evaluation.
    buffer
        The same numbers, except while one evaluation looks elsewhere.
    view
        The buffer, read-only: what the user's function is given.
    """

    __slots__ = ("buffer", "trail", "view", "x")

    def __init__(self, x: Floats) -> None:
        self.x: Floats = x.copy()
        self.buffer: Floats = x.copy()
        self.view: Floats = self.buffer.view()
        self.view.flags.writeable = False
        self.trail = Trail(x.size)

    def put(self, x: Floats) -> None:
        """Go to another point."""
        self.x[...] = x
        self.buffer[...] = x
        self.trail.everywhere()

    def move(self, coords: Any, entries: Any) -> None:
        """Set some coordinates."""
        self.x[coords] = entries
        self.follow(coords)

    def follow(self, coords: Any) -> None:
        """Have the buffer follow moves of some coordinates."""
        self.buffer[coords] = self.x[coords]
        self.trail.add(coords)


class Trail:
    """Which coordinates of a point have moved since somebody took note."""

    __slots__ = ("forks", "n", "parts", "size")

    def __init__(self, size: int) -> None:
        self.size, self.n, self.parts = size, size, []  # type: int, int, list[Any]
        self.forks: dict[str, Trail] = {}

    def fork(self, reader: str) -> Trail:
        """Return a trail that notes the same from here on, for another reader."""
        self.forks[reader] = mine = Trail(self.size)
        mine.n = 0
        return mine

    def add(self, coords: Any) -> None:
        """Note coordinates; above as many as there are it is all of them."""
        for other in self.forks.values():
            other.add(coords)
        if self.n < self.size:
            self.parts.append(coords)
            self.n += 1 if isinstance(coords, int | np.integer) else len(coords)
            if self.n >= self.size:
                self.parts.clear()

    def everywhere(self) -> None:
        """Note all coordinates."""
        for other in self.forks.values():
            other.everywhere()
        self.n = self.size
        self.parts.clear()

    def moved(self) -> Ints | None:
        """Return what has moved since the last call; None where that may be everything."""
        parts = [NOWHERE, *(np.atleast_1d(np.asarray(part, np.int64)) for part in self.parts)]
        everything = self.n >= self.size
        self.parts.clear()
        self.n = 0
        return None if everything else np.concatenate(parts)

    def catch_up(self, copy: Floats, x: Floats) -> None:
        """Bring a copy of the point up to date and forget what has moved."""
        if self.n >= self.size:
            copy[...] = x
        for coords in self.parts:
            copy[coords] = x[coords]
        self.parts.clear()
        self.n = 0


@dataclass
class Question:
    """Evaluations that belong together: points near one base, with one sample.

    Point *j* is the base with coordinate ``coords[j]`` set to ``entries[j]`` (nothing set where
    ``coords[j]`` is -1) or, where ``entries`` is a matrix, with ``support`` (all coordinates where
    that is empty) set to row *j* of it.

    Attributes
    ----------
    point
        Where the search stands.
    support
        The coordinates that the points differ in, or that the step may move.
    coords, entries
        What distinguishes each point.
    origin, radii
        The base at the support and the radius of each of its coordinates, where differences are
        taken.
    sample
        Which sample the evaluations share: (number, owner); given when the question is asked.
    may_fail
        Whether the points lie farther out than what is known: a value that is not finite then
        tells that it was too far, and does not end the run.
    kind
        ``"values"``: evaluate the function at each point; ``"partials"``: evaluate the partial
        derivatives at ``support``, one evaluation.
    rate, probs
        The learning rate of the step and the probabilities of its draws, where there are any.
    role
        A number by which a search knows its own questions apart.
    base
        A copy of the base, made when the point moves on while the question is open.
    """

    point: Point
    support: Ints
    coords: Ints
    entries: Floats
    origin: Floats = field(default_factory=lambda: NOTHING)
    radii: Floats = field(default_factory=lambda: NOTHING)
    sample: Sample | None = None
    may_fail: bool = False
    kind: Literal["values", "partials"] = "values"
    rate: float = float("nan")
    probs: Floats = field(default_factory=lambda: NOTHING)
    role: int = 0
    base: Floats | None = None

    def __len__(self) -> int:
        """Return the number of evaluations."""
        return len(self.coords)

    @property
    def joint(self) -> bool:
        """Whether each point sets the whole support at once."""
        return self.entries.ndim == 2

    @property
    def set_entries(self) -> tuple[Floats, Any]:
        """What is set (NaN where nothing is) at which coordinates.

        That is all a question looks at anew, where a point only goes to what was asked before.
        """
        if not self.joint:
            return self.entries, self.coords
        return self.entries, (self.support if self.support.size else slice(None))

    def place(self, j: int) -> Any:
        """Return which coordinates the j-th point sets; None where it sets none."""
        if self.joint:
            return self.support if self.support.size else slice(None)
        return None if self.coords[j] == BASE else self.coords[j]

    def detach(self) -> None:
        """Keep the base, because the point is about to move, where points differ from it."""
        if self.base is None and not (self.joint and self.support.size == 0):
            self.base = self.point.x.copy()

    def at(self, j: int) -> Floats:
        """Return a copy of the j-th point."""
        x = (self.point.x if self.base is None else self.base).copy()
        place = self.place(j)
        if place is not None:
            x[place] = self.entries[j]
        return x

    def points(self, places: list[int] | None = None) -> Floats:
        """Return the points at some places (all) as the rows of a new matrix."""
        places = list(range(len(self))) if places is None else places
        return np.stack([self.at(j) for j in places])

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the point."""
        state = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "point"}
        state["sample"] = np.array(self.sample or (0, 0), np.int64)
        return state

    @classmethod
    def from_state(cls, point: Point, state: dict[str, Any]) -> Question:
        """Return a question that was saved."""
        n, question = (
            point.x.size,
            cls(point, **{**state, "sample": tuple(state["sample"].tolist())}),
        )
        for name in ("support", "coords"):
            places: Array = getattr(question, name)
            if places.dtype != np.int64 or np.any((places < BASE) | (places >= n)):
                raise ValueError(f"{name} of a question lie outside the coordinates")
        width = (len(question.coords), len(question.support) or n)
        if question.entries.shape not in (width, width[:1]) or question.kind not in (
            "values", "partials",
        ):  # fmt: skip
            raise ValueError("the entries of a question have another shape")
        if question.base is not None and question.base.shape != (n,):
            raise ValueError("the base of a question has another shape")
        return question


def single(point: Point, coords: Any, entries: Any, **more: Any) -> Question:
    """Return points that set one coordinate each (the base where the coordinate is -1)."""
    places = np.asarray(coords, np.int64)
    return Question(point, NOWHERE, places, np.asarray(entries, np.float64), **more)


def here(point: Point, n: int, **more: Any) -> Question:
    """Return the base itself, so many times."""
    return single(point, np.full(n, BASE), np.full(n, np.nan), **more)


def joint(point: Point, support: Ints, entries: Floats, **more: Any) -> Question:
    """Return points that set the whole support at once, one row of entries each."""
    return Question(point, support, np.full(len(entries), BASE), entries, **more)


class Open:
    """A question that is open: its numbers and the values that have arrived.

    Attributes
    ----------
    first
        The number of its first evaluation; the others follow.
    values
        What has arrived; None where nothing has.
    n_left
        How many are still to come.
    solver
        Who asked.
    """

    def __init__(self, question: Question, first: int, solver: str) -> None:
        self.question, self.first, self.solver = question, first, solver
        self.values: list[Any] = [None] * len(question)
        self.n_left = len(question)

    @property
    def missing(self) -> list[int]:
        """The places of values that are still to come."""
        return [j for j, value in enumerate(self.values) if value is None]


def open_state(opened: Open) -> dict[str, Any]:
    """Return an open question and what has arrived of it, for a checkpoint."""
    arrived = [j for j, value in enumerate(opened.values) if value is not None]
    values: Floats = np.array([opened.values[j] for j in arrived], np.float64)
    return {
        "question": opened.question.state_dict(),
        "solver": opened.solver,
        "arrived": np.array(arrived, np.int64),
        "values": values,
    }


def reopened(point: Point, first: int, saved: dict[str, Any]) -> Open:
    """Return an open question that was saved."""
    opened = Open(Question.from_state(point, saved["question"]), first, saved["solver"])
    if first < 0 or len(saved["arrived"]) >= len(opened.question):
        raise ValueError("an open question has no value to come")
    for j, value in zip(saved["arrived"].tolist(), saved["values"].tolist(), strict=True):
        if not 0 <= j < len(opened.values):
            raise ValueError("a value is not one of its question's")
        opened.values[j] = value
        opened.n_left -= 1
    return opened
