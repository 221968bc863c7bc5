"""Which of many coordinates matter, seen through noise: random signs and a sparse regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scgd.estimators import random_signs
from scgd.problem import Problem
from scgd.questions import EVERYWHERE, Point, Question, joint
from scgd.searches.base import Finding, Relevance, Search
from scgd.typing import Array, Floats, Ints

__all__ = ["Screen", "Screened", "pursue"]

FIRST = 128
"""Pairs after which a screen that has found nothing is given up."""
MOST = 1000
OUTLIER = 6.0
"""Odd parts are clipped so many robust deviations from zero."""
ROUNDS, HALF = 20, 0.5
"""Rounds of a pursuit, and the part of the clearest effect that others of its round must have."""
CROWDED = 4
"""One over the part of the pairs that may have effects fitted to them."""
LEFT, NOISE = 0.25, 1.5
"""What the effects found may leave of the signal, and how far the noise may be underestimated."""
CHUNK = 4_000_000
"""Signs that are unpacked at a time."""


@dataclass(frozen=True)
class Screened(Finding):
    """What a screen found.

    Attributes
    ----------
    n_found
        How many coordinates showed an effect.
    sparse
        Whether they explain what was seen.
    """

    n_found: int
    sparse: bool


class Screen(Search):
    r"""Find the coordinates that matter from pairs :math:`x \pm h s` with random signs s.

    Half the difference of a pair is :math:`\sum_k s_k a_k`, with :math:`a_k` the effect of moving
    coordinate k by h, plus noise; whatever is even in the moves cancels. The effects are found by
    :func:`pursue`, so the noise that one coordinate's effect is for another's is taken out again.

    Parameters
    ----------
    problem, point
        What is known, and where to look.
    rng
        Where signs come from.
    radius
        How far coordinates are moved, in units of x.
    n_pairs
        Pairs, at most.
    deviation
        The standard deviation of the noise; 0 where it is not known.
    """

    name: ClassVar[str] = "screen"
    found: ClassVar[type[Finding]] = Screened
    sequential: ClassVar[bool] = False
    memory: ClassVar[tuple[str, ...]] = (
        "due", "n_told", "signs", "odds", "effects", "errors", "left", "far", "rng",
    )  # fmt: skip

    def __init__(
        self,
        problem: Problem,
        point: Point,
        rng: np.random.Generator,
        radius: float,
        n_pairs: int,
        deviation: float = 0.0,
    ) -> None:
        super().__init__(point)
        self.problem, self.rng, self.radius, self.deviation = problem, rng, radius, deviation
        self.most = min(n_pairs, MOST)
        self.due, self.n_told = min(FIRST, self.most), 0
        n = problem.n_coords
        self.signs: Array = np.zeros((self.most, (n + 7) // 8), np.uint8)
        self.odds: list[float] = []
        self.effects, self.errors = np.zeros(n), np.zeros(n)
        self.left = 0.0

    @property
    def cost(self) -> int:
        """Evaluations of a pair."""
        return 2

    def ask(self) -> Question | None:
        """Return a pair; all of a stage may be open."""
        if self.n_told + self.n_open >= self.due:
            return None
        problem, x = self.problem, self.point.x
        middle, reach = problem.centred(x, self.radius * problem.unit)
        move = reach * random_signs(x.size, self.rng)
        pair = problem.clipped(np.stack([middle + move, middle - move]))
        return joint(self.point, EVERYWHERE, pair, far=True)

    def tell(self, question: Question, values: Floats) -> None:
        """Keep the signs and half the difference; a lost value is a lost pair."""
        plus, minus = question.entries
        away = np.abs(question.entries - self.problem.x0) / self.problem.unit
        self.far = max(self.far, float(away.max()))
        self.n_told += 1
        if np.isfinite(values).all():
            self.signs[len(self.odds)] = np.packbits(plus > minus)
            self.odds.append(float(values[0] - values[1]) / 2)
        if self.n_told == self.due:
            self._look()

    def _look(self) -> None:
        """Fit what was seen; go on only where the first pairs show something."""
        n = len(self.odds)
        found = pursue(self.signs[:n], np.array(self.odds), self.effects.size)
        self.effects[...], self.errors[...], self.left = found
        self.finished = self.due == self.most or not self.effects.any()
        self.due = self.most

    def finding(self) -> Screened:
        """Return how many effects there are, and whether little but noise is left."""
        noise, power = self.deviation**2 / 2, float(np.mean(np.square(self.odds or [0.0])))
        explained = self.left <= LEFT * max(power - noise, 0.0) + NOISE * noise
        n = int(np.count_nonzero(self.effects))
        return Screened(n, bool(n and explained))

    @property
    def moving(self) -> Floats:
        """1 where an effect was found, 0 elsewhere."""
        return np.where(self.effects != 0, 1.0, 0.0)

    @property
    def relevance(self) -> Relevance | None:
        """The sizes of the effects as shares, and their standard errors."""
        total = float(np.abs(self.effects).sum())
        return (np.abs(self.effects) / total, self.errors / total) if total > 0 else None


def pursue(signs: Array, odd: Floats, n_coords: int) -> tuple[Floats, Floats, float]:
    r"""Return effects with :math:`d_i \approx \sum_k s_{ik} a_k`, few of them nonzero.

    Orthogonal matching pursuit: coordinates whose correlation with what is left exceeds what
    chance makes of so many, :math:`\sqrt{2 \log 10 p}` standard errors, enter by rounds, the
    clearest first, and all that have entered are fitted by least squares.

    Parameters
    ----------
    signs
        Bits (1 for plus), eight to a byte, a row per value.
    odd
        The values d.
    n_coords
        How many coordinates there are.

    Returns
    -------
    effects, errors, left
        Effects (0 where none shows), standard errors, and the mean square of what is left.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> plus = rng.random((200, 1000)) < 0.5
    >>> odd = (2.0 * plus[:, 7] - 1) - 3 * (2.0 * plus[:, 40] - 1) + 0.1 * rng.standard_normal(200)
    >>> effects, errors, left = pursue(np.packbits(plus, axis=1), odd, 1000)
    >>> np.flatnonzero(effects), np.round(effects[[7, 40]], 1), round(left, 2)
    (array([ 7, 40]), array([ 1., -3.]), 0.01)
    """
    n, usual = len(odd), 1.4826 * float(np.median(np.abs(odd))) if len(odd) else 0.0
    odd = np.clip(odd, -OUTLIER * usual, OUTLIER * usual) if usual > 0 else odd
    least, chosen = least_visible(n_coords), np.empty(0, np.int64)
    fitted, own, left = np.empty(0), np.empty(0), odd
    for _ in range(ROUNDS):
        error = spread(left, len(chosen)) / np.sqrt(max(n, 1))
        z = np.abs(correlations(signs, left, n_coords)) / max(n * error, 1e-300)
        z[chosen] = 0.0
        new = np.flatnonzero(z > max(least, HALF * float(z.max())))
        if not len(new) or len(chosen) + len(new) > n // CROWDED:
            break
        chosen = np.sort(np.concatenate([chosen, new]))
        fitted, own, left = least_squares(signs, odd, chosen)
        clear = np.abs(fitted) > least * own
        if not clear.all():
            chosen = chosen[clear]
            fitted, own, left = least_squares(signs, odd, chosen)
    effects = np.zeros(n_coords)
    errors = np.full(n_coords, spread(left, len(chosen)) / np.sqrt(max(n, 1)))
    effects[chosen], errors[chosen] = fitted, own
    return effects, errors, spread(left, len(chosen)) ** 2


def spread(left: Floats, n_fitted: int) -> float:
    """Return the standard deviation of what is left."""
    return float(np.sqrt(left @ left / max(len(left) - n_fitted, 1)))


def correlations(signs: Array, values: Floats, n_coords: int) -> Floats:
    """Return the sum of values times signs, for every coordinate."""
    total = np.zeros(n_coords)
    rows = max(1, CHUNK // n_coords)
    for first in range(0, len(values), rows):
        some = slice(first, first + rows)
        plus = np.unpackbits(signs[some], axis=1, count=n_coords).astype(np.float64)
        total += 2 * (values[some] @ plus) - values[some].sum()
    return total


def least_squares(signs: Array, odd: Floats, chosen: Ints) -> tuple[Floats, Floats, Floats]:
    """Return effects of some coordinates, their standard errors, and what they leave."""
    bits = signs[:, chosen // 8] >> (7 - chosen % 8).astype(np.uint8) & 1
    matrix = 2.0 * bits - 1.0
    inverse = np.linalg.pinv(matrix.T @ matrix)
    effects = inverse @ (matrix.T @ odd)
    left = odd - matrix @ effects
    return effects, spread(left, len(chosen)) * np.sqrt(np.diag(inverse)), left


def least_visible(n_coords: int) -> float:
    """Return the standard errors that noise reaches once in ten times among so many effects.

    Examples
    --------
    >>> round(least_visible(5000), 2)
    4.65
    """
    return float(np.sqrt(2 * np.log(10 * n_coords)))
