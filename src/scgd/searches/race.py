"""A race of searches for deterministic functions, at the virtual best of its members.

How far f falls gives the unit. Coordinates that do nothing are left out; a sum over coordinates
goes to line searches. Everything else is for BFGS, a population or wide differences: what slopes
are worth over the length scale tells who leads, or a race; the leader goes on until it has
converged, and then all take turns with restarts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from scgd.searches.arms.arm import Telling
from scgd.searches.arms.contest import Contest
from scgd.searches.arms.ending import Ending
from scgd.searches.arms.falling import KEPT, WIDEST, falling_length
from scgd.searches.arms.grain import SINGLE, Grain, is_single, measure_grain
from scgd.searches.arms.spread import Partials, Spread, point_of
from scgd.searches.arms.structure import active_coordinates
from scgd.searches.base import Finding, Relevance
from scgd.searches.told import Told
from scgd.typing import Array, Floats, Ints

__all__ = ["Race", "Raced"]

LOOK_AGAIN = 0.05
"""Part of the budget after which inactive coordinates are tried again."""
LEAST, MOST = 6, 2000
"""Evaluations per active coordinate from which a race pays, and active coordinates up to which."""
LEAN, SMALL = 12, 32
"""Evaluations per coordinate below which nothing is measured before BFGS begins, and coordinates
from which it is worth asking first how many of them matter."""
ASKED = 4
"""One over the part of the budget that may go into telling which coordinates are active."""


@dataclass(frozen=True)
class Raced(Finding):
    """Whether the race took place, and then ended because nothing was left to gain.

    Parameters
    ----------
    held
        Whether it took place.
    """

    held: bool


class Race(Told):
    """The race of searches for functions without noise.

    It is not held, and what was found so far stands, where more coordinates matter than it can
    serve with what is left of the budget.

    Parameters
    ----------
    problem, point
        What is known, and where to begin.
    seed
        Seed of its generator.
    budget
        Evaluations to plan for.
    tol
        The race ends when what is left to gain is below this share of what was gained.
    partials
        Whether partial derivatives may be asked for.
    """

    name: ClassVar[str] = "race"
    found: ClassVar[type[Finding]] = Raced

    def tell_story(self, x: Floats) -> Telling:
        """Measure, leave out what does nothing, race."""
        self.contest, self.moving, self.held = None, np.ones(x.size, np.bool_), True
        self.grain = Grain()
        f = yield x
        if np.isfinite(f) and x.size < SMALL and self.left < LEAN * x.size:
            yield from self._go_down(x, f)
            return
        s, best, value = yield from falling_length(x, f, self.budget, self.rng, self.box)
        while not np.isfinite(value):  # nothing is known yet: look around
            best = x + s * 2 ** self.rng.uniform(-3, 3) * self.rng.standard_normal(x.size)
            value = yield best
        if not np.isfinite(f):
            x, f = best, value
        if not self.partials:
            self.grain = yield from measure_grain(x, f, s, f - value, self.rng, self.box)
        self.ending = Ending(self.tol, f, self.grain.size)
        most = min(2 * x.size, self.left // ASKED)
        active = yield from active_coordinates(x, f, s, self.rng, self.box, most, self.grain)
        n = int(active.sum())
        self.held = n <= MOST and (self.partials or self.left >= LEAST * n)
        if not self.held:
            return
        if active.all():
            yield from self._compete(x, f, s, best, value)
            return
        share = float(active.mean())  # random directions were diluted by what does nothing
        inner = s * np.sqrt(share) if share < 0.5 else s
        self.moving = active
        contest = self.contest = Contest(self, self.ending, self.box.part(active), self.grain)
        compete = contest.compete(x[active], f, inner, x[active], f)
        woke = yield from self._embedded(x, f, s, active, compete)
        if woke is not None:
            best, value = woke
            self.moving = np.ones(x.size, np.bool_)
            yield from self._compete(best, value, s, best, value)

    def _go_down(self, x: Floats, f: float) -> Telling:
        """Let BFGS go down at once: its own steps tell how far f falls."""
        if is_single([f]):
            self.grain = Grain(SINGLE * abs(f), change=abs(f))
        self.ending = Ending(self.tol, f, self.grain.size)
        s = min(KEPT, WIDEST * self.box.width)
        yield from self._compete(x, f, s, x, f, at_once=True)

    def _compete(
        self, x: Floats, f: float, s: float, best: Floats, value: float, *, at_once: bool = False
    ) -> Telling:
        """Race on all coordinates."""
        self.contest = Contest(self, self.ending, self.box, self.grain)
        yield from self.contest.compete(x, f, s, best, value, at_once=at_once)

    def _embedded(self, x: Floats, f: float, s: float, active: Array, inner: Telling) -> Telling:
        """Run a search of the active coordinates; return the best point if others wake up."""
        best, value, whole = x, f, Embedding(x, np.flatnonzero(active))
        due = self.n_told + LOOK_AGAIN * self.budget
        try:
            points = next(inner)
            while True:
                asked = whole(points)
                values = yield asked
                if isinstance(points, Partials):
                    points = inner.send(values)
                    continue
                k = 0 if asked.ndim == 1 else int(values.argmin())
                lowest = values if asked.ndim == 1 else float(values[k])
                if lowest < value:
                    best, value = point_of(asked, k), lowest
                if self.n_told >= due:  # do the others really not matter, here too?
                    due += LOOK_AGAIN * self.budget
                    self.doing, y = "measuring", self._elsewhere(best, s, active)
                    if self._differ((yield y), value):
                        return best, value
                points = inner.send(values)
        except StopIteration:  # nothing is left to gain, unless others matter here
            self.doing, y = "measuring", self._elsewhere(best, s, active)
            return (best, value) if self._differ((yield y), value) else None

    def _differ(self, value: float, other: float) -> bool:
        return abs(value - other) > self.grain.level(other)

    def _elsewhere(self, x: Floats, s: float, active: Array) -> Floats:
        """Return a point at which the inactive coordinates have moved."""
        y = x.copy()
        y[~active] += s * self.rng.standard_normal(int((~active).sum()))
        return self.box.reflect(y)

    def finding(self) -> Raced:
        """Return whether it took place."""
        return Raced(self.held)

    @property
    def relevance(self) -> Relevance | None:
        """What f changes along each coordinate, as shares of the whole, with standard errors."""
        found = None if self.contest is None else self.contest.relevance()
        if found is None:
            return None
        shares, errors = np.zeros((2, self.moving.size))
        shares[self.moving], errors[self.moving] = found
        return shares, errors

    @property
    def weights(self) -> Floats | None:
        """The shares."""
        return None if self.relevance is None else self.relevance[0]

    @property
    def sentence(self) -> str:
        """Who led."""
        leader = "" if self.contest is None else self.contest.leader
        return f"race led by {leader or 'nobody yet'}"


class Embedding:
    """Points of some coordinates as points of all, the others being as in x.

    What many points have in common is embedded once: arms never change what they have asked.
    """

    def __init__(self, x: Floats, places: Ints) -> None:
        self.x, self.places = x, places
        self.inner: Floats | None = None
        self.base = x

    def __call__(self, points: Any) -> Any:
        """Return points of all coordinates."""
        x, places = self.x, self.places
        if isinstance(points, Partials | Spread):
            if points.x is not self.inner:
                self.inner, self.base = points.x, x.copy()
                self.base[places] = points.x
            if isinstance(points, Partials):
                return Partials(self.base, places[points.coords])
            if points.single:
                alone = [int(places[points.coords[0]])]
                return Spread(self.base, alone, points.entries, single=True)
            return Spread(self.base, places[points.coords], points.entries)
        whole = x.copy() if points.ndim == 1 else np.repeat(x[None], len(points), axis=0)
        whole[..., places] = points
        return whole
