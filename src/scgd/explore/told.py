"""Single points of a story, for functions written in Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from scgd.calling import calls_user
from scgd.explore.loop import as_float
from scgd.run.ledger import Ledger
from scgd.searches import Stop
from scgd.searches.arms.spread import Partials, Spread, point_of
from scgd.searches.doubt import Doubt
from scgd.searches.told import Told
from scgd.typing import Floats

__all__ = ["ToldBody"]


class ToldBody:
    """Tell a story the values of single points, one after the other.

    Batches go by questions, whose values survive a cut between two of them.

    Parameters
    ----------
    search
        The search that tells a story, or the doubt around it.
    fun, args
        The user's function and its further arguments.
    ledger
        Where values that are not finite are counted, and the best one is kept.
    """

    def __init__(
        self, search: Told | Doubt, fun: Callable[..., Any], args: tuple[Any, ...], ledger: Ledger
    ) -> None:
        self.search, self.fun, self.args, self.ledger = search, fun, args, ledger
        self.story: Any = search.inner if isinstance(search, Doubt) else search
        self.base: Floats = np.empty(0)
        self.buffer: Floats = np.empty(self.story.point.x.size)
        self.view = self.buffer.view()
        self.view.flags.writeable = False

    def ready(self, room: float) -> bool:
        """Whether what the story asks next is for this body."""
        search, story = self.search, self.story
        if room < 1 or search.finished or story.finished or story.n_asked:
            return False
        if isinstance(search, Doubt) and search.n_evals >= search.due:
            return False
        return len(story.batch) == 1 and not isinstance(story.batch, Partials)

    def run(self, room: float, stop: Stop, *, by_phase: bool) -> None:
        """Answer for ``room`` evaluations, until stopped or (wanted) the first value is told."""
        first = self.ledger.n_accepted - self.search.n_evals
        while not stop.raised and self.ready(room):
            batch = self.story.batch
            value = self._poke(batch) if isinstance(batch, Spread) else self._whole(batch[0])
            value = value if value.__class__ is float else as_float(value)
            self._tell(value, first + self.search.n_evals)
            room -= 1
            if by_phase:
                break
        self.ledger.mark()

    @calls_user
    def _poke(self, batch: Spread) -> Any:
        """Evaluate a point that differs from the last ones in one coordinate."""
        x, k = self.buffer, batch.coords[0]
        if batch.x is not self.base:
            self.base, x[:] = batch.x, batch.x
        here = x[k]
        x[k] = batch.entries[0]
        try:
            return self.fun(self.view, *self.args)
        finally:
            x[k] = here

    @calls_user
    def _whole(self, x: Floats) -> Any:
        """Evaluate a point of its own."""
        x.flags.writeable = False
        return self.fun(x, *self.args)

    def _tell(self, value: float, number: int) -> None:
        """Enter a value in the books as a question would, and tell it."""
        search, story, ledger = self.search, self.story, self.ledger
        if value - value != 0.0:
            point = partial(point_of, story.batch, 0)
            ledger.lost(value, number, point, far=bool(story.told))
            value = float("nan")
        elif ledger.best is not None and value < ledger.best.value:
            ledger.best.put(value, point_of(story.batch, 0))
        if ledger.told is not None:
            ledger.told.append(value)
        for one in (story,) if search is story else (search, story):
            one.n_posed += 1
            one.n_evals += 1
        story.n_asked = 1
        story.enter(0, np.array([value]))
