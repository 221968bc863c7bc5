"""What a search is: everything that asks has this one interface.

A search owns its memory. It has a next question (:meth:`Search.ask`), and it is told the values
(:meth:`Search.tell`), of one question at a time and in any order where several are open. ``tell``
is the only place that moves. Whoever wants something of a search calls :meth:`Search.pose` and
:meth:`Search.take`, which count; budget, numbers of evaluations, samples and faults are none of its
business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from scgd.questions import Point, Question
from scgd.typing import Array, Floats

__all__ = ["Body", "Finding", "Late", "Relevance", "Search", "Standing", "Stop"]

Relevance = tuple[Floats, Floats]
"""What share each coordinate has in the changes of f, and standard errors."""
COUNTS = ("finished", "n_posed", "n_open", "n_evals")


@dataclass(frozen=True)
class Finding:
    """What a search found, in a few numbers; each search that ends has a kind of its own."""


@dataclass(frozen=True)
class Standing:
    """What a search would answer if it had to stop now.

    Attributes
    ----------
    x
        The point it recommends; not a copy.
    values
        What was observed near there; their mean and its standard error are what is reported.
    exact
        Whether the values are those of x itself, without noise.
    """

    x: Floats
    values: Floats
    exact: bool = False


class Stop:
    """A flag that is raised from outside (by a clock, by a signal) and looked at between steps.

    ``raised`` is a list for loops in Python, which test it in a few nanoseconds, and ``array`` is
    for compiled ones. ``over`` says that there is no time left for another evaluation: a body then
    gives up the step in hand.
    """

    def __init__(self) -> None:
        self.raised: list[int] = []
        self.over: list[int] = []
        self.array: Array = np.zeros(1, np.uint8)

    def set(self) -> None:
        """Have every loop stop before its next step."""
        self.array[0] = 1
        self.raised.append(1)

    def end(self) -> None:
        """Have every loop stop before its next evaluation."""
        self.over.append(1)
        self.set()

    def clear(self) -> None:
        """Let loops run."""
        self.raised.clear()
        self.array[0] = 0


class Late(Exception):
    """There was no time for the rest of a step, which therefore has not happened."""


class Body(Protocol):
    """A loop that runs many questions of a search without an object for each."""

    def ready(self, room: float) -> bool:
        """Whether it can go on from where the search is, with so many evaluations left."""

    def run(self, room: float, stop: Stop, *, by_phase: bool) -> None:
        """Take steps for at most ``room`` evaluations, until stopped or (wanted) a phase ends."""


class Search:
    """The common ground of searches.

    A subclass sets ``point`` where it has one of its own, implements :meth:`ask` and :meth:`tell`,
    and lists what it remembers in ``memory``; ``searches/random.py`` is a skeleton to copy.

    Attributes
    ----------
    point
        Where it stands.
    finished
        Whether it has nothing left to ask.
    lane
        Whose samples these are; set by a plan, so that two searches never share one by chance.
    sequential
        Whether it must see the answer to a question before it asks the next.
    n_posed, n_open, n_evals
        Questions posed, those of them that are open, and values told.
    journal
        What it saw, as (n_evals, value) pairs, for whoever keeps the history to take away.
    """

    memory: ClassVar[tuple[str, ...]] = ()
    name: ClassVar[str] = "search"
    found: ClassVar[type[Finding]] = Finding
    """The kind of its finding."""
    point: Point
    sequential: ClassVar[bool] = True
    room: float = float("inf")
    """Evaluations that a question may cost; set by whoever poses it."""
    finished: bool = False
    lane: int = 0
    n_posed: int = 0
    n_open: int = 0
    n_evals: int = 0

    def __init__(self, point: Point) -> None:
        self.point = point
        self.journal: list[tuple[int, float]] = []
        self.far = 0.0

    @property
    def cost(self) -> int:
        """Evaluations that the next question needs, at least."""
        return 1

    def ask(self) -> Question | None:
        """Return the next question; None when it must see answers first."""
        raise NotImplementedError

    def tell(self, question: Question, values: Floats) -> None:
        """Learn from the values of a question; NaN stands for one that was lost."""
        raise NotImplementedError

    def pose(self) -> Question | None:
        """Return the next question, with a sample of its own; None when answers must come first."""
        if self.finished or (self.sequential and self.n_open):
            return None
        question = self.ask()
        if question is not None:
            question.sample = question.sample or (self.n_posed, self.lane)
            self.n_posed += 1
            self.n_open += 1
        return question

    def take(self, question: Question, values: Floats) -> None:
        """Take the values of a question that was posed."""
        self.n_open -= 1
        self.n_evals += len(question)
        self.tell(question, values)

    def report(self, value: float) -> None:
        """Note what was seen."""
        self.journal.append((self.n_evals, value))

    def know(self, x: Floats, value: float) -> None:
        """Take a measurement that nobody asked for, where that helps."""

    @property
    def midway(self) -> bool:
        """Whether it is in the middle of something that should not be interrupted."""
        return False

    @property
    def standing(self) -> Standing:
        """What it would answer now."""
        return Standing(self.point.x, np.empty(0))

    @property
    def reached(self) -> Standing:
        """Where it is, whether or not it would answer that."""
        return self.standing

    def reopen(self, state: dict[str, Any]) -> Question:
        """Return a question that was open when the search was saved."""
        return Question.from_state(self.point, state)

    @property
    def weights(self) -> Floats | None:
        """What share each coordinate has in what is done; None where nothing is known."""
        return None

    @property
    def relevance(self) -> Relevance | None:
        """What share each coordinate has in the changes of f; None where nothing can be said."""
        return None

    @property
    def members(self) -> dict[str, int]:
        """What ran in it and for how many evaluations, where it is made of members."""
        return {}

    @property
    def farthest(self) -> float:
        """How far from x0 it has looked, in units of the problem's scale."""
        return self.far

    @property
    def level(self) -> float:
        """The value reached, to be compared with a target; NaN while too little was seen."""
        return float("nan")

    def finding(self) -> Finding:
        """Return what was found, once it is finished."""
        return Finding()

    @property
    def sentence(self) -> str:
        """What ran, for people."""
        return ""

    @property
    def active(self) -> Search:
        """The search that asks next: itself, or the member in turn of a search made of searches."""
        return self

    @property
    def member(self) -> str:
        """The name under which its evaluations are noted."""
        return self.name

    def settle(self) -> None:
        """Take note of steps that a body has taken."""

    def extend(self, budget: int | None) -> None:
        """Plan for so many evaluations in all from now on (None: no end)."""

    # ---- state: whatever memory names, as arrays and plain values --------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        return {name: encoded(getattr(self, name)) for name in (*COUNTS, *self.memory)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another search of the same kind."""
        for name in (*COUNTS, *self.memory):
            setattr(self, name, decoded(state[name], getattr(self, name)))
        if min(self.n_posed, self.n_open, self.n_evals) < 0:
            raise ValueError(f"the search {self.name!r} counts below zero")


def encoded(value: Any) -> Any:
    """Return a value as a checkpoint keeps it."""
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list):
        return np.array(value, np.float64)
    if isinstance(value, np.ndarray):
        return value.astype(np.int64 if value.dtype == np.bool_ else value.dtype)
    return value.state_dict() if hasattr(value, "state_dict") else value


def decoded(value: Any, mine: Any) -> Any:
    """Return a value from a checkpoint in the place of mine; arrays are filled where they are."""
    if isinstance(mine, np.random.Generator):
        mine.bit_generator.state = value
        return mine
    if isinstance(mine, bool | int | float | str):
        if type(value) is not type(mine):
            raise ValueError(f"{value!r} stands in the place of {mine!r}")
        return value
    if isinstance(mine, list | np.ndarray) and not isinstance(value, np.ndarray):
        raise ValueError(f"{value!r} stands in the place of an array")
    if isinstance(mine, list):
        return value.tolist()
    if isinstance(mine, np.ndarray) and isinstance(value, np.ndarray):
        if mine.shape == value.shape and mine.flags.writeable:
            mine[...] = value
            return mine
        return value.astype(mine.dtype)
    if hasattr(mine, "load_state_dict"):
        mine.load_state_dict(value)
        return mine
    return value
