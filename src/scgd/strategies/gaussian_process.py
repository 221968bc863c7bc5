"""Bayesian optimisation by local Gaussian processes, then mutations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scgd.problem import Known, Problem
from scgd.strategies.asks import Asking, Outcome, Report, Wait
from scgd.strategies.budget import Budget
from scgd.strategies.gaussian_model import GaussianProcess, expected_improvement
from scgd.strategies.measured import Measured
from scgd.strategies.mutation import mutated, search_on
from scgd.strategies.regression import fit
from scgd.typing import Array, Floats, Ints

MOST_POINTS, IN_MODEL = 300, 200
"""Points up to which a model chooses, and those that it holds: its cost grows with the cube."""
MOST_COORDINATES = 40
"""Coordinates up to which lengths can be learned from so many points."""
CYCLE = ("everywhere", "choices", "near", "near")
"""Where to look, in turn."""
FEW_LEVELS = 4
"""Levels up to which whole numbers are tried one by one, as choices are."""
UNIT = 0.25
"""The part of the cube that is a length of one."""
REPEATS, OTHERS, CLEAR = 3, 2, 1000.0
"""Values of one point that tell the noise, other points, and deviations of the noise by which these
must differ for it to be little."""
NOISE = 1e-2
"""Variance of the noise, in units of the signal's, above which one repeat tells whether f is noisy:
a smooth function is interpolated to much less."""


def gaussian_process(
    problem: Problem, budget: Budget, rng: np.random.Generator, *, noisy: bool = False
) -> Asking:
    """Evaluate where a Gaussian process expects the largest improvement, in a cycle of places.

    Everywhere: uniform candidates. Choices: one is set to another value than the best point's, and
    the best points that have it are mutated, so no choice is given up because of where the others
    stood when it was tried. Near: mutations of the best five points. Values above twice the
    median's distance from the best are brought down to that, so that disasters do not fill the
    model; failed evaluations count as such. After 300 points mutations go on alone.

    Bounds or a space say where to look; without them, four units of the scale around x0.
    Where f is known to be ``noisy``, None is returned if the first points vary so much more than
    the noise that :func:`~scgd.strategies.noisy.noisy` is the better road.
    """
    measured = Measured(problem)
    measured.noisy = noisy or measured.noisy
    yield Report(solver="Gaussian process")
    if noisy and budget.left > 0:
        start = np.repeat(measured.grid.start[None], REPEATS, axis=0)
        others = measured.grid.canonical(rng.random((OTHERS, problem.n_coords)))
        values = yield from measured.evaluate(np.concatenate([start, others])[: budget.left])
        if np.ptp(measured.finite) > CLEAR * np.std(values[:REPEATS]):
            return None
    yield from measured.open(budget, rng)
    search = ModelSearch(measured, rng)
    turn, gained = 0, len(measured)
    while len(measured) < MOST_POINTS and measured.best >= 0:
        while budget.left < 1:
            yield Wait()
        turn += 1
        search.learn()
        if measured.noisy is None and search.model.nugget > NOISE:
            yield from measured.test_noise()
            continue
        if measured.noisy and (turn % 5 == 0 or budget.spent >= 0.95 * budget.total):
            point = measured.points[search.favourite()]  # what is recommended shall be a mean
        elif measured.noisy and turn % 5 == 2:
            point = search.lowest_of_quadratic()
        else:
            stalled = len(measured) - gained > 2 * measured.grid.n_coords
            found = search.propose(CYCLE[turn % len(CYCLE)], stalled)
            if found is None:
                return Outcome(converged=True)
            point = found
        before = measured.best
        yield from measured.evaluate(point[None])
        gained = len(measured) if measured.best != before else gained
        if turn % 10 == 0:
            yield Report(relevance=(search.model.relevance, np.full(point.size, np.nan)))
        if measured.noisy:
            yield from measured.recommend(search.favourite())
    return (yield from search_on(measured, budget, rng))


def models(lower: Floats, upper: Floats, n_values: int) -> bool:
    """Tell whether a model of so many values is worth its while within these bounds."""
    small = 0 < lower.size <= MOST_COORDINATES and n_values < MOST_POINTS
    return small and bool(np.isfinite(upper - lower).all())


def propose_by_model(
    problem: Problem, points: Floats, values: Floats, rng: np.random.Generator
) -> Floats:
    """Return one point that a model of some measurements proposes; NaN is one that is under way."""
    known = np.isfinite(values)
    measured = Measured(replace(problem, known=Known(points[known], values[known])))
    if measured.best < 0:
        return measured.x(measured.grid.canonical(rng.random((1, problem.n_coords)))[0])
    search = ModelSearch(measured, rng)
    search.learn()
    if not known.all():
        search.believe(measured.grid.canonical(measured.units(points[~known])))
    other = search.choices.size > 0 and rng.random() < 1 / len(CYCLE)
    point = search.propose("choices" if other else "near", stalled=False)
    return measured.x(measured.points[measured.best] if point is None else point)


class ModelSearch:
    """A Gaussian process of what was measured, and the candidates it chooses from.

    Parameters
    ----------
    measured
        The points, in the unit cube.
    rng
        Where candidates come from.
    """

    def __init__(self, measured: Measured, rng: np.random.Generator) -> None:
        self.measured, self.rng, self.grid = measured, rng, measured.grid
        self.model = GaussianProcess(self.grid)
        self.due, self.lowest = 0, 0.0
        self.rows: Ints = np.empty(0, np.int64)
        few = self.grid.categorical | (self.grid.n_levels <= FEW_LEVELS)
        self.choices: Ints = np.flatnonzero(few & (self.grid.n_levels > 1))

    def learn(self) -> None:
        """Take in what is known; fit lengths anew when there is a fifteenth more of it."""
        measured, points = self.measured, self.measured.points
        means = np.array(measured.means)
        rows = np.arange(len(points))
        if len(rows) > IN_MODEL:  # the good ones, and those near the best
            away = ((points - points[measured.best]) ** 2).sum(axis=1)
            order = np.argsort(ranks(means) + ranks(away), kind="stable")
            rows = np.sort(order[:IN_MODEL])
        counts = np.array([max(len(measured.seen[row]), 1) for row in rows], np.float64)
        self.rows, self.values, self.counts = rows, standardised(means[rows]), counts
        if len(rows) >= self.due or len(measured) >= self.due:
            self.model.optimise(points[rows], self.values, counts)
            self.due = len(measured) + max(1, len(measured) // 15)
        self.model.condition(points[rows], self.values, counts)
        self.lowest = float(self.model.fitted.min())

    def believe(self, points: Floats) -> None:
        """Take in points under way at the values that the model expects."""
        expected, _ = self.model.predict(points)
        self.model.condition(
            np.concatenate([self.measured.points[self.rows], points]),
            np.append(self.values, expected), np.append(self.counts, np.ones(len(points))),
        )  # fmt: skip

    def favourite(self) -> int:
        """Return the point with the lowest fitted value, of those that have a value."""
        means = np.array(self.measured.means)[self.rows]
        return int(self.rows[np.argmin(np.where(np.isfinite(means), self.model.fitted, np.inf))])

    def lowest_of_quadratic(self) -> Floats:
        """Return about where a quadratic around the favourite is lowest; bowls are so common."""
        measured, centre = self.measured, self.measured.points[self.favourite()]
        means = np.array(measured.means)
        some = np.isfinite(means)
        model = fit((measured.points[some] - centre) / UNIT, means[some], 0.0)
        step = UNIT * model.minimiser(float(np.sqrt(centre.size)))
        return np.asarray(self.grid.canonical((centre + step)[None])[0])

    def propose(self, place: str, stalled: bool) -> Floats | None:
        """Return the candidate with the largest expected improvement; None where none is new."""
        if place == "near" and stalled and self.rng.random() < 0.5:
            place = "everywhere" if self.rng.random() < 0.5 else "choices"
        points, held = self.candidates(place)
        points = self.measured.new(points)
        if not len(points):
            return self.measured.anything(self.rng)
        scores = self.scores(points)
        for spread in (0.2, 0.05, 0.02) if place != "everywhere" else ():
            top = np.argsort(-scores, kind="stable")[:4]
            points, scores = points[top], scores[top]
            more = self.measured.new(self.near(points, 60, spread, held))
            if len(more):
                points = np.concatenate([points, more])
                scores = np.concatenate([scores, self.scores(more)])
        return np.asarray(points[np.argmax(scores)], np.float64)

    def scores(self, points: Floats) -> Floats:
        """Return the logarithm of the expected improvement."""
        return np.asarray(expected_improvement(self.lowest, *self.model.predict(points)))

    def candidates(self, place: str) -> tuple[Floats, int | None]:
        """Return points to choose from, and the coordinate that they hold."""
        measured, grid, rng = self.measured, self.grid, self.rng
        best = measured.points[measured.best]
        active = grid.active(best[None])[0]
        choices = self.choices[active[self.choices]]
        if place == "near":
            return self.near(measured.leading(5), 250), None
        if place == "everywhere" or not choices.size:
            return grid.canonical(rng.random((300, grid.n_coords))), None
        k = int(rng.choice(choices))
        levels, n = grid.levels(best), int(grid.n_levels[k])
        levels[k] = (levels[k] + rng.integers(1, n)) % n
        points = measured.points
        there: Array = (grid.levels(points)[:, k] == levels[k]) & grid.active(points)[:, k]
        parents = measured.leading(3, there)
        if not len(parents):
            first = best.copy()
            first[k] = grid.centres(levels)[k]
            parents = grid.canonical(first[None])
        return np.concatenate([parents, self.near(parents, 200, held=k)]), k

    def near(self, parents: Floats, n: int, most: float = 0.3, held: int | None = None) -> Floats:
        """Return mutations of one coordinate or of many, far and near."""
        rng = self.rng
        chosen = parents[rng.integers(0, len(parents), n)]
        spread = most * 10 ** (-2.0 * rng.random(n))
        chance = np.where(rng.random(n) < 0.5, 1.0 / self.grid.n_coords, 0.4)
        return mutated(self.grid, chosen, chance, spread, rng, held)


def ranks(values: Floats) -> Ints:
    """Return the place of each value in their order."""
    return np.argsort(np.argsort(values, kind="stable"), kind="stable")


def standardised(values: Floats) -> Floats:
    """Return values in units of their spread, disasters and failed ones (infinite) brought down.

    Examples
    --------
    >>> failed, low = np.array([0.0, 1.0, 2.0, np.inf]), np.array([0.0, 1.0, 2.0, 2.0])
    >>> np.array_equal(standardised(failed), standardised(low))
    True
    """
    seen = values[np.isfinite(values)]
    best, median = float(seen.min()), float(np.median(seen))
    capped = np.minimum(values, median + (median - best))
    largest = float(np.abs(capped).max())
    scaled = capped / largest if largest > 0 else capped  # squares must not overflow
    spread = float(scaled.std())
    return (scaled - scaled.mean()) / spread if spread > 0 else np.zeros(len(values))
