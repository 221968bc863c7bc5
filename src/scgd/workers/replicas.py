"""Copies of a long point on workers: a task carries what has changed lately, not the point.

The driver numbers the states of a point (:class:`Driven`). A task names the state it is about and
holds the entries that were set in the last few, ``(coordinate, value)`` each. A worker that has a
copy of one of these states brings it up to date; one that has none says so (:class:`Stale`), and is
sent the whole point, once. So a task of SCGD takes some kB at most, whatever p is.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from uuid import uuid4

import numpy as np

from scgd.questions import Point, Trail
from scgd.typing import Floats, Ints

__all__ = ["LARGE", "STALE", "Driven", "Moves", "Stale", "mine", "settled"]

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


class History:
    """A point, under a name of its own, and what it was in the states before."""

    def __init__(self, x: Floats) -> None:
        self.key, self.state, self.x = uuid4().hex, 0, x.copy()
        self.log: deque[tuple[int, Ints, Floats, Floats]] = deque()
        self.n_logged = 0

    def go_to(self, x: Floats, coords: Ints) -> None:
        """Note where the point is now; it differs from where it was in some coordinates."""
        coords = coords[self.x[coords] != x[coords]]
        if coords.size:
            self.state += 1
            self.n_logged += coords.size
            self.log.append((self.state, coords, self.x[coords], x[coords]))
            self.x[coords] = x[coords]

    def forget(self, oldest: int) -> None:
        """Forget moves that no task carries any more and that led to a state before this one."""
        while self.n_logged - self.log[0][1].size >= WINDOW and self.log[0][0] <= oldest:
            self.n_logged -= self.log.popleft()[1].size

    def recent(self) -> list[tuple[int, Ints, Floats, Floats]]:
        """Return the last moves, as many as a task carries."""
        moves, n = [], 0
        for move in reversed(self.log):
            n += move[1].size
            if n > WINDOW:
                break
            moves.append(move)
        return moves[::-1]

    def at(self, state: int) -> Floats:
        """Return the point as it was in a state."""
        x = self.x.copy()
        for number, coords, before, _ in reversed(self.log):
            if number > state:
                x[coords] = before
        return x


class Driven:
    """The driver's side: what has changed of the point that tasks are about."""

    def __init__(self) -> None:
        self.point: Point | None = None
        self.trail = Trail(0)
        self.histories: dict[str, History] = {}

    def moves(self, point: Point, under_way: Iterable[Moves]) -> Moves:
        """Return the present state of a point; some states are still under way, oldest first."""
        moved = self.trail.moved() if point is self.point else None
        if moved is None or len(moved) > WINDOW:
            return self._begin(point, {moves.key for moves in under_way})
        now = self.now
        now.go_to(point.x, np.unique(moved))
        if now.log:
            same = (moves.state for moves in under_way if moves.key == now.key)
            now.forget(next(same, now.state))
        recent = now.recent()
        states = [np.full(len(coords), state) for state, coords, *_ in recent]
        return Moves(
            now.key, now.state, joined(states, np.int64),
            joined([coords for _, coords, *_ in recent], np.int64),
            joined([after for *_, after in recent], np.float64),
        )  # fmt: skip

    def _begin(self, point: Point, wanted: set[str]) -> Moves:
        """Send the whole point, under a new name."""
        if point is not self.point:
            self.point, self.trail = point, point.trail.fork("workers")
        self.trail.moved()
        self.now = History(point.x)
        self.histories = {k: known for k, known in self.histories.items() if k in wanted}
        self.histories[self.now.key] = self.now
        nothing = np.empty(0, np.int64)
        return Moves(self.now.key, 0, nothing, nothing, np.empty(0), self.now.x.copy())

    def whole(self, moves: Moves) -> Moves:
        """Return a state with the point itself."""
        if moves.whole is not None:
            return moves
        return replace(moves, whole=self.histories[moves.key].at(moves.state))


def joined(parts: list[Ints] | list[Floats], dtype: type) -> np.ndarray:
    """Join arrays, of which there may be none."""
    return np.concatenate(parts).astype(dtype) if parts else np.empty(0, dtype)


class Copy:
    """A copy of a point on a worker, and what it was in the states before."""

    def __init__(self, state: int, x: Floats) -> None:
        self.state, self.x = state, x
        self.undo: deque[tuple[int, Ints, Floats]] = deque(maxlen=WINDOW)

    def follow(self, moves: Moves) -> None:
        """Go on to the state of the moves."""
        for state in np.unique(moves.states[moves.states > self.state]):
            here = moves.states == state
            coords = moves.coords[here]
            self.undo.append((self.state, coords, self.x[coords]))
            self.x[coords] = moves.entries[here]
            self.state = int(state)

    def at(self, state: int) -> Floats:
        """Return a new array with the point as it was in a state, this one or an earlier."""
        x, reached = self.x.copy(), self.state
        for before, coords, entries in reversed(self.undo):
            if reached <= state:
                break
            x[coords], reached = entries, before
        if reached != state:
            raise Stale
        return x


class Mine(threading.local):
    """The copies of a thread: its evaluations set entries in them and set them back."""

    def __init__(self) -> None:
        self.copies: dict[str, Copy] = {}
        self.n_calls = 0

    def due(self, every: int) -> bool:
        """Count a call; tell whether it is the first of so many."""
        self.n_calls += 1
        return self.n_calls % every == 1


mine = Mine()


def settled(moves: Moves) -> Floats:
    """Return the point of a task, on a worker; what is set there must be set back."""
    copies = mine.copies
    known = copies.pop(moves.key, None)
    if moves.whole is not None and (known is None or known.state < moves.state):
        known = Copy(moves.state, moves.whole.copy())
    if known is None:
        raise Stale
    copies[moves.key] = known  # the last used is the last
    while len(copies) > KEPT:
        del copies[next(iter(copies))]
    if known.state >= moves.since:
        known.follow(moves)
    if known.state == moves.state:
        return known.x
    if moves.whole is not None:
        return moves.whole.copy()
    if known.state < moves.state:
        raise Stale
    return known.at(moves.state)
