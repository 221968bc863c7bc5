"""SCGD steps along joint random directions, at radii that show above the noise.

For large budgets: first the radius at which dense directions show and how much wider joint moves
may be, a first stage there, then a radius per coordinate where the budget allows, and a second
stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.estimators import SPSA
from scgd.method import SCGD
from scgd.policies import Full
from scgd.problem import Problem
from scgd.schedules import Constant, Linear, Relative, Schedule
from scgd.steps import Wiener
from scgd.strategies.asks import Asking, Report, Steps, Wait
from scgd.strategies.budget import Budget, Stall
from scgd.strategies.comparison import compare
from scgd.strategies.coordinate_radii import coordinate_radii
from scgd.typing import Floats

FIRST, SECOND = 2.0, 0.75
"""First step lengths of the stages, in units of the radius over the root of the stage's steps: a
random walk of so many steps may go so far by chance."""
START = 0.3
"""The part of what is left that the first stage takes."""
BACK = 0.25
"""How far the second search for a joint radius starts below the first one's."""
NARROW = 0.1
"""The part of the radius that is left at the end where f is no quadratic."""
MOST_TRIES = 4
"""First stages that may lead up, each begun at a third of the radius before: two decades in all."""


def joint_method(n_steps: int, factor: float, radius: Schedule) -> SCGD:
    """Return SCGD with random signs on all coordinates at once and shrunken steps.

    Steps go along the mean gradient shrunk by what noise explains, with a length that all
    coordinates learn together: a short stage must learn fast, a long one that does would follow the
    noise. In units of the radii found; ``radius`` is how much wider joint moves are.
    """
    n = max(1, n_steps)
    gain = float(np.clip(15 / n, min(0.01, 35 / n), 0.05))
    return SCGD(
        name="joint directions",
        policy=Full(),
        estimator=SPSA(),
        step=Wiener(shared_gain=gain),
        learning_rate=Relative(Linear(factor / np.sqrt(n), power=2)),
        radius=Relative(radius),
    )


@dataclass
class Joint:
    """Where it stands, and what all stages need."""

    problem: Problem
    budget: Budget
    rng: np.random.Generator
    x: Floats
    stall: Stall
    scale: Floats
    gained: bool = False

    @property
    def n_checks(self) -> int:
        """Pairs of a comparison."""
        total = self.budget.total
        return max(min(10, total // 40), int(0.002 * total), 2)

    @property
    def n_levels(self) -> int:
        """Radii that are tried for each coordinate: as many as an eighth of the budget pays.

        Where it pays for none, coordinates do not come near a minimum either: what counts is to go
        down, and bias matters less than noise.
        """
        n, total = self.problem.n_coords, self.budget.total
        return 7 if 14 * n <= 0.12 * total else 3 if 6 * n <= 0.12 * total else 0

    def n_steps(self, share: float) -> int:
        """Return the steps of a stage that takes a share of what is left, less comparisons."""
        return max(0, int(share * (self.budget.left - 6 * self.n_checks) / 2))

    def radii(self, common: Floats, levels: int, n_steps: int) -> Asking:
        """Look for radii around a common one, for so many steps."""
        n_pairs = int(np.clip(self.budget.total // 600, 2, 10))  # six too often saw no growth
        n_steps = n_steps if self.n_levels else 0
        return (yield from coordinate_radii(
            self.problem, self.x, self.rng, common, n_levels=levels, n_repeats=self.n_checks,
            n_pairs=n_pairs, n_steps=n_steps,
        ))  # fmt: skip

    def stage(self, share: float, factor: float, radius: Schedule, base: float) -> Asking:
        """Spend a share of what is left on SCGD steps; go back where that led up.

        Return whether it did. Where a stall ends the run, the stage is compared on the way.
        """
        from scgd.descent import CoordinateDescent

        n_steps = self.n_steps(share)
        if n_steps < 1:
            return False
        method, seed = joint_method(n_steps, factor, radius), int(self.rng.integers(2**62))
        engine: Any = CoordinateDescent(
            method, self.problem, self.x, np.random.SeedSequence(seed), scale=self.scale,
            budget=2 * n_steps,
        )  # fmt: skip
        n_parts, left = self.stall.parts(2 * n_steps, 1), 2 * n_steps
        for part in range(n_parts):
            n_evals = left // (n_parts - part)
            stage = yield Steps(engine, n_evals, base)
            left -= n_evals
            found = yield from compare(stage.x, self.x, self.n_checks)
            if found.worse(2):
                yield Report(x=self.x, values=found.others)
                return True
            self.gained |= found.better(2)
            if part == n_parts - 1 or found.better(2):
                self.x = np.array(stage.x)
                yield Report(x=self.x, values=found.values)
            if self.stall.note(found.better(2)):
                return False
            base = float("nan")
        return False


def joint_directions(
    problem: Problem, budget: Budget, rng: np.random.Generator, x: Floats, radius: float,
    stall: Stall, *, leave: bool = False,
) -> Asking:  # fmt: skip
    """Take a first stage at a radius, look again, take a second one; as long as there is budget.

    Return where it stands. With ``leave`` a first stage that did not lead down is the last.
    """
    here = Joint(problem, budget, rng, x, stall, radius * problem.unit)
    growth, base = yield from first_stage(here)
    if leave and not here.gained:
        return here
    wide: Schedule = Constant(growth)
    if not stall.over and budget.left > 8 * here.n_checks:
        wide, base = yield from own_radii(here, growth)
    while not stall.over:
        yield from here.stage(1.0, SECOND, wide, base)
        base = float("nan")
        if budget.left <= max(budget.total // 50, 8 * here.n_checks):
            yield Wait()
    return here


def first_stage(here: Joint) -> Asking:
    """Take a stage that ends no worse than it began, nearer by if need be.

    Return how much wider joint moves are, and f at the point.
    """
    for _ in range(MOST_TRIES + 1):
        grown = yield from here.radii(here.scale, 0, here.n_steps(START))
        growth = grown.joint if grown.seen else 1.0
        worse = yield from here.stage(START, FIRST, Constant(growth), grown.base)
        if not worse:
            break
        here.scale = here.scale / 10**0.5
    return growth, grown.base


def own_radii(here: Joint, growth: float) -> Asking:
    """Find a radius per coordinate and make them the scale of the second stage.

    Return how much wider joint moves are, and f at the point. On quadratics wide moves have the
    least noise and no bias; elsewhere they become narrower on the way.
    """
    levels = here.n_levels
    common = here.scale * growth * (1.0 if levels else BACK)
    own = yield from here.radii(common, levels, here.n_steps(1.0))
    n, wide = int(np.count_nonzero(own.resolved)), growth
    if levels and n:
        wide = own.joint * np.sqrt(n)
        here.scale = np.where(own.resolved, own.radii / np.sqrt(n), growth / wide * here.scale)
        shares = np.where(own.resolved, own.radii**-2.0, 0.0)
        yield Report(relevance=(shares / shares.sum(), np.full(len(shares), np.nan)))
    elif not levels and own.seen:
        wide = growth * BACK * own.joint
    radius: Schedule = Linear(wide, NARROW) if levels and own.steep else Constant(wide)
    return radius, own.base
