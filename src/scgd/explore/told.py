"""The points of a story, for functions written in Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from scgd.calling import calls_user
from scgd.explore.loop import as_float
from scgd.run.ledger import Ledger
from scgd.searches import Search, Stop
from scgd.searches.arms.spread import Partials, Spread, point_of
from scgd.searches.doubt import Doubt
from scgd.searches.told import Told
from scgd.typing import Floats

__all__ = ["ToldBody", "story_of"]


LONGEST = 1000
"""Points of a batch at most; beyond that a question costs nothing beside it."""


def story_of(search: Search) -> Told | None:
    """Return the story that a search tells, or the one it doubts; None where there is none."""
    inner = search.inner if isinstance(search, Doubt) else search
    return inner if isinstance(inner, Told) else None


class ToldBody:
    """Tell a story the values of its points, one after the other.

    A cut between two points of a batch loses nothing: the story keeps the values it has.

    Parameters
    ----------
    search, story
        The search that tells a story, or the doubt around it; and the story itself.
    fun, args
        The user's function and its further arguments.
    ledger
        Where values that are not finite are counted, and the best one is kept.
    """

    def __init__(
        self,
        search: Search,
        story: Told,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        ledger: Ledger,
    ) -> None:
        self.search, self.story = search, story
        self.fun, self.args, self.ledger = fun, args, ledger
        self.base: Floats = np.empty(0)
        self.buffer: Floats = np.empty(self.story.point.x.size)
        self.view = self.buffer.view()
        self.view.flags.writeable = False

    def ready(self, room: float) -> bool:
        """Whether what the story asks next is for this body, and can be paid."""
        search, story = self.search, self.story
        if search.finished or story.finished or story.n_asked != story.n_answered:
            return False
        if isinstance(search, Doubt) and search.looks:
            return False
        n = story.size - story.n_asked
        return n <= min(room, LONGEST) and not isinstance(story.batch, Partials)

    def run(self, room: float, stop: Stop, *, by_phase: bool) -> None:
        """Answer for ``room`` evaluations, until stopped or (wanted) the first batch is told."""
        story, first = self.story, self.ledger.n_accepted - self.search.n_evals
        while not stop.raised and self.ready(room):
            batch, told = story.batch, story.n_told
            for j in range(story.n_asked, story.size):
                if stop.raised:
                    break
                value = self._poke(batch, j) if isinstance(batch, Spread) else self._whole(batch[j])
                value = value if value.__class__ is float else as_float(value)
                self._tell(value, j, first + self.search.n_evals)
                room -= 1
            if by_phase and story.n_told != told:
                break
        self.ledger.mark()

    @calls_user
    def _poke(self, batch: Spread, j: int) -> Any:
        """Evaluate a point that differs from the others in one coordinate."""
        x, k = self.buffer, batch.coords[j]
        if batch.x is not self.base:
            self.base, x[:] = batch.x, batch.x
        here = x[k]
        x[k] = batch.entries[j]
        try:
            return self.fun(self.view, *self.args)
        finally:
            x[k] = here

    @calls_user
    def _whole(self, x: Floats) -> Any:
        """Evaluate a point of its own."""
        x.flags.writeable = False
        return self.fun(x, *self.args)

    def _tell(self, value: float, j: int, number: int) -> None:
        """Enter the j-th value of a batch in the books as a question would, and tell it."""
        search, story, ledger = self.search, self.story, self.ledger
        if value - value != 0.0:
            point = partial(point_of, story.batch, j)
            ledger.lost(value, number, point, far=bool(story.told))
            value = float("nan")
        elif ledger.best is not None and value < ledger.best.value:
            ledger.best.put(value, point_of(story.batch, j))
        if ledger.told is not None:
            ledger.told.append(value)
        last = j == story.size - 1
        for one in (story,) if search is story else (search, story):
            one.n_evals += 1
            one.n_posed += last  # a batch is a question
        story.n_asked = j + 1
        story.enter_one(j, value)
        if last:
            story.report(story.best)
