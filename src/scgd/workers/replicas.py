"""Copies of a long point on workers: a task carries what has changed lately, not the point.

The driver numbers the states of a point (:class:`Driven`). A task names the state it is about and
holds the entries that were set in the last few, ``(coordinate, value)`` each. A worker that has a
copy of one of these states brings it up to date; one that has none, or a later one, says so
(:class:`Stale`), and is sent the whole point, which the question knows. So a task of SCGD takes
some kB at most, whatever p is.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from uuid import uuid4

import numpy as np

from scgd.questions import NOWHERE, Point, Trail
from scgd.typing import Floats, Ints

LARGE = 2**16
"""Bytes of a point above which workers keep copies; below, it travels faster with the tasks."""
WINDOW = 256
"""Entries that a task carries at most, 6 kB: a worker may have missed as many. All are known to a
worker that had one of the last 256 / block_size steps."""
KEPT = 4
"""Copies of points that a worker keeps, the last used: one for each run that goes on at a time."""
STALE = "no copy of the point"
"""What comes in the place of a value where the worker must be sent the point."""


class Stale(Exception):
    """The worker has no copy of the point that could be brought up to date."""


@dataclass(frozen=True)
class Moves:
    """A state of a point, by what has changed since an earlier one.

    Attributes
    ----------
    key, state
        Which point, and the number of the state that is wanted.
    states, coords, entries
        What was set: the number of the state that came of it, where, and to what.
    whole
        The point itself, for workers that have no copy.
    """

    key: str
    state: int
    states: Ints
    coords: Ints
    entries: Floats
    whole: Floats | None = None

    @property
    def nbytes(self) -> int:
        """The size of the arrays."""
        size = self.states.nbytes + self.coords.nbytes + self.entries.nbytes
        return size + (0 if self.whole is None else self.whole.nbytes)

    @property
    def since(self) -> int:
        """The first state that can be brought up to date."""
        return int(self.states[0]) - 1 if self.states.size else self.state


class Driven:
    """The driver's side: what has changed of the point that tasks are about."""

    def __init__(self) -> None:
        self.point: Point | None = None
        self.trail = Trail(0)

    def moves(self, point: Point) -> Moves:
        """Return the present state of a point."""
        moved = self.trail.moved() if point is self.point else None
        if moved is None or len(moved) > WINDOW:
            return self._begin(point)
        coords = np.unique(moved)
        if coords.size:
            self.state += 1
            self.recent.append((np.full(coords.size, self.state), coords, point.x[coords]))
            while sum(len(part) for part, *_ in self.recent) > WINDOW:
                self.recent.popleft()
        if not self.recent:
            return Moves(self.key, self.state, NOWHERE, NOWHERE, np.empty(0))
        states, places, entries = map(np.concatenate, zip(*self.recent, strict=True))
        return Moves(self.key, self.state, states, places, entries)

    def _begin(self, point: Point) -> Moves:
        """Send the whole point, under a new name."""
        if point is not self.point:
            self.point, self.trail = point, point.trail.fork("workers")
        self.trail.moved()
        self.key, self.state = uuid4().hex, 0
        self.recent: deque[tuple[Ints, Ints, Floats]] = deque()
        return Moves(self.key, 0, NOWHERE, NOWHERE, np.empty(0), point.x.copy())


class Mine(threading.local):
    """The copies of a thread, with their states: evaluations set entries in them and set back."""

    def __init__(self) -> None:
        self.copies: dict[str, tuple[int, Floats]] = {}
        self.n_calls = 0

    def due(self, every: int) -> bool:
        """Count a call; tell whether it is the first of so many."""
        self.n_calls += 1
        return self.n_calls % every == 1


mine = Mine()


def settled(moves: Moves) -> Floats:
    """Return the point of a task, on a worker; what is set there must be set back."""
    copies, wanted = mine.copies, moves.state
    state, x = copies.get(moves.key, (-1, np.empty(0)))
    if state > wanted and moves.whole is not None:
        return moves.whole.copy()
    if moves.whole is not None:
        state, x = wanted, moves.whole.copy()
    if not 0 <= state <= wanted or state < moves.since:
        raise Stale
    new = moves.states > state
    x[moves.coords[new]] = moves.entries[new]  # in their order: the last one counts
    copies.pop(moves.key, None)  # the last used is the last
    copies[moves.key] = wanted, x
    while len(copies) > KEPT:
        del copies[next(iter(copies))]
    return x
