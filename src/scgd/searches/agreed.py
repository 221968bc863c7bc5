"""A search that takes f for deterministic, on values of which most calls have no noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from scgd.questions import Question
from scgd.searches.around import ROUNDING, Around
from scgd.searches.base import Finding, Search, Standing
from scgd.typing import Floats, Ints

__all__ = ["Agreed", "Agreement", "share_that_agrees"]

MOST_VOTES = 12
"""Values of a point after which their median must do."""
UNANIMOUS = 6
"""Values of a point, all of them equal, that make it believe one which was outvoted elsewhere."""
FEWEST, USUAL = 10, 0.3
"""Points after which so large a part of them must have agreed at once."""


@dataclass(frozen=True)
class Agreement(Finding):
    """Whether values went on agreeing, and what the search found.

    Parameters
    ----------
    rare
        Whether most pairs of values agreed.
    found
        The finding of the search inside, as a dictionary.
    misled
        The best value of the search, where it turned out to be an outlier; else NaN.
    """

    rare: bool
    found: dict[str, Any]
    misled: float = float("nan")


class Agreed(Around):
    """Run a search of a deterministic function where few calls are noisy, most exact.

    A point is evaluated twice. Two values that agree are free of noise, whatever outliers look
    like; where they do not, the point is evaluated again until two agree (after twelve values
    their median must do). The points of a population are evaluated once: it goes by ranks, of
    which a few may be wrong. Of those only what would be the best value so far must come twice. It
    is over when too few pairs agree.

    Outliers may be equal to each other (a simulator that crashes and returns 0). A value that was
    outvoted at more points than it was believed at is a stray: six values of a point must be equal
    to it, and none other, before it is believed. Where the best value so far turns out to be one,
    the search was misled, and is over.

    Parameters
    ----------
    inner
        The search, planned for less than half of the evaluations.
    strays
        Values that are known to be outliers.
    """

    name: ClassVar[str] = "agreed"
    found: ClassVar[type[Finding]] = Agreement
    memory: ClassVar[tuple[str, ...]] = (
        "inner", "places", "votes", "n_points", "n_agreed", "misled",
    )  # fmt: skip

    def __init__(self, inner: Search, strays: Sequence[float] = ()) -> None:
        super().__init__(inner)
        # By value: at how many more points it was outvoted than believed.
        self.strays: dict[float, int] = dict.fromkeys(strays, 1)
        self.misled = float("nan")
        self.asked: Question | None = None  # by the search inside
        self.places: Ints = np.empty(0, np.int64)  # of its points, and the values they have got
        self.votes: Floats = np.empty(0)
        self.n_points = self.n_agreed = 0

    @property
    def cost(self) -> int:
        """Evaluations of the next question, at least."""
        return 2 * self.inner.cost if self.asked is None else 1

    def ask(self) -> Question | None:
        """Ask points twice, and those again that are in doubt."""
        if self.asked is None:
            self.inner.lane, self.inner.room = self.lane, self.room / 2
            self.asked = self.inner.pose()
            if self.asked is None:
                return None
            places = np.repeat(np.arange(len(self.asked)), 1 if self.by_ranks else 2)
        else:
            places = np.flatnonzero(np.isnan(self._settled()))
            places = places[: int(max(1.0, min(self.room, len(places))))]
        self.places = np.append(self.places, places)
        asked = self.asked
        return replace(
            asked, coords=asked.coords[places], entries=asked.entries[places], sample=None
        )

    def tell(self, question: Question, values: Floats) -> None:
        """Count votes; tell the search once every point has a value."""
        assert self.asked is not None
        first = not len(self.votes)
        self.votes = np.append(self.votes, np.where(np.isnan(values), np.inf, values))
        settled = self._settled()
        if first and not self.by_ranks:
            self.n_points += len(settled)
            self.n_agreed += int(np.count_nonzero(~np.isnan(settled)))
        if np.isnan(settled).any():
            return
        self._sort_out(settled)
        asked, self.asked = self.asked, None
        self.places, self.votes = np.empty(0, np.int64), np.empty(0)
        self.inner.take(asked, np.where(np.isinf(settled), np.nan, settled))
        self.settle()

    def _settled(self) -> Floats:
        """Return the values that the points have so far; NaN where votes do not agree."""
        assert self.asked is not None
        n, places = len(self.asked), self.places[: len(self.votes)]
        order = np.lexsort((self.votes, places))
        places, votes = places[order], self.votes[order]
        low, high = votes[:-1], votes[1:]
        with np.errstate(invalid="ignore"):  # of two infinities
            near = (low == high) | (high - low <= ROUNDING * np.abs(low))
        same = np.flatnonzero(near & (places[:-1] == places[1:]))
        values, n_votes = np.full(n, np.nan), np.bincount(places, minlength=n)
        sound = np.array([self.strays.get(value, 0) <= 0 for value in votes[same].tolist()], bool)
        values[places[same[sound]]] = votes[same[sound]]
        for place, value in zip(places[same[~sound]], votes[same[~sound]], strict=True):
            equal = np.count_nonzero((places == place) & (votes == value))
            if equal == n_votes[place] >= UNANIMOUS:
                values[place] = value
        for place in np.flatnonzero(np.isnan(values) & (n_votes >= MOST_VOTES)):
            values[place] = np.median(votes[places == place])
        if self.by_ranks:
            alone = n_votes[places] == 1
            modest = alone & (votes >= self.inner.level)
            values[places[modest]] = votes[modest]
        return values

    def _sort_out(self, settled: Floats) -> None:
        """Count values that were outvoted, and strays that were believed."""
        where = settled[self.places]
        with np.errstate(invalid="ignore"):  # of two infinities
            outvoted = np.abs(self.votes - where) > ROUNDING * np.abs(where)
        for value in np.unique(self.votes[outvoted & np.isfinite(self.votes)]).tolist():
            self.strays[value] = self.strays.get(value, 0) + 1
            if self.strays[value] == 1 and value == self.inner.level:
                self.misled = value
        alone = np.bincount(self.places, minlength=len(settled)) == 1  # a rank is no belief
        for value in np.unique(settled[~alone]).tolist():
            if value in self.strays:
                self.strays[value] -= 1

    @property
    def over(self) -> bool:
        """Whether values do not agree, or agreed on an outlier."""
        return not self.rare or self.misled == self.misled

    @property
    def by_ranks(self) -> bool:
        """Whether what is asked is a population."""
        return self.asked is not None and self.asked.joint and len(self.asked) > 1

    @property
    def rare(self) -> bool:
        """Whether most pairs have agreed so far."""
        return self.n_points < FEWEST or self.n_agreed >= USUAL * self.n_points

    def settle(self) -> None:
        """Take note of what the search did."""
        super().settle()
        self.finished = self.inner.finished or self.over

    def extend(self, budget: int | None) -> None:
        """Let the search plan for more, at the price it pays for a value."""
        if budget is not None and self.inner.n_evals:
            price = self.n_evals / self.inner.n_evals
            self.inner.extend(self.inner.n_evals + int((budget - self.n_evals) / price))
        self.finished = self.inner.finished or self.over

    def finding(self) -> Agreement:
        """Return whether values agreed, and what the search found."""
        return Agreement(self.rare, asdict(self.inner.finding()), self.misled)

    @property
    def standing(self) -> Standing:
        """What the search stands for."""
        standing = self.inner.standing
        return Standing(standing.x, standing.values)

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        asked = None if self.asked is None else self.asked.state_dict()
        strays = np.array(list(self.strays.items()), np.float64).reshape(-1, 2)
        return {**super().state_dict(), "asked": asked, "strays": strays}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another search, and the votes on what it asked."""
        super().load_state_dict(state)
        self.strays = {value: int(score) for value, score in state["strays"].tolist()}
        asked = state["asked"]
        self.asked = None if asked is None else self.inner.reopen(asked)
        if len(self.places) and (asked is None or self.places.max() >= len(self.asked or ())):
            raise ValueError("votes on points that were not asked")


def share_that_agrees(values: list[float]) -> float:
    """Return the largest part of some values that are equal.

    Examples
    --------
    >>> share_that_agrees([2.0, 7.0, 2.0, 2.0])
    0.75
    >>> share_that_agrees([1.0, 2.0])
    0.0
    """
    counts = np.unique(np.array(values), return_counts=True)[1]
    most = int(counts.max(initial=1))
    return most / len(values) if most > 1 else 0.0
