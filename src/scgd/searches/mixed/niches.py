"""A Gaussian process that looks everywhere, in niches, and near the best points in turn."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from scgd.searches.mixed.gaussian import GaussianProcess, expected_improvement
from scgd.searches.mixed.mutation import mutated
from scgd.searches.mixed.mutations import Mutations
from scgd.typing import Array, Floats, Ints

__all__ = ["Niches"]

LIMIT = 300
"""Points up to which a model chooses; beyond it costs more than it tells."""
MOST = 200
"""Points in the model: the good ones, and those near the best."""
PACE = 15
"""Lengths are fitted again when there are 1/PACE more points."""
NOISE = 1e-2
"""Nugget (in units of the signal's variance) above which f may be noisy."""
CYCLE = "gnll"
"""Where to look, in turn: everywhere, in a niche, and twice near the best points."""
EVERYWHERE, IN_NICHE, NEAR = 300, 200, 250
"""Candidates of each kind."""
PARENTS = {"n": 3, "l": 5}
FEW = 4
"""Levels up to which whole numbers have niches as choices have."""
REFINE = (0.2, 0.05, 0.02)
AGAIN = 5
"""Of a noisy function every so many-th evaluation repeats the point that the model likes best."""
LAST = 0.95
"""The part of the budget after which all do, so that what is said of it is a mean."""


class Niches(Mutations):
    """Evaluate where a Gaussian process expects the largest improvement, in a cycle of places.

    Everywhere: uniform candidates. In a niche: a choice is set to another value than the best
    point's, and the best points that have it are mutated, so no choice is given up because of where
    the others stood when it was tried. Near: mutations of the best five points. Two refinements
    around the best candidates follow. Values above twice the median's distance from the best are
    brought down to that, so that disasters do not fill the model; lost values count as such.
    Points under way are taken in at the value that the model expects. After 300 points mutations
    go on alone.

    Parameters
    ----------
    problem, point, rng, budget, sampled
        As for :class:`Mutations`.
    """

    name: ClassVar[str] = "niches"
    memory: ClassVar[tuple[str, ...]] = (*Mutations.memory, "theta", "due", "turn", "gained")

    def begin(self) -> None:
        """Nothing is fitted."""
        super().begin()
        self.model = GaussianProcess(self.grid)
        self.theta: Floats = self.model.theta.copy()
        self.due, self.turn = 0, 0
        self.gained = 0  # points known when the best was found
        few = self.grid.categorical | (self.grid.n_levels <= FEW)
        self.niches: Ints = np.flatnonzero(few & (self.grid.n_levels > 1))

    @property
    def modelling(self) -> bool:
        """Whether the model chooses."""
        return len(self.archive) < LIMIT and self.archive.best >= 0

    @property
    def paired(self) -> bool:
        """A model averages over samples: each evaluation has its own."""
        return False

    @property
    def suspicious(self) -> bool:
        """One repeat tells whether f is noisy, once the model does not pass through the values."""
        return self.due > 0 and (self.model.nugget > NOISE or not self.modelling)

    def propose(self) -> Floats | None:
        """Return the point of the largest expected improvement in the place in turn."""
        if not self.modelling:
            return super().propose()
        self._learn()
        self.turn += 1
        if self.noisy and (self.turn % AGAIN == 0 or self.n_evals >= LAST * self.budget):
            return np.array(self.archive.points[self.favourite()])
        place = self._place()
        points, hold = self._candidates(place)
        points = self.fresh(points)
        if not len(points):
            return self.anything()
        scores = self._scores(points)
        if place != "g":
            points, scores = self._refined(points, scores, hold)
        return np.asarray(points[np.argmax(scores)], np.float64)

    # ---- the model -------------------------------------------------------------------------------

    def _learn(self) -> None:
        """Fit the model when it is due, and take in what is known and what is under way."""
        rows, values, counts = self._data()
        points = self.archive.points
        self.model.theta = self.theta
        if len(rows) >= self.due:
            self.model.optimise(points[rows], values, counts)
            self.theta = self.model.theta
            self.due = len(rows) + max(1, len(rows) // PACE)
        self.model.condition(points[rows], values, counts)
        self.best = float(self.model.fitted().min())
        waiting = np.flatnonzero(np.array(self.archive.waiting) > 0)
        waiting = waiting[~np.isin(waiting, rows)]
        if waiting.size:
            expected, _ = self.model.predict(points[waiting])
            self.model.condition(
                points[np.append(rows, waiting)], np.append(values, expected),
                np.append(counts, np.ones(waiting.size)),
            )  # fmt: skip

    def _data(self) -> tuple[Ints, Floats, Floats]:
        """Return the points in the model, their values in units of their spread, and how many."""
        rows = self.archive.told
        means = np.array(self.archive.means)[rows]
        best = self.archive.points[self.archive.best]
        if len(rows) > MOST:
            away = ((self.archive.points[rows] - best) ** 2).sum(axis=1)
            rows = np.sort(rows[np.argsort(ranks(means) + ranks(away), kind="stable")[:MOST]])
            means = np.array(self.archive.means)[rows]
        counts = np.maximum(np.array(self.archive.counts, np.float64)[rows], 1.0)
        return rows, tamed(means), counts

    def _scores(self, points: Floats) -> Any:
        return expected_improvement(self.best, *self.model.predict(points))

    # ---- where to look ---------------------------------------------------------------------------

    def _place(self) -> str:
        """Return where to look: by turns, elsewhere more often while nothing is gained."""
        place = CYCLE[self.turn % len(CYCLE)]
        stalled = len(self.archive) - self.gained > 2 * self.n_coords
        if place == "l" and stalled and self.rng.random() < 0.5:
            place = "g" if self.rng.random() < 0.5 else "n"
        return "g" if place == "n" and not self.niches.size else place

    def _candidates(self, place: str) -> tuple[Floats, int | None]:
        """Return points to choose from, and the coordinate that they hold."""
        if place == "g":
            return self.grid.canonical(self.rng.random((EVERYWHERE, self.n_coords))), None
        if place == "l":
            return self._near(self._leading(np.isfinite(self.archive.means), "l"), NEAR), None
        return self._niche()

    def _niche(self) -> tuple[Floats, int | None]:
        """Return points with another choice than the best point's, near the best that have it."""
        best, points = self.archive.points[self.archive.best], self.archive.points
        active = self.grid.active(best[None])[0]
        niches = [k for k in self.niches.tolist() if active[k]]
        if not niches:
            return self._candidates("g")
        k = niches[int(self.rng.integers(len(niches)))]
        levels, n = self.grid.levels(best), int(self.grid.n_levels[k])
        levels[k] = (levels[k] + self.rng.integers(1, n)) % n
        there = (self.grid.levels(points)[:, k] == levels[k]) & self.grid.active(points)[:, k]
        there &= np.isfinite(self.archive.means)
        if there.any():
            return self._near(self._leading(there, "n"), IN_NICHE, hold=k), k
        first = best.copy()
        first[k] = self.grid.centres(levels)[k]
        first = self.grid.canonical(first[None])
        return np.vstack([first, self._near(first, IN_NICHE, hold=k)]), k

    def _leading(self, which: Array, place: str) -> Floats:
        """Return the best points of some."""
        rows = np.flatnonzero(which)
        order = np.argsort(np.array(self.archive.means)[rows], kind="stable")
        return self.archive.points[rows[order[: PARENTS[place]]]]

    def _near(self, parents: Floats, n: int, most: float = 0.3, hold: int | None = None) -> Floats:
        """Return mutations of one coordinate or of many, far and near."""
        rng = self.rng
        chosen = parents[rng.integers(0, len(parents), n)]
        spread = most * 10 ** (-2.0 * rng.random(n))
        chance = np.where(rng.random(n) < 0.5, 1.0 / self.n_coords, 0.4)
        return mutated(self.grid, chosen, chance, spread, rng, hold)

    def _refined(self, points: Floats, scores: Floats, hold: int | None) -> tuple[Floats, Floats]:
        """Mutate the candidates that score best, nearer and nearer."""
        for most in REFINE:
            top = np.argsort(-scores, kind="stable")[:4]
            points, scores = points[top], scores[top]
            more = self.fresh(self._near(points, 60, most, hold))
            if len(more):
                points = np.vstack([points, more])
                scores = np.concatenate([scores, self._scores(more)])
        return points, scores

    # ---- what is known ---------------------------------------------------------------------------

    def note(self, row: int, value: float) -> None:
        """Take note of gains; beyond the model's limit races decide."""
        if row == self.archive.best:
            self.gained = len(self.archive)
        if not self.modelling:
            super().note(row, value)

    def favourite(self) -> int:
        """Return the best point: of a noisy function the one with the lowest fitted value."""
        if not self.noisy or len(self.archive) >= LIMIT or self.archive.best < 0:
            return super().favourite()
        rows, values, counts = self._data()
        model = GaussianProcess(self.grid)
        model.theta = self.theta
        model.condition(self.archive.points[rows], values, counts)
        fitted = np.where(np.isfinite(np.array(self.archive.means)[rows]), model.fitted(), np.inf)
        return int(rows[np.argmin(fitted)])

    @property
    def weights(self) -> Floats | None:
        """What share each coordinate has, by the lengths that were fitted."""
        self.model.theta = self.theta
        return self.model.relevance if self.due else None


def ranks(values: Floats) -> Ints:
    """Return the place of each value in their order."""
    return np.argsort(np.argsort(values, kind="stable"), kind="stable")


def tamed(values: Floats) -> Floats:
    """Return values in units of their spread, disasters and lost ones (infinite) brought down.

    Examples
    --------
    >>> lost, low = np.array([0.0, 1.0, 2.0, np.inf]), np.array([0.0, 1.0, 2.0, 2.0])
    >>> np.array_equal(tamed(lost), tamed(low))
    True
    """
    seen = values[np.isfinite(values)]
    best, median = float(seen.min()), float(np.median(seen))
    capped = np.minimum(values, median + (median - best))
    largest = float(np.abs(capped).max())
    scaled = capped / largest if largest > 0 else capped  # squares must not overflow
    spread = float(scaled.std())
    return (scaled - scaled.mean()) / spread if spread > 0 else np.zeros(len(values))
