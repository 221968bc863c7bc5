"""Which of many inputs matter around a point, seen through noise: pairs of random signs.

Solvers look so for the few inputs worth moving. :mod:`scgd.strategies.whole_box` does it for all of
a box; both estimate by :mod:`scgd.strategies.effects`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scgd.problem import Problem
from scgd.strategies.asks import Asking
from scgd.strategies.effects import Effects, adjusted, estimate
from scgd.strategies.random_design import Design
from scgd.typing import Floats, Ints

__all__ = ["FIRST", "Pairs", "Screened", "evaluated", "screen", "shares"]

FIRST = 128
"""Pairs after which a screening around a point that has found nothing is given up."""
MOST = 1000
"""Pairs around a point, at most: they tell a hundred effects apart."""
LEFT, NOISE = 0.25, 1.5
"""What the effects found may leave of the signal, and how far the noise may be underestimated."""
CHUNK = 4_000_000
"""Entries of points that are asked at a time."""


@dataclass(frozen=True)
class Screened:
    """What a screening around a point found.

    Attributes
    ----------
    coords
        The coordinates that showed an effect.
    sparse
        Whether they explain what was seen.
    relevance
        The sizes of the effects as shares, and standard errors; None without one.
    """

    coords: Ints
    sparse: bool
    relevance: tuple[Floats, Floats] | None


def screen(
    problem: Problem, x: Floats, rng: np.random.Generator, radius: float, n_pairs: int,
    deviation: float, fdr: float = 0.1,
) -> Asking:  # fmt: skip
    r"""Find the coordinates that matter from pairs :math:`x \pm h s` with random signs s.

    Half the difference of a pair is :math:`\sum_k s_k a_k`, with :math:`a_k` the effect of moving
    coordinate k by h, plus noise; whatever is even in the moves cancels.

    Parameters
    ----------
    problem, x, rng
        What is known, where to look, and where signs come from.
    radius
        How far coordinates are moved, in units of x.
    n_pairs
        Pairs, at most.
    deviation
        The standard deviation of the noise.
    fdr
        The false-discovery rate.
    """
    most = min(n_pairs, MOST)
    middle, reach = problem.centred(x, radius * problem.unit)
    places = problem.clipped(np.stack([middle - reach, middle + reach])).T
    pairs = Pairs(problem, Design(places, np.full(x.size, 2)))
    effects = pairs.effects(alone=True)
    coords = np.empty(0, np.int64)
    for due in (min(FIRST, most), most):
        yield from pairs.ask(due - pairs.n_asked, rng)
        effects = pairs.effects(alone=True)
        coords = np.flatnonzero(adjusted(effects.p_values) < fdr)
        if not len(coords):
            break
    noise = deviation**2 / 2
    explained = effects.left[0] ** 2 <= (
        LEFT * max(effects.total[0] ** 2 - noise, 0.0) + NOISE * noise
    )
    return Screened(coords, bool(len(coords) and explained), shares(effects, coords))


def shares(effects: Effects, coords: Ints) -> tuple[Floats, Floats] | None:
    """Return the parts that inputs have in all effects found, and standard errors."""
    sizes, errors = np.zeros(effects.counts.size), effects.size_errors
    sizes[coords] = effects.sizes[coords]
    total = float(sizes.sum())
    return (sizes / total, errors / total) if total > 0 else None


class Pairs:
    """Pairs that are asked, and their values; failed ones are left out.

    Parameters
    ----------
    problem, design
        What is known, and where inputs stand.
    """

    def __init__(self, problem: Problem, design: Design) -> None:
        self.problem, self.design, self.n_asked = problem, design, 0
        self.values: list[list[float]] = []

    def ask(self, n_pairs: int, rng: np.random.Generator) -> Asking:
        """Ask so many pairs, each with a sample of its own."""
        design, due = self.design, self.n_asked + n_pairs
        while self.n_asked < due:
            n = min(max(1, CHUNK // (2 * design.n_inputs)), due - self.n_asked)
            drawn = [design.draw(rng) for _ in range(n)]
            points = np.stack([design.pair(levels) for levels in drawn])
            values = yield from evaluated(self.problem, points)
            self.n_asked += n
            for levels, pair in zip(drawn, values.tolist(), strict=True):
                if abs(pair[0] - pair[1]) < np.inf:
                    design.add(levels)
                    self.values.append(pair)

    def effects(self, *, alone: bool = False, exact: bool = False) -> Effects:
        """Return what they tell; of the differences only, where inputs count alone."""
        values = np.array(self.values).reshape(-1, 2)
        parts = [1] if alone else [1, 0]
        return estimate(self.design, values, products=not alone, parts=parts, exact=exact)


def evaluated(problem: Problem, points: Floats) -> Asking:
    """Evaluate groups of points, each with a sample of its own where there are samples.

    Without them all points are one batch, and evaluated in parallel.
    """
    if problem.sampled:
        return (yield points)
    values = yield points.reshape(-1, points.shape[-1])
    return values.reshape(points.shape[:-1])
