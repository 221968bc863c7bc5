"""Check a walk, and what a regression proposes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scgd.questions import EVERYWHERE, Question, joint
from scgd.searches.arms.box import REACH
from scgd.searches.base import Finding, Relevance, Search, Standing
from scgd.searches.walk import Walk
from scgd.typing import Floats

__all__ = ["Check", "Progress"]

ACCEPT, GUARD = -0.5, 3.0
"""Standard errors by which a proposal must lie below the point, and the point may lie above the
best one checked."""
WIDEST, NARROWEST = 4.0, 0.1
"""Limits of the region of trust."""
FEW = 3
"""Values up to which a mean is used instead of a median."""
CLEAR, HIDDEN = 8.0, 1.5
"""Odd parts of pairs, in deviations, above which the radius shrinks and below which it grows."""
SHRINKS, SHRINKS_FEW, GROWS = 20.0, 4.0, 4.0
"""How much smaller and larger the noise may seem from one check to the next: noise that falls with
f falls fast, but two values are nearly equal by chance."""
WORTH = 0.25
"""The part of what has been gained that the rise at a wider radius may cost."""


@dataclass(frozen=True)
class Progress(Finding):
    """How far a walk has come.

    Attributes
    ----------
    value, error
        The value of the best point checked, and the standard error of the difference of two.
    """

    value: float
    error: float


class Check(Search):
    """Evaluate the point of a walk and what a quadratic proposes, so many times each.

    A proposal that is better by half a standard error is taken; else it is trusted less far. A
    point that is worse than the best one checked by three is given up. The values tell the noise
    again, and the radius of the walk follows: wide enough for pairs to show, as narrow as they
    allow.

    Parameters
    ----------
    walk
        The walk.
    n_values
        Values at each of the two points.
    """

    name: ClassVar[str] = "check"
    found: ClassVar[type[Finding]] = Progress
    memory: ClassVar[tuple[str, ...]] = ("inner", "proposed")

    def __init__(self, walk: Walk, n_values: int) -> None:
        super().__init__(walk.point)
        self.walk, self.n_values = walk, n_values
        self.inner = self.proposed = False

    @property
    def cost(self) -> int:
        """Evaluations of the question."""
        return self.n_values * (2 if self.walk.fits else 1)

    def ask(self) -> Question:
        """Return the point and the proposal (the point again where there is none)."""
        rows = np.tile(self.point.x, (self.cost, 1))
        proposal = self.walk.propose() if self.walk.fits else None
        if proposal is not None:
            self.proposed = True
            rows[self.n_values :], self.inner = proposal
        return joint(self.point, EVERYWHERE, rows, far=True)

    def tell(self, question: Question, values: Floats) -> None:
        """Choose, guard, and set noise and radius of the walk."""
        walk, n = self.walk, self.n_values
        walk.note(question.entries, values)
        groups = [values[:n], values[n:]] if self.proposed else [values]
        groups = [group[~np.isnan(group)] for group in groups]
        error = walk.deviation * np.sqrt(2 / n)
        value, seen = middle(groups[0]), groups[0]
        if self.proposed:
            other = middle(groups[1])
            better = other - value < ACCEPT * error
            self._trust(better)
            if better:
                walk.go(question.entries[n])
                value, seen = other, groups[1]
        if not value <= walk.best_value + GUARD * error:
            walk.go_back()
        elif value < walk.best_value:
            walk.keep(value, seen)
        self._measure_noise(groups)
        self._set_radius(value)
        self.finished = True
        self.report(value if np.isfinite(value) else walk.best_value)

    def _trust(self, better: bool) -> None:
        walk = self.walk
        if not better:
            walk.trust = max(walk.trust / 2, NARROWEST)
        elif not self.inner:
            walk.trust = min(2 * walk.trust, WIDEST)

    def _measure_noise(self, groups: list[Floats]) -> None:
        """Move the deviation towards that of the repeats, as far as their number allows."""
        walk, n = self.walk, self.n_values
        if walk.problem.noise is not None or n < 2:
            return
        parts = [group - np.median(group) for group in groups if len(group) > 1]
        off = np.concatenate([np.empty(0), *parts])
        if not len(off):
            return
        if n > FEW:
            seen = 1.4826 * float(np.median(np.abs(off)))
        else:
            seen = float(np.sqrt(np.mean(off**2) * n / (n - 1)))
        old, weight = walk.deviation, min(1.0, n / 8)
        seen = min(max(seen, old / (SHRINKS if n > FEW else SHRINKS_FEW)), GROWS * old)
        walk.deviation = float(
            np.exp((1 - weight) * np.log(old + 1e-300) + weight * np.log(seen + 1e-300))
        )

    def _set_radius(self, value: float) -> None:
        """Shrink the radius where pairs show clearly; widen it where they do not and may."""
        walk = self.walk
        if len(walk.odds) <= 5:
            return
        odd = float(np.sqrt(np.median(np.square(walk.odds)) / 0.45))  # of squares of normals
        walk.signal = odd / max(walk.deviation, 1e-300)
        if odd > CLEAR * walk.deviation:
            narrower = walk.radius * max(0.5, CLEAR * walk.deviation / odd)
            walk.radius = max(narrower, 0.5 * walk.reach * max(0.0, 1 - walk.share))
        elif odd < HIDDEN * walk.deviation and walk.levels and not walk.footing.rough:
            rise, gained = float(np.median(walk.levels)) - value, walk.footing.base - value
            if 4 * rise < WORTH * gained:
                walk.radius = max(walk.radius, min(2 * walk.radius, REACH))

    def finding(self) -> Progress:
        """Return how far the walk has come."""
        walk = self.walk
        error = walk.deviation * float(np.sqrt(2 / self.n_values))
        return Progress(float(walk.best_value), error)

    @property
    def relevance(self) -> Relevance | None:
        """What the walk knows."""
        return self.walk.relevance

    @property
    def standing(self) -> Standing:
        """What the walk stands for."""
        return self.walk.standing


def middle(values: Floats) -> float:
    """Return the median of values, the mean of a few, infinity where all were lost."""
    if not len(values):
        return float("inf")
    return float(np.median(values) if len(values) > FEW else values.mean())
