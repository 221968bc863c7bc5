"""SCGD itself: policy x estimator x step rule x schedules, as an engine that takes steps.

The phase is the unit of exchange: a policy draws the coordinates of a phase under fixed
probabilities, the engine visits them, and at the end of the phase the policy is shown the
gradients. ``ask`` and ``tell`` say so one step at a time; the loops of :mod:`scgd.descent` run the
same steps on the same arrays, bit for bit.

The engine is the only part of a run that keeps arrays: it takes up to 1e8 steps, has compiled
loops, and can have several steps under way. A strategy hands over to it with
:class:`~scgd.strategies.asks.Steps` and gets a :class:`~scgd.strategies.asks.Stage` back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from scgd import random, steps
from scgd.checkpoint import decoded, state_of, take_up
from scgd.checks import LARGEST
from scgd.estimators import FirstOrder, farthest_entry
from scgd.method import SCGD
from scgd.policies import Policy
from scgd.problem import Problem
from scgd.questions import Point, Question, here
from scgd.sampler import CoordinateSampler
from scgd.samples import NO_SAMPLES, Samples
from scgd.schedules import Relative, absolute
from scgd.strategies.asks import Stage
from scgd.timetable import Timetable
from scgd.typing import Floats, Ints

WINDOW = 20
"""Observations, at least, whose mean is compared with a target."""
WATCH = 20
"""Steps between two looks at f itself in a run that only sees derivatives."""
LOOSE = ("last_phase", "gradient")
"""Arrays that are empty now and then."""
MOVE, SCOUT, LOOK = range(3)
"""Roles of questions: a step, a whole gradient before a step, f at the point."""
COMPARED, FEWEST = 50, 4
"""Phases at the beginning and at the end of a stage that are compared, a fifth of the stage each:
at most so many (their mean has an error of a seventh of one) and at least so few."""
STEADY = 10
"""Phases at the beginning of a stage that tell how far its probes lie above the point."""
DIVERGED, ASTRAY = 1e6, 10.0
"""How far the mean of a phase may lie above the first one, in sizes of that, once steps lead more
than so many units from x0: no step that could still be of use goes there."""
STATE = (
    "n_asked", "n_open", "n_evals", "t", "until", "scale", "slots", "average", "observations",
    "last_phase", "base", "first_radius", "gradient", "watched", "firsts", "n_phases", "sampler",
    "timetable", "direction_rng", "farthest", "diverged",
)  # fmt: skip
"""What a checkpoint keeps, beside the point and the snapshot."""


class CoordinateDescent:
    """Steps along drawn coordinates (the SCGD algorithm of Leluc and Portier).

    Parameters
    ----------
    method
        Its parts.
    problem
        What is known of the problem.
    x
        Where to start; copied.
    seed
        One seed, one trajectory.
    scale
        The unit of relative learning rates and radii; None for 1.
    budget
        Evaluations over which schedules fall; None where nothing limits them.
    samples, owner
        Where samples come from, and whose they are; a run sets them.

    Attributes
    ----------
    point
        Where it stands.
    n_asked, n_open, n_evals
        Questions asked, those of them that are open, and values told.
    journal
        What it saw, as (n_evals, mean value of a phase) pairs, for the run to take away.
    """

    def __init__(
        self,
        method: SCGD,
        problem: Problem,
        x: Floats,
        seed: np.random.SeedSequence,
        *,
        scale: Floats | None = None,
        budget: int | None = None,
        samples: Samples = NO_SAMPLES,
        owner: int = 1,
    ) -> None:
        self.method, self.problem, self.samples, self.owner = method, problem, samples, owner
        self.point = Point(x)
        self.n_asked = self.n_open = self.n_evals = 0
        self.journal: list[tuple[int, float]] = []
        self.farthest = 0.0
        self.kept: dict[str, Any] = {}
        self.diverged = False
        n, key = problem.n_coords, (*seed.spawn_key,)
        coords, directions = (
            np.random.SeedSequence(seed.entropy, spawn_key=(*key, i)) for i in range(2)
        )
        distinct = method.estimator.distinct
        self.sampler = CoordinateSampler(
            method.policy, n, random.stream(coords), method.block_size,
            method.replace and not distinct,
        )  # fmt: skip
        self.direction_rng = np.random.Generator(np.random.PCG64(directions))
        self._check_importance()
        self.changing = method.policy.paced or method.step.paced or callable(method.importance)
        self.slots: Floats = steps.make_slots(method.step, n)
        self.hyper: Floats = np.array(method.step.hyper)
        self.apply = steps.applier(method.step)
        self.observations: Floats = np.full(self.sampler.n_steps, np.nan)
        self.last_phase: Floats = np.empty(0)
        self.average: Floats = np.zeros((2, n if method.average else 0))
        self.gradient: Floats = np.empty(0)
        self.firsts: list[float] = []
        self.recent: deque[float] = deque(maxlen=COMPARED)
        self.n_phases = 0  # of this stage, with something seen
        self.t = 0  # steps taken
        self.until = -1  # evaluations after which the stage is over; -1 for none
        self.base = float("nan")  # f where the stage began, if known: probes lie above it
        self.first_radius = 1.0  # of the stage's first phase
        self.watched = -1  # the step at which f was last looked at
        draws = method.estimator.n_draws(self.sampler.block_size)
        rate, radius = absolute(method.learning_rate), absolute(method.radius)
        self.timetable = Timetable(rate, radius, n_coords=n, n_draws=draws)
        self.plan_for(budget)
        self.set_scale(scale)

    # ---- the parts -------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """How coordinates are drawn."""
        return self.method.policy

    def _check_importance(self) -> None:
        n, weights = self.problem.n_coords, self.method.importance
        if isinstance(weights, tuple) and len(weights) != n:
            raise ValueError(f"importance has {len(weights)} weights for {n} coordinates")
        self.importance_weights: Floats | None = None
        if isinstance(weights, tuple):
            self.importance_weights = np.array(weights)

    def _weigh(self) -> None:
        """Ask the user's function for the weights of this phase."""
        self.importance_weights = self.method.importance_at(
            self.sampler.n_phases, self.weights, self.point.x
        )

    def set_scale(self, scale: Floats | None) -> None:
        """Fix the units of relative learning rates and radii."""
        n = self.problem.n_coords
        self.scale: Floats = np.ones(n) if scale is None else scale.copy()
        self._set_units()

    def _set_units(self) -> None:
        method = self.method
        relative = [isinstance(s, Relative) for s in (method.learning_rate, method.radius)]
        ones = self.scale if all(relative) else np.ones(self.problem.n_coords)
        self.rate_scale, self.radius_scale = (self.scale if own else ones for own in relative)
        self.uniform_scale = bool(np.all(self.scale == self.scale[0]))
        self._listed = -1

    def extend(self, budget: int | None) -> None:
        """Have schedules fall over more evaluations; a planned stage ends first where it should."""
        if self.until < 0:
            self.plan_for(budget)

    def plan_for(self, budget: int | None) -> None:
        """Have schedules fall over so many evaluations in all, from here, and a stage end there."""
        if self.until >= 0:
            self.until = -1 if budget is None else budget
        total = (
            None if budget is None else self.t + max(1, (budget - self.n_evals) // self.step_cost)
        )
        self.timetable.begin(self.t, total)
        self._listed = -1

    @property
    def step_cost(self) -> int:
        """Evaluations of one step, the scouting gradient included."""
        cost = self.method.estimator.n_evals(self.sampler.block_size)
        if self.policy.needs_gradient:
            cost += self.method.estimator.n_evals(self.problem.n_coords)
        return cost

    @property
    def cost(self) -> int:
        """Evaluations of the next question, and of the step that it begins."""
        if self.gradient.size:
            return self.method.estimator.n_evals(self.sampler.block_size)
        return self.step_cost

    @property
    def x(self) -> Floats:
        """Where it stands; not a copy."""
        return self.point.x

    def begin_stage(self, n_evals: int | None, base: float = float("nan")) -> None:
        """Run for so many evaluations (None: until told otherwise); ``base`` is f at the point."""
        self.base = base
        self.until = -1 if n_evals is None else self.n_evals + max(0, n_evals)
        self.firsts, self.n_phases = [], 0
        self.recent.clear()

    def keep(self) -> Floats:
        """Keep a copy of what a stage changes, for :meth:`go_back`; return the point in it."""
        x: Floats = self.point.x.copy()
        self.kept = {"x": x, "slots": self.slots.copy(), "sampler": self.sampler.state_dict()}
        return x

    def go_back(self) -> None:
        """Put the copy back; random streams go on, so that the stage is not repeated."""
        stream = self.sampler.stream.copy()
        self.point.put(self.kept["x"])
        self.slots[...] = self.kept["slots"]
        self.sampler.load_state_dict(self.kept["sampler"])
        self.sampler.stream[...] = stream

    def replace_schedules(self, method: SCGD) -> None:
        """Go on under other schedules; policy, step rule and block size stay."""
        self.method = method
        table = self.timetable
        table.learning_rate = absolute(method.learning_rate)
        table.radius = absolute(method.radius)
        table.begin(table.start, table.total)
        self._listed = -1

    @property
    def finished(self) -> bool:
        """Whether the stage does not pay for another step and nothing is open."""
        return self.until >= 0 and not self.n_open and self.n_evals + self.cost > self.until

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
        if self.changing and self.sampler.position == 0 and self.n_open == 0:
            self._begin_phase(place)
        return place

    def _begin_phase(self, place: int) -> None:
        """Tell parts that change over the run how much of it is over, once per phase."""
        progress = float(self.timetable.progress[place])
        self.policy.pace(self.sampler.state, progress)
        self.method.step.pace(self.slots, progress)
        if callable(self.method.importance):
            self._weigh()

    def ask(self) -> Question | None:
        """Return the next evaluations, with a sample of their own; None when values must come.

        Steps may be asked before the values of earlier ones are told.
        """
        waits = self.policy.needs_gradient or isinstance(self.method.estimator, FirstOrder)
        if waits and self.n_open:
            return None
        if self.until >= 0 and self.n_evals + (self.n_open + 1) * self.cost > self.until:
            return None
        place = self.prepare()
        if isinstance(self.method.estimator, FirstOrder) and self._due():
            question = here(self.point, 1, role=LOOK)
        elif self.policy.needs_gradient and not self.gradient.size:
            question = self._probe(np.arange(self.problem.n_coords), place)
            question.role = SCOUT
        else:
            question = self._step(place)
        question.sample = (self.n_asked, self.owner)
        self.n_asked += 1
        self.n_open += 1
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
        return self.method.estimator.probe(
            self.point, coords, radii, problem.lower, problem.upper, self.direction_rng
        )

    # ---- tell ------------------------------------------------------------------------------------

    def tell(self, question: Question, values: Floats) -> None:
        """Move along the gradient that the values of a question show, and remember it."""
        self.n_open -= 1
        self.n_evals += len(question)
        if question.role == LOOK:
            self.watched = self.t
            self.observe(float(values[0]))
            return
        self.farthest = max(self.farthest, self.problem.away(*question.set_entries))
        with np.errstate(invalid="ignore", over="ignore"):
            grads, seen = self.method.estimator.gradient(question, values)
        if question.role == SCOUT:
            self.gradient = np.where(np.isfinite(grads), grads, 0.0)
            return
        self.sampler.place(question.support, question.probs)
        if self.gradient.size:
            self.gradient = np.empty(0)
        self.move(question.support, grads, seen, question.rate, question.probs)

    def move(self, coords: Ints, grads: Floats, seen: float, rate: float, probs: Floats) -> None:
        """Move the drawn coordinates and end the step; ``seen`` is the value seen near the point.

        A coordinate whose gradient is not a number stands still. Its gradient becomes 0, so that
        the distribution learns nothing from it.
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
        self.observe(seen)
        self.t += 1
        if self.sampler.record(self.in_units(grads, coords)):
            self.end_phase()

    def look(self, entries: Floats, coords: Ints) -> None:
        """Take note of how far from x0 entries of some coordinates lie: steps go where none was."""
        away = farthest_entry(entries, coords, self.problem.x0, self.problem.unit)
        self.farthest = max(self.farthest, float(away))

    def observe(self, seen: float) -> None:
        """Note a value seen in the step in hand."""
        if seen - seen == 0.0:
            self.observations[self.sampler.position // self.sampler.block_size] = seen

    def account_average(self, coords: Ints) -> None:
        """Add to the sum of iterates what stood still since the coordinates were last touched."""
        if self.method.average:
            total, since = self.average
            total[coords] += self.point.x[coords] * (self.t - since[coords])
            since[coords] = self.t

    def end_phase(self) -> None:
        """End a phase: its observations become an entry of the journal."""
        self.last_phase = self.observations.copy()
        self.observations.fill(np.nan)
        seen = self.last_phase.tolist()
        total = sum(seen)
        if total != total:  # failed values, or steps that look at derivatives only
            seen = [value for value in seen if value == value]
            total = sum(seen)
        if not seen:
            return
        mean = total / len(seen)
        self.recent.append(mean)
        if self.n_phases < COMPARED:
            self.firsts.append(mean)
        self.n_phases += 1
        first = self.firsts[0]
        rose = mean - first > DIVERGED * max(abs(first), 1e-300)
        self.diverged = (rose and self.farthest > ASTRAY) or self.diverged
        if self.base == self.base:
            radius = self._radius()
            self.first_radius = radius if self.n_phases == 1 else self.first_radius
            # For a quadratic, probes lie above the point by the same everywhere, and by the square
            # of the radius: what is reported is then the value of the point reached.
            steady = self.firsts[:STEADY]
            above = sum(steady) / len(steady) - self.base
            mean -= above * (radius / self.first_radius) ** 2
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
        if self.uniform_scale and self.method.importance is None:
            return self.common[0][now], self.common[1][now]
        rates = self.timetable.rates[now] * self.rate_scale[coords]
        factors = self.importance(coords, probs)
        if factors is not None:
            rates = rates * factors
        return rates.tolist(), (self.timetable.radii[now] * self.radius_scale[coords]).tolist()

    def importance(self, coords: Ints, probs: Floats) -> Floats | None:
        """Return the factors on the step sizes of drawn coordinates."""
        kind = self.method.importance
        if kind is None:
            return None
        if kind == "inverse":
            return 1.0 / (self.sampler.block_size * probs)
        if kind == "relative":
            return 1.0 / (self.problem.n_coords * probs)
        assert self.importance_weights is not None
        return np.asarray(self.importance_weights[coords])

    def in_units(self, grads: Floats, coords: Ints) -> Floats:
        """Return gradients per unit of each coordinate's scale, which policies can compare."""
        plain = self.uniform_scale or self.policy.dense
        return grads if plain else grads * self.rate_scale[coords]

    def arguments(self, ahead: int = 0) -> tuple[Any, ...]:
        """Return the sample of a step that a body takes, as the user's function is given it."""
        return self.samples.arguments(self.n_asked + ahead, self.owner)

    # ---- what it stands for ----------------------------------------------------------------------

    @property
    def recommended(self) -> tuple[Floats, Floats]:
        """The last iterate (or the average of all), and what was seen last."""
        seen = self.last_phase if self.last_phase.size else self.observations
        if not self.method.average or self.t == 0:
            return self.point.x, seen
        total, since = self.average
        return (total + self.point.x * (self.t - since)) / self.t, seen

    @property
    def level(self) -> float:
        """The mean of the last phases that hold at least 20 observations."""
        n = -(-WINDOW // len(self.observations))
        n = min(n, WINDOW)
        return sum(list(self.recent)[-n:]) / n if len(self.recent) >= n else float("nan")

    @property
    def weights(self) -> Floats | None:
        """The sampling distribution learned; None where there is none."""
        every = self.policy.dense or self.policy.needs_gradient
        return None if every else self.sampler.weights()

    def stage(self, n_evals: int) -> Stage:
        """Return what a stage of so many evaluations saw of itself."""
        n = min(self.n_phases // 5, COMPARED)
        x, values = self.recommended
        fell = n >= FEWEST and falls(self.firsts[:n], list(self.recent)[-n:])
        rose = n >= FEWEST and falls(list(self.recent)[-n:], self.firsts[:n])
        return Stage(x.copy(), values.copy(), fell, n >= FEWEST, n_evals, rose, self.weights)

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        factors = self.importance_weights if callable(self.method.importance) else None
        return {
            **state_of(self, STATE),
            "recent": np.array(self.recent, np.float64),
            "x": self.point.x.copy(),
            "kept": self.kept or None,
            "importance": None if factors is None else factors.copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another engine of the same method."""
        take_up(self, STATE, state, LOOSE)
        if min(self.n_asked, self.n_open, self.n_evals) < 0:
            raise ValueError("the engine counts below zero")
        x = state["x"]
        if np.shape(x) != self.point.x.shape or not np.isfinite(x).all():
            raise ValueError("x is not a point of this problem")
        self.point.put(x)
        self.kept = state["kept"] or {}
        self.recent = deque(decoded(state["recent"], [0.0]), COMPARED)
        self._check()
        self._set_units()
        if state["importance"] is not None:
            self.importance_weights = state["importance"]

    def _check(self) -> None:
        """Refuse numbers that would lead a loop astray."""
        counts = (self.t, self.n_phases)
        if min(counts) < 0 or max(counts) > LARGEST:
            raise ValueError(f"the engine counts {counts}")
        if not len(self.firsts) == len(self.recent) == min(self.n_phases, COMPARED):
            raise ValueError("the phases of this stage are not those that were counted")
        if self.gradient.size not in (0, self.problem.n_coords):
            raise ValueError("a scouted gradient has another size")
        if not np.all(self.scale > 0) or not np.all(np.isfinite(self.scale)):
            raise ValueError("scale is not positive")
        for name in ("slots", "average", "gradient"):
            if not np.all(np.isfinite(getattr(self, name))):
                raise ValueError(f"{name} is not finite")


def falls(first: Sequence[float], last: Sequence[float]) -> bool:
    """Tell whether the last values lie below the first ones by a standard error of the difference.

    Examples
    --------
    >>> falls([3.0, 3.1], [1.0, 1.1]), falls([3.0, 3.1], [2.9, 3.1])
    (True, False)
    """
    before, after = np.array(first), np.array(last)
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # values near the largest number tell nothing
        error = np.sqrt((before.var(ddof=1) + after.var(ddof=1)) / len(before))
        return bool(after.mean() < before.mean() - error)
