"""Steps through noise: random signs on all coordinates, clipped differences, Adam."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from scgd.estimators import random_signs
from scgd.problem import Problem
from scgd.questions import EVERYWHERE, Point, Question, joint
from scgd.searches.archive import Archive
from scgd.searches.base import Relevance, Search, Standing
from scgd.searches.ladder import Footing
from scgd.searches.regression import fit
from scgd.searches.screen import least_visible
from scgd.typing import Floats, Ints

__all__ = ["Walk"]

RATE = 0.3
"""First step length of a coordinate, in units of the radius."""
SLOW, SHOWS = 2.0, 3.0
"""The same over the root of the steps where nothing shows, and the odd part of pairs, in standard
deviations of the noise, from which it is not slowed down."""
BETA1, BETA2 = 0.9, 0.99
CLIP, REMEMBERED, FEWEST = 3.0, 50, 8
"""Differences are clipped at so many times the median of the last 50, once there are 8."""
RECENT = 30
WINDOW = 10
"""Pairs whose mean is compared with a target."""
LARGEST = 200
"""Coordinates up to which a quadratic is fitted."""
NEAREST, NEAR = 300, 3.0
"""Points it is fitted to, at most, and how far away in units of the radius."""


OUTSTANDING = 4.0
"""Errors by which an effect must exceed the median one for the effects to mean anything."""


class Walk(Search):
    r"""Walk down along pairs :math:`x \pm h s` with random signs s, one Adam step for each.

    The step length falls to zero over the walk. Differences are clipped at three times their
    usual size, so an outlier is one step like any other. The walk runs from check to check
    (:meth:`begin`); a :class:`~scgd.searches.check.Check` moves it, takes it back and sets its
    radius.

    Parameters
    ----------
    problem, point
        What is known, and where to start.
    rng
        Where signs come from.
    footing
        What a ladder found.
    archive
        What was evaluated so far, in the coordinates that may move; the walk adds to it.
    moving
        1 for coordinates that may move, 0 for those that stay; all may by default.

    Attributes
    ----------
    radius, reach
        The radius of pairs, and that which step lengths are measured in.
    deviation, signal
        The standard deviation of the noise, and the odd part of pairs in units of it.
    best, best_value, best_values
        The best point checked, its value, and what it was made from.
    trust
        How far a proposal may go, in units of the radius.
    effects
        What f changes along each coordinate over the radius, and standard errors, by the model;
        NaN where there is none.
    """

    name: ClassVar[str] = "walk"
    sequential: ClassVar[bool] = False
    memory: ClassVar[tuple[str, ...]] = (
        "until", "share", "per_pair", "falls", "mean", "square", "n_mean", "n_square", "radius",
        "reach", "deviation", "signal", "odds", "slopes", "levels", "best", "best_value",
        "best_values", "sizes", "trust", "effects", "rng",
    )  # fmt: skip

    def __init__(
        self,
        problem: Problem,
        point: Point,
        rng: np.random.Generator,
        footing: Footing,
        archive: Archive | None = None,
        moving: Floats | None = None,
    ) -> None:
        super().__init__(point)
        self.problem, self.rng, self.footing = problem, rng, footing
        self.moving = np.ones(problem.n_coords) if moving is None else moving
        self.archive = Archive.empty(problem.n_coords, 0) if archive is None else archive
        self.until = 0
        self.share = self.per_pair = self.falls = 0.0
        self.mean, self.square = np.zeros(problem.n_coords), np.zeros(problem.n_coords)
        self.n_mean = self.n_square = 0
        self.radius = self.reach = footing.radius
        self.deviation, self.signal = footing.deviation, footing.signal
        self.odds: list[float] = []
        self.slopes: list[float] = []
        self.levels: list[float] = []
        self.best: Floats = point.x.copy()
        self.best_value = float("inf") if footing.rough else footing.base
        self.best_values: list[float] = [footing.base] if np.isfinite(footing.base) else []
        self.sizes: Floats = np.full(5, np.nan)
        self.trust = 1.0
        self.effects: Floats = np.full((2, problem.n_coords), np.nan)

    def begin(self, n_pairs: int, share: float, per_pair: float, falls: float) -> Walk:
        """Take so many pairs.

        ``share`` of the walk is over, each pair takes ``per_pair``; step lengths fall linearly and
        by a factor ``exp(-falls)`` over the whole.
        """
        self.until = self.n_evals + 2 * n_pairs
        self.share, self.per_pair, self.falls = share, per_pair, falls
        self.levels = []
        return self

    @property
    def finished(self) -> bool:
        """Whether the pairs are taken and nothing is open."""
        return not self.n_open and self.n_evals + 2 > self.until

    @finished.setter
    def finished(self, value: bool) -> None:
        """Follow from the pairs, whatever a file says."""

    @property
    def cost(self) -> int:
        """Evaluations of a pair."""
        return 2

    def ask(self) -> Question | None:
        """Return a pair; more may be asked before it is told."""
        if self.n_evals + 2 * (self.n_open + 1) > self.until:
            return None
        problem, x = self.problem, self.point.x
        middle, reach = problem.centred(x, self.radius * problem.unit)
        move = self.moving * reach * random_signs(x.size, self.rng)
        middle = np.where(self.moving > 0, middle, x)
        pair = problem.clipped(np.stack([middle + move, middle - move]))
        return joint(self.point, EVERYWHERE, pair, far=True, radii=np.array([self.radius]))

    def tell(self, question: Question, values: Floats) -> None:
        """Take a step along the pair, unless a value was lost."""
        plus, minus = question.entries
        unit = self.problem.unit
        self.note(question.entries, values)
        self.share += self.per_pair
        if not np.isfinite(values).all():
            return
        radius = float(question.radii[0])
        odd = float(values[0] - values[1]) / 2
        self.odds = [*self.odds[1 - RECENT :], odd]
        self.levels = [*self.levels[1 - RECENT :], float(values.mean())]
        self._step(self._clipped(odd / radius) * (plus - minus) / (2 * radius * unit))

    def note(self, points: Floats, values: Floats) -> None:
        """Remember what was evaluated."""
        self.archive.add(points[:, self.places], values)

    def _clipped(self, slope: float) -> float:
        self.slopes = [*self.slopes[1 - REMEMBERED :], abs(slope)]
        if len(self.slopes) <= FEWEST:
            return slope
        most = CLIP * float(np.median(self.slopes))
        return min(max(slope, -most), most)

    def _step(self, gradient: Floats) -> None:
        """Take a step of Adam."""
        self.n_mean += 1
        self.n_square += 1
        self.mean += (1 - BETA1) * (gradient - self.mean)
        self.square += (1 - BETA2) * (gradient**2 - self.square)
        left = max(0.0, 1 - self.share) * np.exp(-self.falls * self.share)
        mean = self.mean / (1 - BETA1**self.n_mean)
        size = np.sqrt(self.square / (1 - BETA2**self.n_square)) + 1e-300
        step = self.rate * self.reach * left * self.problem.unit * mean / size
        self.point.put(self.problem.clipped(self.point.x - step))

    @property
    def rate(self) -> float:
        r"""First step length in units of the reach.

        Where pairs hardly show above the noise a walk of n steps must not wander farther than
        about the reach by chance: steps of :math:`2 / \sqrt n` keep coordinates that do nothing
        where they are.
        """
        patient = SLOW * np.sqrt(self.per_pair)
        return float(min(RATE, max(patient, RATE * self.signal / SHOWS)))

    # ---- what a check does -----------------------------------------------------------------------

    @property
    def places(self) -> Ints:
        """The coordinates that may move."""
        return np.flatnonzero(self.moving)

    @property
    def fits(self) -> bool:
        """Whether there are points enough for a quadratic."""
        n = int(np.count_nonzero(self.moving))
        return n <= LARGEST and len(self.archive) > n / 2 + 5

    def propose(self) -> tuple[Floats, bool] | None:
        """Return where a quadratic is lowest, and whether that is inside the region of trust."""
        places = self.places
        n, unit = len(places), self.radius * self.problem.unit[places]
        points, values = self.archive.near(self.point.x[places], unit, NEAREST, NEAR)
        if len(values) <= n / 2 + 5:
            return None
        known = self.sizes if np.isfinite(self.sizes).all() else None
        model = fit(points, values, self.deviation, known)
        self.sizes = model.sizes
        self.learn(places, np.stack([model.effects, model.errors]))
        farthest = self.trust * np.sqrt(n)
        u, x = model.minimiser(farthest), self.point.x.copy()
        x[places] += unit * u
        return self.problem.clipped(x), bool(np.linalg.norm(u) < 0.9 * farthest)

    def learn(self, places: Ints, effects: Floats) -> None:
        """Keep the effects of a fit unless an earlier one told inputs apart more clearly.

        At the minimum slopes are zero and signs of one length show the sum of all curvatures only;
        what is known of single inputs was seen on the way.
        """
        seen = np.full_like(self.effects, np.nan)
        seen[:, places] = effects
        if not outstanding(self.effects) > outstanding(seen):
            self.effects = seen

    def go(self, x: Floats) -> None:
        """Go on from another point, without momentum."""
        self.point.put(x)
        self.mean[:] = 0.0
        self.n_mean = 0

    def go_back(self) -> None:
        """Go back to the best point checked, with half the step length."""
        self.go(self.best)
        self.square[:] = 0.0
        self.n_square = 0
        self.reach /= 2
        self.radius = min(self.radius, self.reach)

    def keep(self, value: float, values: Floats) -> None:
        """Keep the point as the best one checked."""
        self.best[...] = self.point.x
        self.best_value, self.best_values = value, values.tolist()

    # ---- what it stands for ----------------------------------------------------------------------

    @property
    def standing(self) -> Standing:
        """The best point checked."""
        return Standing(self.best, np.array(self.best_values))

    @property
    def reached(self) -> Standing:
        """Where it is, and what pairs saw last."""
        return Standing(self.point.x, np.array(self.levels[-WINDOW:]))

    @property
    def level(self) -> float:
        """The mean of the last pairs."""
        if len(self.levels) < WINDOW:
            return float("nan")
        return float(np.mean(self.levels[-WINDOW:]))

    @property
    def relevance(self) -> Relevance | None:
        """The effects as shares, and standard errors; None where a screen knows more, or nobody.

        Nobody knows where no effect stands out from the usual one by more than its error allows.
        Effects that the largest of as many errors explains are 0, as for a screen: a hundred of
        them would have the lion's share.
        """
        effects, errors = self.effects
        if not np.isfinite(effects).all() or not outstanding(self.effects) > OUTSTANDING:
            return None
        shown = np.where(effects > least_visible(effects.size) * errors, effects, 0.0)
        total = float(shown.sum())
        return (shown / total, errors / total) if total > 0 else None

    @property
    def weights(self) -> Floats | None:
        """The shares."""
        return None if self.relevance is None else self.relevance[0]


def outstanding(effects: Floats) -> float:
    """Return by how many errors the clearest effect exceeds the median one.

    Examples
    --------
    >>> outstanding(np.array([[1.0, 5.0, 1.0], [0.5, 0.5, 0.5]]))
    8.0
    """
    sizes, errors = effects[:, np.isfinite(effects).all(axis=0)]
    above = sizes - (np.median(sizes) if len(sizes) else 0.0)
    certain = np.where(above > 0, np.inf, 0.0)  # where the error is zero
    return float(np.max(np.divide(above, errors, out=certain, where=errors > 0), initial=0.0))
