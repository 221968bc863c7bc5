"""One run of a method on a linear problem: set up from a method, advanced by compiled loops.

Coordinate steps drawn from a compiled law run fused, many phases per call; what a law cannot draw
in the loop (all coordinates in order, blocks of distinct coordinates, greedy choices) runs phase by
phase through the same kernel and the policy's own functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd import timetable
from scgd.estimators import (
    SPSA,
    CentralDifference,
    FirstOrder,
    ForwardDifference,
    GaussianSmoothing,
    SphereSmoothing,
)
from scgd.linear.data import frozen
from scgd.method import SCGD
from scgd.policies import CompiledPolicy
from scgd.random import stream
from scgd.steps import make_slots
from scgd.typing import Floats, Ints
from scgd_paper.linear.by_code import code_of
from scgd_paper.linear.columns import compute_margins, explore_columns, run_columns
from scgd_paper.linear.directions import GAUSSIAN, SIGNS, SPHERE, run_directions
from scgd_paper.linear.engine import N_PHASES, POSITION, Walk, draw_rows, run_rows
from scgd_paper.linear.inputs import Problem
from scgd_paper.linear.rows import CENTRAL, FIRST, FORWARD, explore_rows
from scgd_paper.linear.smoothness import visit_costs

__all__ = ["Run", "Timetable"]

MODES = {
    ForwardDifference: FORWARD,
    CentralDifference: CENTRAL,
    FirstOrder: FIRST,
    GaussianSmoothing: GAUSSIAN,
    SphereSmoothing: SPHERE,
    SPSA: SIGNS,
}
DIRECTIONS = (GAUSSIAN, SPHERE, SIGNS)
NOTHING = np.empty(0)


class Timetable(timetable.Timetable):
    """The timetable of a method whose schedules fall over a number of steps, for compiled loops."""

    def __init__(self, method: SCGD, n_coords: int, n_steps: int, block: int) -> None:
        super().__init__(
            method.learning_rate, method.radius, n_coords=n_coords, n_draws=block, total=n_steps
        )
        self.shares = timetable.Mixings(method.policy.mixing)

    def chunk(self, first: int, n: int) -> tuple[Floats, Floats]:
        """Return the step sizes and radii of the ``n`` steps after ``first``."""
        rates, radii = self.span(first, n)
        return frozen(rates), frozen(radii)

    def mixings(self, first: int, n: int) -> Floats:
        """Return the mixtures of the ``n`` phases after ``first``."""
        return frozen(self.shares.span(first, n))


class Run:
    """One run: its walk, its law and how to advance them.

    Parameters
    ----------
    problem, method
        What is minimised, and how. A problem with columns is walked by columns.
    batch, shared
        Samples per step (or per coordinate of a step, where they do not share); 0 for all.
    start
        The first iterate.
    seed
        Of all random streams of this run.
    scale, scaled
        Factors on the step sizes, one per coordinate, or empty; whether gains are measured in their
        units.
    """

    def __init__(
        self,
        problem: Problem,
        method: SCGD,
        batch: int,
        shared: bool,
        start: Floats,
        seed: int | np.random.SeedSequence,
        scale: Floats = NOTHING,
        scaled: bool = False,
    ) -> None:
        n_coords, policy = len(start), method.policy
        self.problem, self.method, self.policy = problem, method, policy
        self.mode = MODES[type(method.estimator)]
        self.block = block_of(method, n_coords)
        self.by_columns = problem.columns is not None
        self.state: Any = policy.init(n_coords, method.replace)
        self.fused = isinstance(policy, CompiledPolicy) and (method.replace or self.block == 1)
        n_phase = -(-policy.phase_length(n_coords) // self.block)
        n_phase = 1 if self.mode in DIRECTIONS else n_phase
        n_rows = batch if shared or self.mode in DIRECTIONS else batch * self.block
        size = n_phase * self.block
        room = len(problem.targets) if self.by_columns else n_rows
        streams = [stream(child) for child in children(seed, 3)]
        rows = np.zeros((n_phase, n_rows), np.int64)
        self.walk = Walk(
            codes=self._codes(shared, scaled),
            params=self._params(n_coords),
            theta=start.copy(),
            coords=np.zeros(size, np.int64),
            probs=np.ones(size),
            grads=np.zeros(size),
            rows=rows,
            margins=np.zeros(n_coords if self.mode in DIRECTIONS else room),
            scale=frozen(scale),
            rule=code_of(method.step) or None,
            hyper=frozen(np.array(method.step.hyper, np.float64)),
            slots=make_slots(method.step, n_coords),
            costs=frozen(visit_costs(problem, n_coords) if scaled else NOTHING),
            place=np.zeros(3, np.int64),
            coord_stream=streams[0],
            row_stream=streams[1],
            direction_stream=streams[2],
            samples=rows if n_rows > 0 else None,
            whole=None if n_rows > 0 else True,
        )

    def _codes(self, shared: bool, scaled: bool) -> Ints:
        problem = self.problem
        return np.array([problem.n_features, problem.loss, self.mode, self.block, shared, scaled])

    def _params(self, n_coords: int) -> Floats:
        problem, estimator, kind = self.problem, self.method.estimator, self.method.importance
        divisor = {"inverse": self.block, "relative": n_coords}.get(str(kind), 0)
        factor = estimator.factor(n_coords) if isinstance(estimator, SphereSmoothing) else 1.0
        return np.array([problem.epsilon, problem.l2, problem.l1, divisor, factor], np.float64)

    @property
    def weights(self) -> Floats:
        """The sampling weights in force."""
        return np.asarray(self.policy.weights(self.state))

    def advance(self, table: Timetable, first: int, n: int, stride: int, snapshots: Floats) -> None:
        """Take ``n`` steps after step ``first``; store theta after every ``stride`` of them."""
        rates, radii = table.chunk(first, n)
        if self.mode in DIRECTIONS:
            run_directions(self.problem, self.walk, rates, radii, stride, snapshots)
            return
        n_phases = n // len(self.walk.rows) + 2
        mixings = table.mixings(int(self.walk.place[N_PHASES]), n_phases)
        if self.fused:
            loop = run_columns if self.by_columns else run_rows
            loop(self.problem, self.walk, self.state, rates, radii, mixings, stride, snapshots)
        else:
            self.advance_by_phases(rates, radii, mixings, stride, snapshots)

    def advance_by_phases(
        self, rates: Floats, radii: Floats, mixings: Floats, stride: int, snapshots: Floats
    ) -> None:
        """Take steps as the fused loop does, with the policy's own functions."""
        walk, done, taken, ended = self.walk, 0, 0, 0
        while done < len(rates):
            here = int(walk.place[POSITION])
            if here == 0:
                self._draw()
            n = min(len(walk.rows) - here, len(rates) - done)
            if taken < len(snapshots):
                n = min(n, (taken + 1) * stride - done)
            self.explore(here, here + n, rates[done : done + n], radii[done : done + n])
            done += n
            if taken < len(snapshots) and done == (taken + 1) * stride:
                snapshots[taken] = walk.theta
                taken += 1
            walk.place[POSITION] = (here + n) % len(walk.rows)
            if walk.place[POSITION] == 0:
                self.policy.update(
                    self.state, walk.coords, walk.probs, walk.grads, float(mixings[ended])
                )
                walk.place[N_PHASES] += 1
                ended += 1

    def explore(self, first: int, last: int, rates: Floats, radii: Floats) -> None:
        """Run some steps of the current phase; by columns, with margins computed afresh."""
        problem, walk = self.problem, self.walk
        arrays: tuple[Any, ...]
        if problem.columns is not None:
            compute_margins(problem, walk.theta, walk.margins)
            data, kernel = problem.columns, explore_columns
            arrays = (*walk[:6], walk.samples, walk.whole, *walk[7:13])
        else:
            data, arrays, kernel = problem.rows, walk[:12], explore_rows
        kernel(*data, problem.targets, problem.weights, *arrays, first, last, rates, radii)

    def _draw(self) -> None:
        walk = self.walk
        self.policy.draw(
            self.state, walk.coord_stream, walk.coords, walk.probs, self.block, self.method.replace
        )
        draw_rows(walk.row_stream, len(self.problem.targets), walk.rows)


def children(seed: Any, n: int) -> list[np.random.SeedSequence]:
    """Return the first children of a seed without counting them on it: one seed, one run."""
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    sequence = type(root)
    return [
        sequence(root.entropy, spawn_key=(*root.spawn_key, k), pool_size=root.pool_size)
        for k in range(n)
    ]


def block_of(method: SCGD, n_coords: int) -> int:
    """Return how many coordinates a step informs; one along a direction."""
    if MODES[type(method.estimator)] in DIRECTIONS:
        return 1
    return n_coords if method.policy.dense else method.block_size
