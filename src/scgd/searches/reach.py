"""How far to look when the noise is nobody's to control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from scgd.estimators import random_signs
from scgd.problem import Problem
from scgd.questions import Point, Question, here, moved
from scgd.searches.base import Finding, Search
from scgd.typing import Floats

__all__ = ["Reach", "Signal"]

ROOT10 = 10**0.5
REFINE = 20
DEFAULT = 0.3
FEW = 500
"""Evaluations below which the ladder is short."""


@dataclass(frozen=True)
class Signal(Finding):
    """The radius at which f shows above its noise, and by what: a slope, a bend, or nothing.

    Parameters
    ----------
    radius
        Where it shows.
    found
        By what it shows; ``"nothing"`` where it does not.
    """

    radius: float
    found: Literal["slope", "bend", "nothing"]


class Reach(Search):
    r"""Find the radius at which dense random directions show above the noise.

    Pairs :math:`f(x \pm h u)` with random signs u are taken on a ladder of radii, half a decade
    apart and never beyond 10 units of x. The odd part :math:`f_+ - f_-` is a signal where its mean
    square (without the largest, against outliers) exceeds that of the noise by many standard
    errors, and usable where the even part :math:`f_+ + f_- - 2 f(x)` does not dwarf it. Without a
    usable odd part more pairs are taken, and at last the radius just below the one where the even
    part changes; if nothing shows, 0.3 in units of x, and ``found`` says so.

    Parameters
    ----------
    problem, point
        What is known, and where to look; the ladder is short where the user told the unit.
    rng
        Where directions come from.
    budget
        Evaluations of the run.
    """

    name: ClassVar[str] = "reach"
    found: ClassVar[type[Finding]] = Signal
    memory: ClassVar[tuple[str, ...]] = (
        "turn", "n_round", "rung", "n_pairs", "repeats", "odd", "even", "where", "radius", "kind",
        "rng",
    )  # fmt: skip

    def __init__(
        self, problem: Problem, point: Point, rng: np.random.Generator, budget: int
    ) -> None:
        super().__init__(point)
        self.problem, self.rng, self.budget = problem, rng, budget
        wide = not problem.told and budget >= FEW
        self.ladder = 10.0 ** (np.arange(-10, 3) / 2 if wide else np.arange(-4, 2) / 2)
        self.turn = "repeats"
        self.n_round = self.rung = self.n_pairs = 0
        self.repeats: list[float] = []
        self.odd: list[float] = []
        self.even: list[float] = []
        self.where: list[float] = []
        self.radius, self.kind = DEFAULT, "nothing"

    @property
    def n_repeats(self) -> int:
        """Evaluations at x itself in this round."""
        return int(np.clip(0.02 * self.budget, 4, 20)) if not self.n_round else self.n_more

    @property
    def n_more(self) -> int:
        """Evaluations at x itself in later rounds."""
        return max(10, int(0.005 * self.budget))

    @property
    def cost(self) -> int:
        """Evaluations of the next question."""
        return self.n_repeats if self.turn == "repeats" else 2

    @property
    def pairs_per_level(self) -> int:
        """Pairs at each radius in this round."""
        if self.turn == "refine":
            return int(np.clip(0.01 * self.budget, 2, REFINE))
        most = 5 if not self.n_round else 100
        share = (0.04 if not self.n_round else 0.03) * self.budget
        return int(np.clip(share / (2 * len(self.ladder)), 1, most))

    def ask(self) -> Question:
        """Return repeats of x, or a pair along random signs."""
        if self.turn == "repeats":
            return here(self.point, self.n_repeats)
        x, problem = self.point.x, self.problem
        h = self.radius if self.turn == "refine" else float(self.ladder[self.rung])
        signs = random_signs(x.size, self.rng)
        centre, reach = problem.centred(x, h * problem.unit)
        moves = centre - x + np.stack([reach * signs, -reach * signs])
        return moved(self.point, moves, problem.lower, problem.upper, far=True)

    def tell(self, question: Question, values: Floats) -> None:
        """Take repeats or a pair; a lost value tells that a point was too far out."""
        if self.turn == "repeats":
            self.repeats.extend(values[~np.isnan(values)].tolist())
            self.turn, self.rung, self.n_pairs = "ladder", 0, 0
            return
        if not np.isnan(values).any():
            self.odd.append(float(values[0] - values[1]))
            self.even.append(float(values[0] + values[1]))
            self.where.append(-1.0 if self.turn == "refine" else float(self.rung))
        self.n_pairs += 1
        if self.n_pairs < self.pairs_per_level:
            return
        self.n_pairs = 0
        if self.turn == "refine":
            self._refine()
            return
        self.rung += 1
        if self.rung == len(self.ladder):
            self._end_round()

    @property
    def base(self) -> float:
        """The mean at x."""
        return float(np.mean(self.repeats)) if self.repeats else 0.0

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise at x."""
        return float(np.std(self.repeats, ddof=1)) if len(self.repeats) > 1 else 0.0

    def _end_round(self) -> None:
        level = self._odd_level(10.0 if not self.n_round else 6.0)
        if level is not None:
            self.radius, self.kind = float(self.ladder[level]), "slope"
            self.turn = "refine"
            return
        change, z, z_default = self._even_level()
        last = self.n_round == 3 or self.budget < 2000
        if z > 7 or (last and z > 4):
            if (z**2 - z_default**2) / 2 < 3:
                self.radius = DEFAULT
            else:
                self.radius = float(self.ladder[change]) / ROOT10
            self.kind, self.finished = "bend", True
        elif last:
            self.finished = True
        else:
            self.n_round += 1
            self.turn = "repeats"

    def _odd_level(self, least: float) -> int | None:
        """Return the level with the largest usable odd part, if any."""
        best, chosen, sigma = 0.0, None, self.sigma
        odd, even, where = np.array(self.odd), np.array(self.even), np.array(self.where)
        for level in range(len(self.ladder)):
            here = where == level
            n = int(here.sum())
            if n < 2:
                continue
            squares = odd[here] ** 2
            power = (squares.sum() - squares.max()) / (n - 1) / 4 - sigma**2 / 2
            z = power / max(sigma**2 / 2 * np.sqrt(2 / n), 1e-300)
            bent = abs(even[here].mean() - 2 * self.base)
            usable = bent <= 3 * np.sqrt(max(power, 0)) + 3 * sigma * np.sqrt(2 / n)
            if z > least and usable and power > best:
                best, chosen = float(power), level
        return chosen

    def _even_level(self) -> tuple[int, float, float]:
        """Return the level at which the even part changes, its z score and that of radius 1."""
        sigma = max(self.sigma, 1e-300)
        bent = np.clip((np.array(self.even) - 2 * self.base) / sigma, -8, 8)
        where = np.array(self.where)
        scores = np.zeros(len(self.ladder))
        for level in range(1, len(self.ladder)):
            inner, outer = bent[where < level], bent[where >= level]
            if len(inner) > 1 and len(outer) > 1:
                error = np.sqrt(2 / len(inner) + 2 / len(outer))
                scores[level] = abs(outer.mean() - inner.mean()) / error
        best = int(np.argmax(scores))
        default = int(np.argmin(np.abs(np.log(self.ladder))))
        return best, float(scores[best]), float(scores[default])

    def _refine(self) -> None:
        """Match odd and even parts at the radius found."""
        here = np.array(self.where) == -1
        self.finished = True
        if not here.any():
            self.radius /= ROOT10
            return
        odd = float(np.mean(np.abs(np.array(self.odd)[here]))) / 2
        bent = abs(float(np.mean(np.array(self.even)[here])) - 2 * self.base)
        if bent > 5 * self.sigma * np.sqrt(2 / here.sum()):
            self.radius *= float(np.clip(1.5 * odd / bent, 1 / 3, 1))

    def finding(self) -> Signal:
        """Return the radius found."""
        return Signal(self.radius, self.kind)  # type: ignore[arg-type]
