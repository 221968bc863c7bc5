"""What members of a portfolio share, and how they begin again."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, log, pi, sqrt

import numpy as np

from scgd.strategies.asks import Asking, Report
from scgd.strategies.bfgs import BFGS
from scgd.strategies.box import Box
from scgd.strategies.budget import Budget
from scgd.strategies.cma_es import cma_es, default_size
from scgd.strategies.member import Best, Member
from scgd.strategies.precision import Precision
from scgd.strategies.separability import is_separable
from scgd.strategies.stopping import StoppingRule
from scgd.typing import Floats

__all__ = ["Shared", "populations", "restarts"]

FULL, LARGEST_FULL, AMPLE = 64, 300, 500
"""Coordinates up to which a population learns a full covariance; and with 500 evaluations each."""
AROUND, DOUBLINGS, NEARER, LARGEST = 1.5, 3, (0.1, 0.3, 1.0), 8
"""Standard deviation of starts around x0, in lengths that are doubled up to three times, so that
neighbouring basins and far ones are met; parts of it around the best point, half a decade apart;
and how often a population doubles: a thousand members see all that a rank can tell."""
ACROSS = 0.2
"""The first step of a population that looks at the whole box, in its widths (Hansen's advice: the
minimum is expected within a few steps)."""
PER_START, LINKED, MOST_KEPT = 5, 2.0, 200
"""New points before a descent begins within the bounds, beside one per coordinate (a descent costs
ten times as many); sigma of single linkage: some descents again to a known minimum are cheaper than
one that is missed; and points that are compared: a lower one is always among so many."""


@dataclass
class Shared:
    """What the solvers of one portfolio share."""

    budget: Budget
    rng: np.random.Generator
    box: Box
    best: Best
    precision: Precision
    stopping: StoppingRule
    has_gradient: bool
    found: str  # what f is
    n_restarts: int = 0  # of the population
    flat: bool = False
    across: bool = False  # whether the population looks at the whole box

    def led_by(self, name: str) -> Report:
        """Return the report of who leads."""
        return Report(message=f"{self.found}: {name} leads a portfolio of solvers.")

    def member(self, name: str, asking: Asking) -> Member:
        """Return a solver of this portfolio."""
        return Member(name, asking, self.best)

    def bfgs(self, x: Floats, f: float, s: float, small: float = 0.0, main: bool = False) -> BFGS:
        """Return a descent from x."""
        box, precision = self.box, self.precision
        return BFGS(x, f, s, small, box, self.has_gradient, precision, main=main, best=self.best)

    def is_sum(self, s: float, x: Floats, f: float, n_times: int = 3) -> Asking:
        """Tell whether f is a sum over coordinates around x."""
        return is_separable(x, f, s, self.rng, self.box, self.precision, n_times)

    def within(self, s: float, part: float = 0.1) -> float:
        """Return a length, but at most a part of the box: walls cut what lies beyond."""
        return min(s, part * self.box.width)


def populations(share: Shared, x: Floats, start: Floats, s: float) -> Asking:
    """Restart CMA-ES with populations that double, with full and diagonal covariances in turn.

    Where f goes in steps the first is larger, no full one is followed by a diagonal one, and every
    second one begins at the best point: a small population soon stands on one step.
    """
    s, rng, box, p = share.within(s), share.rng, share.box, x.size
    mean, sigma = start, ACROSS * box.width if share.across else s
    ample = share.budget.left >= AMPLE * p
    full, k = p <= FULL or (p <= LARGEST_FULL and ample), 2 if share.flat and ample else 0
    while True:
        size = default_size(p) * 2 ** min(k, LARGEST)
        before, diagonal = share.best.f, not full or (k % 2 == 1 and not share.flat)
        value = yield from cma_es(mean, sigma, rng, size, diagonal=diagonal, box=box)
        if share.n_restarts:
            share.stopping.note("population", before, value)
        k += 1
        share.n_restarts += 1
        sigma = s * 2 ** rng.uniform(-1, 1)  # no two see the same ripples
        around = x + AROUND * sigma * rng.standard_normal(p)
        mean = share.best.x if share.flat and k % 2 else box.reflect(around)


def restarts(share: Shared, x: Floats, s: float) -> Asking:
    """Restart descents: around x0, anywhere within finite bounds, around the best point."""
    rng, box, best = share.rng, share.box, share.best
    sample = Sample(box)
    for n in range(1, 2**30):
        z = s * 2 ** rng.uniform(0, DOUBLINGS)
        start = x + AROUND * z * rng.standard_normal(x.size)
        if n % 3 == 0:
            start = best.x + z * rng.choice(NEARER) * rng.standard_normal(x.size)
        start, before = box.reflect(start), best.f
        if n % 3 == 2 and sample.finite:
            start, value = yield from sample.start(best, rng)
        else:
            value = yield start
        if not np.isfinite(value):
            continue
        # a thousandth of a gain that is not worth it counts as none
        newton = share.bfgs(start, value, s, 1e-3 * share.stopping.least(before))
        yield from newton.run()
        if newton.f < before:
            newton.small = 1e-3 * share.stopping.worth(before)
            yield from newton.run()
        value = newton.f
        if n % 3:  # an independent one
            share.stopping.note("descent", before, value)


class Sample:
    """Uniform points of a finite box, from the lowest of which descents begin.

    No descent begins near a lower point: it would come to the same minimum (multi-level single
    linkage, Rinnooy Kan and Timmer 1987).

    Parameters
    ----------
    box
        Whose bounds are meant: they may be infinite, and then there is no such sample.
    """

    def __init__(self, box: Box) -> None:
        self.low, self.high = box.least, box.most
        self.finite = box.finite
        self.points, self.values = np.empty((0, self.low.size)), np.empty(0)
        self.begun, self.n = np.empty((0, self.low.size)), 0

    def start(self, best: Best, rng: np.random.Generator) -> Asking:
        """Add points; return the lowest that has no lower one nearby, and its value."""
        p = self.low.size
        new = rng.uniform(self.low, self.high, (p + PER_START, p))
        values = yield new
        points, values = np.vstack([self.points, new]), np.append(self.values, values)
        order = np.argsort(values, kind="stable")
        self.points, self.values = points[order][:MOST_KEPT], values[order][:MOST_KEPT]
        lower = np.vstack([self.begun, best.x, self.points])
        width = np.maximum(self.high - self.low, np.finfo(float).tiny)
        self.n, first = self.n + len(new), len(self.begun) + 1
        gaps = [
            float(np.sqrt((((lower[: first + k] - x) / width) ** 2).sum(axis=1).min()))
            for k, x in enumerate(self.points)
        ]
        # pi^(-1/2) (Gamma(1 + p/2) sigma log(n) / n)^(1/p), in a box of volume 1
        near = exp((lgamma(1 + p / 2) + log(LINKED * log(self.n) / self.n)) / p) / sqrt(pi)
        k = next((k for k, gap in enumerate(gaps) if gap > near), int(np.argmax(gaps)))
        self.begun = np.vstack([self.begun, self.points[k]])
        return self.points[k], float(self.values[k])
