"""SPSA with clipped differences and Adam steps, and quadratic model proposals in rounds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from scgd.estimators import random_signs
from scgd.history import robust_deviation
from scgd.problem import Problem
from scgd.strategies.asks import Asking, Report
from scgd.strategies.budget import Budget, Stall
from scgd.strategies.regression import Evaluations, fit
from scgd.strategies.trust_region_radius import Surroundings
from scgd.typing import Floats

__all__ = ["LARGEST", "SPSA", "spsa_rounds"]

RATE = 0.3
"""First step length of a coordinate, in units of the radius: several steps cross the region in
which the slope that a pair sees holds."""
SLOW, SHOWS = 2.0, 3.0
"""The same over the root of the steps where nothing shows, and the odd part of pairs, in standard
deviations of the noise, from which it is not slowed down."""
BETA1, BETA2 = 0.9, 0.99
CLIP, REMEMBERED, FEWEST = 3.0, 50, 8
"""Differences are clipped at so many times the median of the last 50, which every eighth tells."""
RECENT = 30
"""Odd parts whose median tells how clearly pairs show: to a sixth."""
LARGEST = 100
"""Coordinates up to which a quadratic is fitted: beyond, rounds do not pay for its slopes, and
screening finds the few that matter sooner."""
NEAREST, NEAR = 300, 3.0
"""Points it is fitted to, at most, and how far away in units of the radius."""
ACCEPT, GUARD = -0.5, 3.0
"""Standard errors by which a proposal must lie below the point, and the point may lie above the
best one checked."""
WIDEST, NARROWEST = 4.0, 0.1
"""Limits of the region in which proposals are trusted, in units of the radius."""
CLEAR, HIDDEN = 8.0, 1.5
"""Odd parts of pairs, in deviations, above which the radius shrinks and below which it grows."""
WIDER, FAR = 4.0, 2.0
"""How much wider than where slope and bend weigh alike pairs may be, and how many units of x. What
is even cancels in a difference, and the wider a pair, the less its noise weighs; but what is odd
and no slope grows faster still, and nothing is gained where pairs show clearly already."""
LEAST = 0.5
"""The radius of the first pairs, in units of x, where the one found is so much narrower at most;
steps are measured in half of it. It was found from two or three pairs, and a quarter of the right
one costs more than four times it: steps are too short to arrive, and noise weighs more."""
FALL = 40
"""Evaluations per coordinate from which step lengths fall faster than linearly."""
FALLS, RISES, TELL = 20.0, 4.0, 8
"""By how much the noise level may fall and rise from one check to the next: it falls with f on the
way down; and the repeats of a point that tell it as well as what was known before."""
NARROW, NARROWER = 0.5, 0.8
"""Beside a wall pairs are no shorter than so many units of x; at the end by this part less."""


@dataclass
class SPSA:
    r"""Steps along pairs :math:`x \pm h s` with random signs s, one Adam step for each.

    Differences are clipped at three times their usual size, so an outlier is one step like any
    other. Beside a wall the pair of a coordinate is as wide as there is room; only where there is
    hardly any its middle moves inwards.

    Attributes
    ----------
    radius, step_radius
        The radius of pairs, and that which step lengths are measured in.
    deviation, signal
        The standard deviation of the noise, and the odd part of pairs in units of it.
    best, best_value, best_values
        The point kept, its value, and what it was made from.
    trust
        How far a proposal may go, in units of the radius.
    """

    problem: Problem
    x: Floats
    rng: np.random.Generator
    radius: float
    deviation: float
    signal: float = 0.0
    base: float = np.inf
    rough: bool = False
    share: float = 0.0  # of the steps that are taken
    per_pair: float = 0.0
    falls: float = 0.0  # log of the factor by which step lengths fall beyond linearly
    trust: float = 1.0
    most: float = np.inf  # slopes are clipped there
    odds: list[float] = field(default_factory=list)
    slopes: list[float] = field(default_factory=list)
    sizes: Floats | None = None  # of the last model, from which the next one starts

    def __post_init__(self) -> None:
        p = self.x.size
        self.best, self.best_value = self.x, np.inf if self.rough else self.base
        self.best_values: Floats = np.empty(0)
        self.mean, self.square = np.zeros(p), np.zeros(p)
        self.n_mean = self.n_square = 0
        self.bounded = bool(self.problem.lower.size)
        self.effects: Floats = np.full((2, p), np.nan)
        far = 1.0 if self.bounded else FAR  # a quarter of the range
        if self.bounded:
            self.radius = min(self.radius, far)
        self.step_radius = self.widest = self.radius
        if not self.rough:
            wide = WIDER * self.radius
            self.step_radius = max(self.radius, min(wide, LEAST / 2))
            self.radius = max(self.radius, min(wide, LEAST))
            self.widest = max(self.radius, min(WIDER * self.radius, far))
            self.radius *= max(1.0, CLEAR / max(self.signal, 1e-300))
            self.radius = min(self.radius, self.widest)

    @classmethod
    def around(
        cls, problem: Problem, x: Floats, rng: np.random.Generator, found: Surroundings
    ) -> SPSA:
        """Return one that starts from what a search for the radius found."""
        made = cls(
            problem, x, rng, found.radius, found.deviation, found.signal, found.base, found.rough
        )
        made.best_values = found.values
        return made

    def pair(self) -> Floats:
        """Return the next two points."""
        problem, x, signs = self.problem, self.x, random_signs(self.x.size, self.rng)
        reach = self.radius * problem.unit
        if not self.bounded:
            move = reach * signs
            return np.array([x + move, x - move])
        least = min(NARROW * (1 - NARROWER * self.share), self.radius)
        room = np.minimum(x - problem.lower, problem.upper - x)
        middle, reach = problem.centred(x, np.clip(room, least * problem.unit, reach))
        move = reach * signs
        return problem.clipped(np.array([middle + move, middle - move]))

    def learn(self, pair: Floats, values: Floats) -> None:
        """Take a step along the pair, unless an evaluation failed."""
        self.share += self.per_pair
        plus, minus = values.tolist()
        odd = (plus - minus) / 2
        if not abs(odd) < np.inf:
            return
        self.odds.append(odd)
        slope = odd / self.radius
        self.slopes.append(abs(slope))
        if len(self.slopes) % FEWEST == 0:
            recent = sorted(self.slopes[-REMEMBERED:])
            self.most = CLIP * recent[len(recent) // 2]
        slope = min(max(slope, -self.most), self.most)
        unit = self.problem.unit
        self._step((slope / (2 * self.radius)) * (pair[0] - pair[1]) / unit)

    def _step(self, gradient: Floats) -> None:
        """Take a step of Adam."""
        self.n_mean += 1
        self.n_square += 1
        self.mean += (1 - BETA1) * (gradient - self.mean)
        self.square += (1 - BETA2) * (gradient * gradient - self.square)
        left = max(0.0, 1 - self.share) * np.exp(-self.falls * self.share)
        length = self.rate * self.step_radius * left / (1 - BETA1**self.n_mean)
        size = np.sqrt(self.square / (1 - BETA2**self.n_square)) + 1e-300
        self.x = self.problem.clipped(self.x - length * self.problem.unit * self.mean / size)

    @property
    def rate(self) -> float:
        r"""First step length in units of the radius.

        Where pairs hardly show above the noise n steps must not wander farther than about the
        radius by chance: steps of :math:`2 / \sqrt n` keep coordinates that do nothing where they
        are.
        """
        patient = SLOW * float(np.sqrt(self.per_pair))
        return min(RATE, max(patient, RATE * self.signal / SHOWS))

    def propose(self, data: Evaluations) -> tuple[Floats, bool] | None:
        """Return where a quadratic is lowest, and whether that is inside the region of trust."""
        p, unit = self.x.size, self.radius * self.problem.unit
        if p > LARGEST:
            return None
        points, values = data.near(self.x, unit, NEAREST, NEAR)
        if len(values) <= p / 2 + 5:  # of fewer even the slope tells too little
            return None
        model = fit(points, values, self.deviation, self.sizes)
        self.sizes = model.sizes
        effects = np.stack([model.effects, model.errors])
        if not outstanding(self.effects) > outstanding(effects):
            self.effects = effects
        farthest = self.trust * np.sqrt(p)
        u = model.minimiser(farthest)
        inside = bool(np.linalg.norm(u) < 0.9 * farthest)  # steps to the edge are not quite as long
        return self.problem.clipped(self.x + unit * u), inside

    def go(self, x: Floats) -> None:
        """Go on from another point, without momentum."""
        self.x, self.n_mean = x, 0
        self.mean[:] = 0.0

    def go_back(self) -> None:
        """Go back to the best point checked, with half the step length."""
        self.go(self.best)
        self.square[:] = 0.0
        self.n_square = 0
        self.step_radius /= 2
        self.radius = min(self.radius, self.step_radius)

    def keep(self, x: Floats, value: float, values: Floats) -> None:
        """Keep a point as the best one checked."""
        self.best, self.best_value, self.best_values = x, value, values[np.isfinite(values)]

    def measure_noise(self, groups: list[Floats]) -> None:
        """Move the deviation towards that of repeats, as far as their number allows."""
        groups = [group[np.isfinite(group)] for group in groups]
        parts = [group - np.median(group) for group in groups if len(group) > 1]
        if self.problem.noise is not None or not parts:
            return
        off, n = np.concatenate(parts), max(len(part) for part in parts)
        if n > 3:
            seen, falls = robust_deviation(off), FALLS
        else:  # two values are nearly equal by chance
            seen, falls = float(np.sqrt(np.mean(off**2) * n / (n - 1))), RISES
        old, weight = self.deviation, min(1.0, n / TELL)
        seen = min(max(seen, old / falls), RISES * old)
        self.deviation = float((old + 1e-300) ** (1 - weight) * (seen + 1e-300) ** weight)

    def adapt_radius(self) -> None:
        """Shrink the radius where pairs show clearly; widen it where they do not."""
        self.odds, self.slopes = self.odds[-RECENT:], self.slopes[-REMEMBERED:]
        if len(self.odds) < FEWEST:
            return
        odd = float(np.sqrt(np.median(np.square(self.odds)) / 0.455))  # the median of chi-squared
        self.signal = odd / max(self.deviation, 1e-300)
        if self.signal > CLEAR:
            narrower = self.radius * max(0.5, CLEAR / self.signal)
            self.radius = max(narrower, 0.5 * self.step_radius * max(0.0, 1 - self.share))
        elif self.signal < HIDDEN:
            self.radius = max(self.radius, min(2 * self.radius, self.widest))

    @property
    def relevance(self) -> tuple[Floats, Floats] | None:
        """The effects as shares, and standard errors; None where none stands out by four errors.

        Effects that the largest of as many errors explains are 0: a hundred of them would have the
        lion's share.
        """
        effects, errors = self.effects
        if not np.isfinite(effects).all() or not outstanding(self.effects) > 4:
            return None
        least = np.sqrt(2 * np.log(10 * effects.size))
        shown = np.where(effects > least * errors, effects, 0.0)
        total = float(shown.sum())
        return (shown / total, errors / total) if total > 0 else None


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


def spsa_rounds(spsa: SPSA, budget: Budget, data: Evaluations, stall: Stall) -> Asking:
    """Take SPSA steps in 4 to 10 rounds; after each, check the point and what a model proposes.

    A proposal that is better by half a standard error is taken; else it is trusted less far. A
    point that is worse than the one kept by three is given up, one that is not worse by more than
    one is kept. The values tell the noise
    again, and the radius follows.
    """
    p, whole, start = spsa.x.size, max(1, budget.left), budget.spent
    n_rounds = min(int(np.clip(whole / (2 * p), 4, 10)), max(2, whole // 15))
    n_rounds = stall.parts(whole, n_rounds)
    n_values = int(np.clip(whole // 100, 2, 8))
    spsa.per_pair, spsa.falls = 2 / whole, float(np.log(max(1.0, whole / (FALL * p))))
    for k in range(n_rounds):
        n_rest = n_rounds - k
        spsa.share = (budget.spent - start) / whole
        n_pairs = (budget.left // n_rest - 2 * n_values) // 2
        for _ in range(min(max(n_pairs, 1), budget.left // 2)):
            pair = spsa.pair()
            values = yield pair
            data.add(pair, values)
            spsa.learn(pair, values)
        if not (yield from check(spsa, budget, data, n_values)):
            return
        error = spsa.deviation * float(np.sqrt(2 / n_values))
        yield Report(x=spsa.best, values=spsa.best_values, relevance=spsa.relevance)
        if stall.see(spsa.best_value, error):
            return


def check(spsa: SPSA, budget: Budget, data: Evaluations, n_values: int) -> Asking:
    """Evaluate the point and a proposal, and go to the better one; back where both are worse.

    Return whether there was budget for it.
    """
    proposal = spsa.propose(data)
    points, inner = [spsa.x], False
    if proposal is not None:
        points.append(proposal[0])
        inner = proposal[1]
    n = min(n_values, budget.left // len(points))
    if n < 1:
        return False
    rows = np.stack(points)
    values = yield np.broadcast_to(rows, (n, *rows.shape))
    if np.isnan(values).all(axis=0).any() and budget.left >= values.size:  # failed by chance?
        values = np.vstack([values, (yield np.broadcast_to(rows, (n, *rows.shape)))])
    groups = list(values.T)
    for x, group in zip(points, groups, strict=True):
        data.add(np.broadcast_to(x, (len(group), x.size)), group)
    error, levels = spsa.deviation * np.sqrt(2 / n), [level(group) for group in groups]
    k = 0
    if proposal is not None:
        k = int(levels[1] - levels[0] < ACCEPT * error)
        if k:
            spsa.go(points[1])
        if not k:
            spsa.trust = max(spsa.trust / 2, NARROWEST)
        elif not inner:
            spsa.trust = min(2 * spsa.trust, WIDEST)
    if not levels[k] <= spsa.best_value + GUARD * error:
        spsa.go_back()
    elif levels[k] < spsa.best_value + error:  # the lowest of all would be the luckiest
        spsa.keep(points[k], levels[k], groups[k])
    spsa.measure_noise(groups)
    spsa.adapt_radius()
    return True


def level(values: Floats) -> float:
    """Return the median of values, the mean of up to three, infinity where all failed."""
    seen = values[np.isfinite(values)]
    if not len(seen):
        return np.inf
    return float(np.median(seen) if len(seen) > 3 else seen.mean())
