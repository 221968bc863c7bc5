"""SCGD itself as a search: policy x estimator x step rule x timetable.

The phase is the unit of exchange: a policy draws the coordinates of a phase under fixed weights,
the search visits them, and at the end of the phase the policy is shown the gradients. ``ask`` and
``tell`` say so one step at a time; the bodies in :mod:`scgd.explore` run the same steps on the same
arrays, bit for bit.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

import numpy as np

from scgd import random, steps
from scgd.estimators import FirstOrder, farthest_entry
from scgd.policies import Policy
from scgd.problem import Problem
from scgd.questions import Point, Question, here
from scgd.recipes import Recipe
from scgd.sampler import CoordinateSampler
from scgd.samples import Samples
from scgd.searches.base import Finding, Search, Standing
from scgd.searches.leg import REMEMBERED, Leg, above, compared
from scgd.timetable import Timetable
from scgd.typing import Floats, Ints

__all__ = ["Leg", "Stepping"]

WINDOW = 20
"""Observations, at least, whose mean is compared with a target."""
WATCH = 20
"""Steps between two looks at f itself in a run that only sees derivatives."""
FIXED = ("scale", "slots", "average", "observations")
"""Arrays whose shape follows from the parts."""
MOVE, SCOUT, LOOK = range(3)
"""Roles of questions: a step, a whole gradient before a step, f at the point."""


class Stepping(Search):
    """Steps along drawn coordinates.

    Parameters
    ----------
    recipe
        Its parts.
    problem, samples
        What is known of the problem, and where samples come from.
    point
        Where to start; moved in place.
    seed
        One seed, one trajectory.
    scale
        The unit of relative learning rates and radii; None for 1.
    budget
        Evaluations over which schedules fall; None where nothing limits them.
    """

    name: ClassVar[str] = "steps"
    found: ClassVar[type[Finding]] = Leg
    sequential: ClassVar[bool] = False
    memory: ClassVar[tuple[str, ...]] = (
        "t", "until", "scale", "slots", "average", "observations", "last_phase", "base",
        "first_radius", "gradient", "watched", "firsts", "n_phases", "sampler", "timetable",
        "direction_rng", "far",
    )  # fmt: skip

    def __init__(
        self,
        recipe: Recipe,
        problem: Problem,
        samples: Samples,
        point: Point,
        seed: np.random.SeedSequence,
        *,
        scale: Floats | None = None,
        budget: int | None = None,
    ) -> None:
        super().__init__(point)
        self.recipe, self.problem, self.samples = recipe, problem, samples
        n, key = problem.n_coords, (*seed.spawn_key,)
        coords, directions = (
            np.random.SeedSequence(seed.entropy, spawn_key=(*key, i)) for i in range(2)
        )
        distinct = recipe.estimator.distinct
        self.sampler = CoordinateSampler(
            recipe.policy, n, random.stream(coords), recipe.block_size,
            recipe.replace and not distinct,
        )  # fmt: skip
        self.direction_rng = np.random.Generator(np.random.PCG64(directions))
        self._check_importance()
        self.slots: Floats = steps.make_slots(recipe.step, n)
        self.hyper: Floats = np.array(recipe.step.hyper)
        self.apply = steps.applier(recipe.step)
        self.observations: Floats = np.full(self.sampler.n_steps, np.nan)
        self.last_phase: Floats = np.empty(0)
        self.average: Floats = np.zeros((2, n if recipe.average else 0))
        self.gradient: Floats = np.empty(0)
        self.firsts: list[float] = []
        self.recent: deque[float] = deque(maxlen=REMEMBERED)
        self.n_phases = 0  # of this leg, with something seen
        self.t = 0  # steps taken
        self.until = -1  # evaluations after which the leg is over; -1 for none
        self.base = float("nan")  # f where the leg began, if known: probes lie above it
        self.first_radius = 1.0  # of the leg's first phase
        self.watched = -1  # the step at which f was last looked at
        draws = recipe.estimator.n_draws(self.sampler.block_size)
        self.timetable = Timetable(recipe.learning_rate, recipe.radius, n_coords=n, n_draws=draws)
        self.plan_for(budget)
        self.set_scale(scale)

    # ---- the parts -------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """How coordinates are drawn."""
        return self.recipe.policy

    def _check_importance(self) -> None:
        n, weights = self.problem.n_coords, self.recipe.importance
        if isinstance(weights, tuple) and len(weights) != n:
            raise ValueError(f"importance has {len(weights)} weights for {n} coordinates")
        self.importance_weights: Floats | None = None
        if isinstance(weights, tuple):
            self.importance_weights = np.array(weights)

    def set_scale(self, scale: Floats | None) -> None:
        """Fix the units of relative learning rates and radii."""
        n = self.problem.n_coords
        self.scale: Floats = np.ones(n) if scale is None else scale.copy()
        self._set_units()

    def _set_units(self) -> None:
        relative = self.recipe.relative_rate, self.recipe.relative_radius
        ones = self.scale if all(relative) else np.ones(self.problem.n_coords)
        self.rate_scale, self.radius_scale = (self.scale if own else ones for own in relative)
        self.uniform_scale = bool(np.all(self.scale == self.scale[0]))
        self._listed = -1

    def extend(self, budget: int | None) -> None:
        """Have schedules fall over more evaluations; a leg of a plan ends first where it should."""
        if self.until < 0:
            self.plan_for(budget)

    def plan_for(self, budget: int | None) -> None:
        """Have schedules fall over so many evaluations in all, from here."""
        total = (
            None if budget is None else self.t + max(1, (budget - self.n_evals) // self.step_cost)
        )
        self.timetable.begin(self.t, total)
        self._listed = -1

    @property
    def step_cost(self) -> int:
        """Evaluations of one step, the scouting gradient included."""
        cost = self.recipe.estimator.n_evals(self.sampler.block_size)
        if self.policy.needs_gradient:
            cost += self.recipe.estimator.n_evals(self.problem.n_coords)
        return cost

    @property
    def cost(self) -> int:
        """Evaluations of the next question, and of the step that it begins."""
        if self.gradient.size:
            return self.recipe.estimator.n_evals(self.sampler.block_size)
        return self.step_cost

    def begin_leg(self, n_evals: int, base: float = float("nan")) -> Stepping:
        """Run for so many evaluations and then count as finished; ``base`` is f at the point."""
        self.base = base
        self.until = self.n_evals + max(0, n_evals)  # a leg planned for less is over
        self.firsts, self.n_phases = [], 0
        self.recent.clear()
        return self

    def snapshot(self) -> dict[str, Any]:
        """Return a copy of what a leg changes."""
        return {
            "x": self.point.x.copy(),
            "slots": self.slots.copy(),
            "sampler": self.sampler.state_dict(),
        }

    def go_back(self, kept: dict[str, Any]) -> None:
        """Put a copy back; random streams go on, so that the leg is not repeated."""
        stream = self.sampler.stream.copy()
        self.point.put(kept["x"])
        self.slots[...] = kept["slots"]
        self.sampler.load_state_dict(kept["sampler"])
        self.sampler.stream[...] = stream

    def replace_schedules(self, recipe: Recipe) -> None:
        """Go on under other schedules; policy, step rule and block size stay."""
        self.recipe = recipe
        table = self.timetable
        table.learning_rate, table.radius = recipe.learning_rate, recipe.radius
        table.begin(table.start, table.total)
        self._listed = -1

    @property
    def finished(self) -> bool:
        """Whether the leg does not pay for another step and nothing is open."""
        return self.until >= 0 and not self.n_open and self.n_evals + self.cost > self.until

    @finished.setter
    def finished(self, value: bool) -> None:
        """Follow from the leg, whatever a file says."""

    # ---- ask -------------------------------------------------------------------------------------

    def prepare(self) -> int:
        """Make rates and radii cover the next step; return its place in the chunk."""
        table = self.timetable
        place = table.cover(self.t + self.n_open)
        if table.first != self._listed:
            self._listed = table.first
            # Where all coordinates share a scale, step sizes are slices of these lists.
            self.common = (
                (table.rates * self.rate_scale[0]).tolist(),
                (table.radii * self.radius_scale[0]).tolist(),
            )
        if self.sampler.position == 0 and self.n_open == 0:
            self._begin_phase(place)
        return place

    def _begin_phase(self, place: int) -> None:
        """Tell parts that change over the run how much of it is over, once per phase."""
        progress = float(self.timetable.progress[place])
        self.policy.pace(self.sampler.state, progress)
        self.recipe.step.pace(self.slots, progress)
        if callable(self.recipe.importance):
            self.importance_weights = self.recipe.importance_at(
                self.sampler.n_phases, self.problem.n_coords
            )

    def ask(self) -> Question | None:
        """Return the next step's evaluations; steps may be asked before earlier ones are told."""
        waits = self.policy.needs_gradient or isinstance(self.recipe.estimator, FirstOrder)
        if waits and self.n_open:
            return None
        if self.until >= 0 and self.n_evals + (self.n_open + 1) * self.cost > self.until:
            return None
        place = self.prepare()
        if isinstance(self.recipe.estimator, FirstOrder) and self._due():
            question = here(self.point, 1, role=LOOK)
        elif self.policy.needs_gradient and not self.gradient.size:
            question = self._probe(np.arange(self.problem.n_coords), place)
            question.role = SCOUT
        else:
            question = self._step(place)
        return question

    def _due(self) -> bool:
        return self.t % WATCH == 0 and self.watched < self.t

    def _step(self, place: int) -> Question:
        self.sampler.ahead = self.n_open > 0
        coords, probs = self.sampler.block(self.gradient if self.gradient.size else None)
        question = self._probe(coords.copy(), place)
        question.rate, question.probs = float(self.timetable.rates[place]), probs.copy()
        return question

    def _probe(self, coords: Ints, place: int) -> Question:
        radii = self.timetable.radii[place] * self.radius_scale[coords]
        problem = self.problem
        return self.recipe.estimator.probe(
            self.point, coords, radii, problem.lower, problem.upper, self.direction_rng
        )

    # ---- tell ------------------------------------------------------------------------------------

    def tell(self, question: Question, values: Floats) -> None:
        """Move along the gradient that the values show, and remember it."""
        if question.role == LOOK:
            self.watched = self.t
            self.observe(float(values[0]))
            return
        self.far = max(self.far, self.problem.away(*question.set_entries))
        with np.errstate(invalid="ignore", over="ignore"):
            grads, seen = self.recipe.estimator.gradient(question, values)
        if question.role == SCOUT:
            self.gradient = np.where(np.isfinite(grads), grads, 0.0)
            return
        self.sampler.place(question.support, question.probs)
        self.move(question.support, grads, question.rate, question.probs)
        if self.gradient.size:
            self.gradient = np.empty(0)
        self.observe(seen)
        self.end_step(self.in_units(grads, question.support))

    def move(self, coords: Ints, grads: Floats, rate: float, probs: Floats) -> None:
        """Move the drawn coordinates; one whose gradient is not a number stands still.

        Its gradient becomes 0, so that the law learns nothing from it.
        """
        factors = self.importance(coords, probs)
        rates = rate * self.rate_scale[coords]
        rates = rates if factors is None else rates * factors
        self.account_average(coords)
        moving, along = coords, grads
        if not (fine := np.isfinite(grads)).all():
            grads[~fine] = 0.0
            moving, along, rates = coords[fine], grads[fine], rates[fine]
        self.apply(
            moving, along, rates, self.hyper, self.slots, self.point.x, self.problem.lower,
            self.problem.upper,
        )  # fmt: skip
        self.point.follow(moving.copy())
        self.look(self.point.x[moving], moving)

    def look(self, entries: Floats, coords: Ints) -> None:
        """Take note of how far from x0 entries of some coordinates lie: steps go where none was."""
        away = farthest_entry(entries, coords, self.problem.x0, self.problem.unit)
        self.far = max(self.far, float(away))

    def observe(self, seen: float) -> None:
        """Note a value seen in the step in hand."""
        if seen - seen == 0.0:
            self.observations[self.sampler.position // self.sampler.block_size] = seen

    def end_step(self, grads: Floats) -> None:
        """Count the step in hand; its gradients end the phase where it is the last one."""
        self.t += 1
        if self.sampler.record(grads):
            self.end_phase()

    def account_average(self, coords: Ints) -> None:
        """Add to the sum of iterates what stood still since the coordinates were last touched."""
        if self.recipe.average:
            total, since = self.average
            total[coords] += self.point.x[coords] * (self.t - since[coords])
            since[coords] = self.t

    def end_phase(self) -> None:
        """Close the books of a phase: its observations become an entry of the journal."""
        self.last_phase = self.observations.copy()
        self.observations.fill(np.nan)
        seen = self.last_phase.tolist()
        total = sum(seen)
        if total != total:  # lost values, or steps that look at derivatives only
            seen = [value for value in seen if value == value]
            total = sum(seen)
        if not seen:
            return
        mean = total / len(seen)
        self.recent.append(mean)
        if self.n_phases < REMEMBERED:
            self.firsts.append(mean)
        self.n_phases += 1
        if self.base == self.base:
            radius = self._radius()
            self.first_radius = radius if self.n_phases == 1 else self.first_radius
            mean -= above(self.base, self.firsts) * (radius / self.first_radius) ** 2
        self.journal.append((self.n_evals, mean))

    def _radius(self) -> float:
        """Return the radius of the last step."""
        table, last = self.timetable, self.t - 1
        place = last - table.first if table.first >= 0 else -1
        known = 0 <= place < len(table.radii)
        return float(table.radii[place] if known else table.span(last, 1)[1][0]) or 1e-300

    # ---- step sizes ------------------------------------------------------------------------------

    def step_sizes(
        self, place: int, coords: Ints, probs: Floats
    ) -> tuple[list[float], list[float]]:
        """Return step sizes and radii of consecutive single-coordinate steps."""
        now = slice(place, place + len(coords))
        if self.uniform_scale and self.recipe.importance is None:
            return self.common[0][now], self.common[1][now]
        rates = self.timetable.rates[now] * self.rate_scale[coords]
        factors = self.importance(coords, probs)
        if factors is not None:
            rates = rates * factors
        return rates.tolist(), (self.timetable.radii[now] * self.radius_scale[coords]).tolist()

    def importance(self, coords: Ints, probs: Floats) -> Floats | None:
        """Return the factors on the step sizes of drawn coordinates."""
        kind = self.recipe.importance
        if kind is None:
            return None
        if kind == "inverse":
            return 1.0 / (self.sampler.block_size * probs)
        if kind == "relative":
            return 1.0 / (self.problem.n_coords * probs)
        assert self.importance_weights is not None
        return np.asarray(self.importance_weights[coords])

    def in_units(self, grads: Floats, coords: Ints) -> Floats:
        """Return gradients per unit of each coordinate's scale, which a law can compare."""
        plain = self.uniform_scale or self.policy.dense
        return grads if plain else grads * self.rate_scale[coords]

    def arguments(self, ahead: int = 0) -> tuple[Any, ...]:
        """Return the sample of a step that a body takes, as the user's function is given it."""
        return self.samples.arguments(self.n_posed + ahead, self.lane)

    # ---- what it stands for ----------------------------------------------------------------------

    @property
    def standing(self) -> Standing:
        """The last iterate (or the average of all), and what was seen last."""
        seen = self.last_phase if self.last_phase.size else self.observations
        if not self.recipe.average or self.t == 0:
            return Standing(self.point.x, seen)
        total, since = self.average
        return Standing((total + self.point.x * (self.t - since)) / self.t, seen)

    @property
    def level(self) -> float:
        """The mean of the last phases that hold at least 20 observations."""
        n = -(-WINDOW // len(self.observations))
        n = min(n, WINDOW)
        return sum(list(self.recent)[-n:]) / n if len(self.recent) >= n else float("nan")

    @property
    def weights(self) -> Floats | None:
        """The sampling law learned; None where all coordinates are looked at and none is."""
        every = self.policy.dense or self.policy.needs_gradient
        return None if every else self.sampler.weights()

    def finding(self) -> Leg:
        """Compare the last phases with the first."""
        return compared(self.firsts, list(self.recent), self.n_phases)

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        recent = np.array(self.recent, np.float64)
        return {**super().state_dict(), "recent": recent}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another search of the same kind."""
        shapes = {name: np.shape(getattr(self, name)) for name in FIXED}
        super().load_state_dict(state)
        for name, shape in shapes.items():
            if np.shape(getattr(self, name)) != shape:
                raise ValueError(f"{name} has another shape")
        self.recent = deque(state["recent"].tolist(), REMEMBERED)
        self._check()
        self._set_units()
        if callable(self.recipe.importance):
            n = self.sampler.n_phases
            self.importance_weights = self.recipe.importance_at(n, self.problem.n_coords)

    def _check(self) -> None:
        """Refuse numbers that would lead a loop astray."""
        counts = (self.t, self.n_phases)
        if min(counts) < 0 or max(counts) > 2**62:
            raise ValueError(f"a search counts {counts}")
        if self.gradient.size not in (0, self.problem.n_coords):
            raise ValueError("a scouted gradient has another size")
        if not np.all(self.scale > 0) or not np.all(np.isfinite(self.scale)):
            raise ValueError("scale is not positive")
        for name in ("slots", "average", "gradient"):
            if not np.all(np.isfinite(getattr(self, name))):
                raise ValueError(f"{name} is not finite")
