"""The course of a run: its recipe, units, schedules and samples, and where on it the run is.

What the next step is made of is looked up here; what is asked and learnt is in
:mod:`scgd.optimizer`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scgd import random
from scgd.auto.plan import Plan
from scgd.auto.stage import Stage
from scgd.estimators import Probes
from scgd.policies import Policy
from scgd.problem import Problem, Sample, Sampling, count
from scgd.recipes import Recipe, as_recipe
from scgd.result import History, Status
from scgd.sampler import CoordinateSampler
from scgd.scale import ScaleSearch
from scgd.schedules import InverseTime, Linear, Schedule, SqrtOf
from scgd.steps import make_slots
from scgd.typing import Floats, Ints

__all__ = ["Course"]

CHUNK = 512
"""Steps whose schedules and rows are computed at a time."""


class Course:
    """What a run is made of and how far it is; :class:`~scgd.Optimizer` asks and learns.

    Its parameters are those of the optimizer.
    """

    def __init__(
        self,
        x0: Any,
        recipe: str | Recipe = "auto",
        *,
        sample: Sample = None,
        batch_size: int = 1,
        bounds: Any = None,
        max_evals: int | None = None,
        scale: Any = None,
        seed: int | np.random.SeedSequence | None = None,
        on_nonfinite: str = "raise",
    ) -> None:
        self.problem = Problem.check(x0, bounds, scale)
        self.recipe = as_recipe(recipe)
        if on_nonfinite not in ("raise", "skip"):
            raise ValueError(f"on_nonfinite must be 'raise' or 'skip', got {on_nonfinite!r}")
        self.on_nonfinite = on_nonfinite
        self.max_evals = None if max_evals is None else count(max_evals, "max_evals")
        self._seed(seed)
        self.sampling = Sampling.check(sample, batch_size, self.sample_key)
        self.theta: Floats = self.problem.x0.copy()
        self.view = self.theta.view()
        self.view.flags.writeable = False
        self.rebuild(self.recipe)
        self.history = History()
        self.t = 0  # steps taken
        self.ahead = 0  # steps under way
        self.nfev = 0  # evaluations accepted
        self.n_skipped = 0
        self.reserve = 0  # evaluations kept back for the caller
        self.status = Status.RUNNING
        self.last_phase: Floats = np.empty(0)
        self.leg_start = 0
        self.chunk_start = -1
        self.rows: Ints | None = None
        self.average: Floats = np.zeros((2, self.n_coords if self.recipe.average else 0))
        self.scouted: Floats | None = None
        self.pending: Probes | None = None
        self._values: Any = None
        self._answered: Any = None
        self.leg_end: int | None = None  # evaluations after which the plan decides what follows
        self.leg_total: int | None = None  # the step at which a plan's schedules end
        self.n_scouted = 0  # questions of stages
        self.n_reports = 0  # phases, or stretches of a stage, since this object was made
        self.stage: Stage | None = self._start_search()
        self.set_scale(self.problem.scale)
        self.plan = Plan(self) if self.recipe.adaptive else None

    def _seed(self, seed: int | np.random.SeedSequence | None) -> None:
        try:
            root = (
                seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
            )
        except (TypeError, ValueError):
            raise ValueError(f"seed must be None or a whole number >= 0, got {seed!r}") from None
        self.entropy = root.entropy
        # Children by key, not by spawn(), which would count in the caller's sequence.
        coords, rows, directions, samples = (
            np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, i)) for i in range(4)
        )
        self.stream = random.stream(coords)
        self.rows_rng = np.random.Generator(np.random.PCG64(rows))
        self.direction_rng = np.random.Generator(np.random.PCG64(directions))
        self.sample_key = samples.generate_state(2, np.uint64)

    def rebuild(self, recipe: Recipe) -> None:
        """Make sampler, memory and buffers afresh for a recipe."""
        self.recipe = recipe
        self.sampler = CoordinateSampler(
            recipe.policy, self.n_coords, self.stream, recipe.block_size, recipe.replace
        )
        self._check_importance()
        self.slots = make_slots(recipe.step, self.n_coords)
        self.hyper = np.array(recipe.step.hyper)
        self.observations: Floats = np.full(self.sampler.n_steps, np.nan)

    def adopt(self, recipe: Recipe, scale: Floats, horizon: int) -> None:
        """Go on under another recipe whose schedules end after ``horizon`` evaluations."""
        self.rebuild(recipe)
        self.leg_start = self.t
        self.leg_total = self.t + max(1, (horizon - self.nfev) // self.step_cost)
        self.set_scale(scale)

    def replace_recipe(self, recipe: Recipe) -> None:
        """Change schedules in the middle of a leg; policy, step rule and block size stay."""
        self.recipe = recipe
        if self.chunk_start >= 0:
            self._evaluate_schedules()

    def _check_importance(self) -> None:
        weights = self.recipe.importance
        if isinstance(weights, tuple) and len(weights) != self.n_coords:
            raise ValueError(
                f"importance has {len(weights)} weights for {self.n_coords} coordinates"
            )
        self.importance_weights = (
            None if weights is None or isinstance(weights, str) else np.array(weights)
        )

    def _start_search(self) -> ScaleSearch | None:
        """Search for the scale when a relative schedule needs one and nothing tells it."""
        relative = self.recipe.relative_rate or self.recipe.relative_radius
        if self.problem.scale is not None or not relative or self.recipe.adaptive:
            return None
        search = ScaleSearch(np.ones(self.n_coords))
        affordable = self.max_evals is None or 20 * search.cost <= self.max_evals
        if not affordable or self.recipe.estimator.n_evals(1) == 1:
            return None
        return search

    def set_scale(self, scale: Floats | None) -> None:
        """Fix the units of relative learning rates and radii."""
        ones = np.ones(self.n_coords)
        self.scale = ones if scale is None else scale
        self.rate_scale = self.scale if self.recipe.relative_rate else ones
        self.radius_scale = self.scale if self.recipe.relative_radius else ones
        self.uniform_scale = bool(np.all(self.scale == self.scale[0]))
        if self.chunk_start >= 0:
            self._evaluate_schedules()

    @property
    def n_coords(self) -> int:
        """The dimension of the problem."""
        return self.problem.x0.size

    @property
    def policy(self) -> Policy:
        """How coordinates are drawn."""
        return self.recipe.policy

    @property
    def step_cost(self) -> int:
        """Evaluations of one step, the scouting gradient included."""
        cost = self.recipe.estimator.n_evals(self.sampler.block_size)
        if self.policy.needs_gradient:
            cost += self.recipe.estimator.n_evals(self.n_coords)
        return cost

    @property
    def remaining(self) -> float:
        """Evaluations left in the budget."""
        return float("inf") if self.max_evals is None else self.max_evals - self.nfev - self.reserve

    @property
    def done(self) -> bool:
        """Whether the budget does not pay for another step."""
        if self.pending is not None:
            return False
        if self.plan is not None and self.plan.finished:
            return True
        return self.remaining < (self.stage.n_points if self.stage else self._next_cost())

    def _next_cost(self) -> int:
        scouted = self.scouted is not None
        return self.recipe.estimator.n_evals(self.sampler.block_size) if scouted else self.step_cost

    # ---- schedules and samples, a chunk of steps at a time ---------------------------------------

    def prepare(self) -> int:
        """Make rates, radii and rows cover step ``t``; return its place in the chunk."""
        step = self.t + self.ahead
        start = step - step % CHUNK
        if start != self.chunk_start:
            self.chunk_start = start
            self.rows = self.sampling.rows(CHUNK, self.rows_rng)
            self._evaluate_schedules()
        if self.sampler.position == 0:
            self._pace(step - start)
        return step - start

    def _pace(self, place: int) -> None:
        """Tell parts that change over the run how much of it is over, once per phase."""
        self.policy.pace(self.sampler.state, float(self.progress[place]))
        self.recipe.step.pace(self.slots, float(self.progress[place]))

    def _evaluate_schedules(self) -> None:
        steps = np.arange(self.chunk_start + 1, self.chunk_start + 1 + CHUNK)
        self.rates = self._values_of(self.recipe.learning_rate, steps, "learning_rate")
        self.radii = self._values_of(self.recipe.radius, steps, "radius")
        self.progress = 1.0 - self.resolved(Linear())(steps - 1)
        # Where all coordinates share a scale, step sizes are slices of these lists.
        self.common = (
            (self.rates * self.rate_scale[0]).tolist(),
            (self.radii * self.radius_scale[0]).tolist(),
        )

    def _values_of(self, schedule: Schedule, steps: Ints, name: str) -> Floats:
        indices = steps
        if getattr(innermost(schedule), "per", "step") == "pass":
            indices = steps * self.sampler.block_size // self.n_coords
        values = np.asarray(self.resolved(schedule)(indices), np.float64)
        values = np.broadcast_to(values, steps.shape)
        if not np.all(np.isfinite(values)) or np.any(values < 0):
            bad = values[~(np.isfinite(values) & (values >= 0))][0]
            raise ValueError(f"{name} must be finite and not negative, got {bad} from {schedule!r}")
        return np.ascontiguousarray(values)

    def step_sizes(
        self, place: int, coords: Ints, probs: Floats
    ) -> tuple[list[float], list[float]]:
        """Return step sizes and radii of consecutive single-coordinate steps."""
        steps = slice(place, place + len(coords))
        if self.uniform_scale and self.recipe.importance is None:
            return self.common[0][steps], self.common[1][steps]
        rates = self.rates[steps] * self.rate_scale[coords]
        factors = self.importance(coords, probs)
        if factors is not None:
            rates = rates * factors
        return rates.tolist(), (self.radii[steps] * self.radius_scale[coords]).tolist()

    def importance(self, coords: Ints, probs: Floats) -> Floats | None:
        """Return the factors on the step sizes of drawn coordinates."""
        kind = self.recipe.importance
        if kind is None:
            return None
        if kind == "inverse":
            return 1.0 / (self.sampler.block_size * probs)
        if kind == "relative":
            return 1.0 / (self.n_coords * probs)
        assert self.importance_weights is not None
        return np.asarray(self.importance_weights[coords])

    def in_units(self, grads: Floats, coords: Ints) -> Floats:
        """Return gradients per unit of each coordinate's scale, which a law can compare."""
        plain = self.uniform_scale or self.policy.dense
        return grads if plain else grads * self.rate_scale[coords]

    def sample_at(self, place: int) -> Any:
        """Return the sample of the step at this place of the chunk, for the user's function."""
        if self.rows is None:
            return self.sampling.xi(self.chunk_start + place)
        return self.rows[place]

    def resolved(self, schedule: Schedule) -> Schedule:
        """Fill in the budget of a schedule that decays over the run.

        Without a budget a linear decay becomes an inverse square root in passes.
        """
        if isinstance(schedule, SqrtOf):
            return SqrtOf(self.resolved(schedule.schedule))
        if not isinstance(schedule, Linear) or schedule.total is not None:
            return schedule
        if self.max_evals is None and self.leg_total is None:
            passes = InverseTime(schedule.scale * np.sqrt(10.0), 10.0, 0.5)
            return lambda t: passes(np.asarray(t) * self.sampler.block_size / self.n_coords)
        total = self.leg_total
        if total is None:
            total = max(self.leg_start + 1, (self.max_evals or 1) // self.step_cost)
        return replace(schedule, start=self.leg_start, total=total)

    def extend(self, max_evals: int | None) -> None:
        """Go on with a larger budget: schedules that decay over it start a new leg here."""
        self.max_evals = None if max_evals is None else count(max_evals, "max_evals")
        self.leg_start = self.t
        self.status = Status.RUNNING
        if self.plan is not None:
            self.plan.extend(self)
        if self.chunk_start >= 0:
            self._evaluate_schedules()


def innermost(schedule: Schedule) -> Schedule:
    """Return the schedule whose index is what another one's is."""
    return innermost(schedule.schedule) if isinstance(schedule, SqrtOf) else schedule
