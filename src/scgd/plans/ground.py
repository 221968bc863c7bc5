"""What a story stands on: the problem, the point that searches share, streams, what is kept."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from scgd.problem import Problem
from scgd.questions import Point
from scgd.recipes import Recipe
from scgd.samples import Samples
from scgd.searches import Relevance, Search, Stepping
from scgd.typing import Floats

__all__ = ["TOL", "Ground"]

NOMINAL = 200
"""Evaluations per coordinate that a run without a budget plans for."""
TOL = 1e-10
"""The share of the gain so far that counts as nothing."""


class Ground:
    """What a story stands on.

    Parameters
    ----------
    problem, samples
        What is known of the problem, and where samples come from.
    seed
        One seed, one trajectory.
    total
        The budget of the run; None where there is none.
    tol
        Without noise: the share of the gain so far that counts as nothing; 0 never ends a run.
    patience
        Under noise: evaluations without a significant gain that end a run; None for none.
    asks
        Whether a recipe may ask first if f repeats itself.
    first_order
        Whether the user has given partial derivatives.
    recipe
        Whether the method is a recipe.

    Attributes
    ----------
    point
        The point that the searches of the story share.
    spent
        Evaluations used when the story was last told something.
    kept
        A snapshot to go back to, and ``guarded``: whether the leg since then has yet to prove
        itself.
    arrays
        What outlives a search, by name.
    sentence
        What was found and chosen, for people.
    earlier
        Points that were measured before the run and their values, for searches that can use them.
    converged
        Whether the story ends because nothing was left to gain.
    repeats
        Whether f repeats itself, by test or by choice: then its lowest value means something.
    first, beside
        F at x0 and beside it, where a recipe asked for it.
    looks
        Whether the sentence is to say how far from x0 was looked.
    """

    def __init__(
        self,
        problem: Problem,
        samples: Samples,
        seed: np.random.SeedSequence,
        total: int | None = None,
        *,
        tol: float = TOL,
        patience: int | None = None,
        asks: bool = False,
        first_order: bool = False,
        recipe: bool = False,
    ) -> None:
        self.problem, self.samples, self.seed, self.total = problem, samples, seed, total
        self.tol, self.patience, self.asks = tol, patience, asks
        self.first_order, self.recipe = first_order, recipe
        self.point = Point(problem.x0)
        self.earlier: tuple[Floats, Floats] = (np.empty((0, problem.n_coords)), np.empty(0))
        self.begin()

    def begin(self) -> None:
        """Forget everything but the point: a story is told from the start."""
        self.spent = 0
        self.nominal = max(1000, NOMINAL * self.problem.n_coords)
        self.n_streams = self.n_lanes = 0
        self.live: dict[str, Search] = {}
        self.arrays: dict[str, Floats] = {}
        self.kept: dict[str, Any] | None = None
        self.guarded = False
        self.sentence = ""
        self.silent = self.converged = self.repeats = self.looks = False
        self.first = self.beside = float("nan")

    @property
    def budget(self) -> int:
        """Evaluations to plan for."""
        return self.nominal if self.total is None else self.total

    @property
    def room(self) -> int:
        """Evaluations left of them."""
        return self.budget - self.spent

    def stream(self) -> np.random.SeedSequence:
        """Return a seed that no other search of the story has."""
        self.n_streams += 1
        key = (*self.seed.spawn_key, self.n_streams)
        return np.random.SeedSequence(self.seed.entropy, spawn_key=key)

    def rng(self) -> np.random.Generator:
        """Return a generator of that kind."""
        return np.random.Generator(np.random.PCG64(self.stream()))

    def aside(self) -> np.random.Generator:
        """Return a generator outside of that order, for a question that may be left out."""
        key = (*self.seed.spawn_key, 0)
        seed = np.random.SeedSequence(self.seed.entropy, spawn_key=key)
        return np.random.Generator(np.random.PCG64(seed))

    def steps(
        self, recipe: Recipe, scale: Floats | None, budget: int | None, name: str = "leg"
    ) -> Stepping:
        """Return steps under a recipe; they live on, so that they can run leg by leg."""
        steps = Stepping(
            recipe, self.problem, self.samples, self.point, self.stream(),
            scale=scale, budget=budget,
        )  # fmt: skip
        self.live[name] = steps
        return steps

    def keep(self, leg: Stepping) -> None:
        """Keep what the leg has reached, and guard it from here on."""
        self.kept, self.guarded = leg.snapshot(), True

    def hold(self, name: str, array: Floats) -> Floats:
        """Have an array outlive the search that made it."""
        self.arrays[name] = array
        return array

    def note_law(self, law: Floats) -> None:
        """Take a law of drawing that is in force: a law forgets, their mean does not."""
        sums = self.arrays["laws"]
        sums += law, law**2
        self.arrays["n_laws"] += 1

    @property
    def mean_law(self) -> Relevance | None:
        """The mean of the laws noted and its standard error; NaN for one, None for none."""
        n = float(self.arrays.get("n_laws", np.zeros(1))[0])
        if n == 0:
            return None
        mean, square = self.arrays["laws"] / n
        error = np.sqrt(np.maximum(square - mean**2, 0.0) / (n - 1)) if n > 1 else mean * np.nan
        return mean, error

    def size(self, length: float) -> str:
        """Return a length for people: in units of x where its coordinates share one."""
        unit = self.problem.unit
        common = bool(np.all(unit == unit[0]))
        return f"{length * float(unit[0]):.3g}" if common else f"{length:.3g} times scale"

    def warn(self, message: str) -> None:
        """Warn the user, once."""
        if not self.silent:
            warnings.warn(message, RuntimeWarning, stacklevel=2)
