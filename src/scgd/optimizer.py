"""Ask and tell: the one place that decides what is evaluated next and what is learnt from it.

``ask`` draws coordinates and lays out the evaluations of a step; ``tell`` turns the values into a
move. How the evaluations are made (in this process, by workers, by a person) is someone else's
business. Loops that cannot afford an object per step (:mod:`scgd.explore`) work on the same buffers
with the same arithmetic, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.auto.descent import Descent
from scgd.auto.stage import Stage
from scgd.course import Course
from scgd.estimators import BASE, Probes
from scgd.problem import Draw, as_scalar
from scgd.result import WINDOW, Status, mean_and_error
from scgd.scale import ScaleSearch
from scgd.steps import applier
from scgd.typing import Floats, Ints

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

__all__ = ["Optimizer"]

MONITOR = 16
"""Evaluations of fun, at most, that tell the value reached by a run that only saw derivatives."""


class Optimizer(Course):
    """Minimise by ask and tell.

    Parameters
    ----------
    x0
        Where to start.
    recipe
        A :class:`~scgd.recipes.Recipe` or the name of one.
    sample
        ``n``: each step draws ``batch_size`` of n rows; a callable: each step draws
        ``xi = sample(rng)``; ``None``: the noise, if any, is nobody's to control.
    bounds
        ``scipy.optimize.Bounds`` or pairs (low, high).
    max_evals
        Hard budget of evaluations; schedules that decay over the run need it.
    scale
        Typical size of each coordinate (a number or one per coordinate).
    seed
        One seed, one trajectory.
    on_nonfinite
        ``"raise"`` a FloatingPointError when a value is NaN or infinite, or ``"skip"`` that step.

    Examples
    --------
    >>> opt = Optimizer(np.ones(3), "musketeer", max_evals=2000, seed=1)
    >>> while not opt.done:
    ...     probes = opt.ask()
    ...     opt.tell(probes.ids, [float(x @ x) for x in probes.points()])
    >>> bool(opt.result().fun < 1e-3)
    True
    """

    # ---- ask ------------------------------------------------------------------------------------

    def ask(self) -> Probes:
        """Return the evaluations to make next; the same ones until all are told."""
        if self.pending is None:
            if self.done:
                raise RuntimeError(
                    f"the budget of {self.max_evals} evaluations is used up; call extend() to go on"
                )
            probes = self._next_probes()
            probes.ids = np.arange(self.nfev, self.nfev + len(probes))
            self.pending = probes
            self._values = [None] * len(probes)
            self._answered = np.zeros(len(probes), bool)
        return self.pending

    def scout(self, evaluate: Callable[[Probes, Floats], list[Any]]) -> None:
        """Ask the stage's next question and tell it the values, without the ledger of ``tell``."""
        probes = self.ask()
        self._values = evaluate(probes, self.theta)
        self._finish(probes)

    def _next_probes(self) -> Probes:
        place = self.prepare()
        self._generators = self._generator_states()
        if self.stage is not None:
            probes = self.stage.probe(self.view, self.problem, self.direction_rng)
            return self._with_sample(probes, purpose=1000 + self.n_scouted)
        if self.policy.needs_gradient and self.scouted is None:
            probes = self._probe(np.arange(self.n_coords), place)
            return self._with_sample(probes, purpose=1)
        coords, probs = self.sampler.block(self.scouted)
        probes = self._with_sample(self._probe(coords, place), purpose=0)
        probes.rate, probes.probs = float(self.rates[place]), probs
        return probes

    def _probe(self, coords: Ints, place: int) -> Probes:
        radii = self.radii[place] * self.radius_scale[coords]
        estimator, problem = self.recipe.estimator, self.problem
        return estimator.probe(
            self.view, coords, radii, problem.lower, problem.upper, self.direction_rng
        )

    def _with_sample(self, probes: Probes, purpose: int) -> Probes:
        """Give the probes their sample: the step's own, or one of its own for other purposes."""
        if self.rows is None:
            if self.sampling.controlled:
                probes.draw = Draw(self.sampling, self.t + self.ahead, purpose)
        elif purpose == 0:
            probes.rows = self.rows[self.t + self.ahead - self.chunk_start]
        else:
            probes.rows = self.sampling.rows(1, self.rows_rng)[0]  # type: ignore[index]
        return probes

    def here(self, i: int) -> Probes:
        """Return one evaluation at the current point with a sample of its own, the i-th of such."""
        nothing = np.empty(0, np.int64)
        probes = Probes(
            self.view, nothing, np.empty(0), np.array([BASE]), np.array([np.nan]), np.zeros(1)
        )
        probes.ids = np.array([self.nfev])
        return self._with_sample(probes, purpose=3 + i)

    # ---- tell -----------------------------------------------------------------------------------

    def tell(self, ids: Any, values: Any) -> None:
        """Hand in values of evaluations, in any order and in parts; the last one makes the move."""
        probes = self.pending
        if probes is None:
            raise RuntimeError("nothing was asked; call ask() before tell()")
        places = np.atleast_1d(np.asarray(ids)) - probes.ids[0]
        if len(places) != len(values):
            raise ValueError(f"tell got {len(places)} ids and {len(values)} values; give one each")
        for place, value in zip(places.tolist(), values, strict=True):
            if not 0 <= place < len(probes):
                raise ValueError(f"id {place + probes.ids[0]} was not asked or is already used")
            self._values[place] = value
            self._answered[place] = True
        if self._answered.all():
            self._finish(probes)

    def _finish(self, probes: Probes) -> None:
        values: Any = self._values
        if probes.kind == "values":
            values = np.array([as_scalar(v) for v in values])
        if not self._check_finite(probes, values):
            values = None
        self.pending = None
        self.nfev += len(probes)
        if self.stage is not None:
            self.learn_stage(self.stage, values)
        elif self.policy.needs_gradient and self.scouted is None:
            zero = np.zeros(self.n_coords)
            self.scouted = (
                zero if values is None else self.recipe.estimator.gradient(probes, values)[0]
            )
        else:
            self._move(probes, values)

    def _check_finite(self, probes: Probes, values: Any) -> bool:
        if probes.kind == "values" and np.isfinite(values).all():
            return True
        finite = [bool(np.all(np.isfinite(v))) for v in values]
        if all(finite):
            return True
        j = finite.index(False)
        self._values[j], self._answered[j] = None, False
        self.skip(values, int(probes.ids[0]), probes.point)
        return False

    def skip(self, values: Any, first: int, point: Callable[[int], Floats]) -> None:
        """Count a step as skipped, or raise for its first value that is not finite.

        ``first`` numbers the first of the evaluations, ``point(j)`` returns the j-th point.
        """
        j = next(j for j, value in enumerate(values) if not np.all(np.isfinite(value)))
        tolerant = self.stage is not None and self.stage.tolerant and self.plan is not None
        if tolerant:  # it may look too far, but the start must be sound
            tolerant = not np.array_equal(point(j), self.problem.x0)
        if self.on_nonfinite == "skip" or tolerant:
            self.n_skipped += 1
            return
        raise FloatingPointError(
            f"fun returned {values[j]} at evaluation {first + j}, "
            f"x = {np.array2string(point(j), threshold=8)}; "
            "mend fun, or pass on_nonfinite='skip' to skip such steps"
        )

    def learn_stage(self, stage: Stage, values: Floats | None) -> None:
        """Hand a stage its values, report where it stands and go on where it has finished."""
        stage.learn(values)
        self.n_scouted += 1
        if isinstance(stage, Descent):
            self._report(stage.value)
        if not stage.finished:
            return
        if self.plan is not None:
            self.plan.advance(self, stage)
        elif isinstance(stage, ScaleSearch):
            self.stage = None
            self.set_scale(np.full(self.n_coords, stage.scale))

    def _report(self, value: float) -> None:
        """Take the exact value of a deterministic function as what was seen."""
        if self.last_phase.size != 2:
            self.last_phase = np.empty(2)
        self.last_phase.fill(value)
        if self.nfev - self.history.last >= self.n_coords**0.5:
            self.history.append(self.nfev, value)
            self.n_reports += 1

    def _move(self, probes: Probes, values: Floats | None) -> None:
        """Move the drawn coordinates and remember what was seen."""
        coords, sampler = probes.support, self.sampler
        if values is None:
            grads, seen = np.zeros(len(coords)), np.nan
        else:
            grads, seen = self.recipe.estimator.gradient(probes, values)
            assert probes.probs is not None
            rates = probes.rate * self.rate_scale[coords]
            factors = self.importance(coords, probes.probs)
            self._account_average(coords)
            applier(self.recipe.step)(
                coords,
                grads,
                rates if factors is None else rates * factors,
                self.hyper,
                self.slots,
                self.theta,
                self.problem.lower,
                self.problem.upper,
            )
        self.observations[sampler.position // sampler.block_size] = seen
        self.t += 1
        self.scouted = None
        if sampler.record(self.in_units(grads, coords)):
            self.end_phase()
        self.end_leg()

    def end_leg(self) -> bool:
        """Let the plan go on where its leg does not pay for another step; tell whether it did."""
        ends = self.plan is not None and self.leg_end is not None
        if not ends or self.nfev + self._next_cost() <= self.leg_end:  # type: ignore[operator]
            return False
        assert self.plan is not None
        self.plan.advance(self, None)
        return True

    def _account_average(self, coords: Ints) -> None:
        """Add to the sum of iterates what stood still since the coordinates were last touched."""
        if self.recipe.average:
            total, since = self.average
            total[coords] += self.theta[coords] * (self.t - since[coords])
            since[coords] = self.t

    @property
    def level(self) -> float:
        """The value that the run has reached, from its last observations; NaN if too few."""
        if isinstance(self.stage, Descent):
            return self.stage.value
        return self.history.level(-(-WINDOW // len(self.observations)))

    def end_phase(self) -> None:
        """Close the books of a phase: its observations become an entry of the history."""
        self.n_reports += 1
        self.last_phase = self.observations.copy()
        seen = self.last_phase.tolist()
        total = sum(seen)
        if total != total:  # a skipped step leaves a NaN
            seen = [value for value in seen if value == value]
            total = sum(seen)
        if seen:
            self.history.append(self.nfev, total / len(seen))

    # ---- results and state ----------------------------------------------------------------------

    @property
    def x(self) -> Floats:
        """The recommended point: the last iterate, the average, or what the plan stands for."""
        return self._recommended()[0]

    def _recommended(self) -> tuple[Floats, Floats]:
        """Return the recommended point and what was observed near it."""
        seen = self.last_phase if self.last_phase.size else self.observations
        if self.plan is not None:
            x, there = self.plan.recommend(self)
            return x.copy(), seen if there is None else there
        if not self.recipe.average or self.t == 0:
            return self.theta.copy(), seen
        total, since = self.average
        return np.asarray((total + self.theta * (self.t - since)) / self.t), seen

    def result(self) -> OptimizeResult:
        """Return the result so far.

        ``x`` is the recommended point, not the luckiest observation; ``fun`` the mean of the last
        phase's observations near it and ``fun_error`` its standard error.
        """
        from scipy.optimize import OptimizeResult  # half a second that `import scgd` need not take

        x, seen = self._recommended()
        fun, error = mean_and_error(seen)
        status = self.status
        if status is Status.RUNNING and self.done:
            status = Status.BUDGET if self.t or self.last_phase.size else Status.TOO_SMALL
        return OptimizeResult(
            x=x,
            fun=fun,
            fun_error=error,
            nfev=self.nfev,
            nit=self.t + self.n_scouted,
            n_skipped=self.n_skipped,
            success=status in (Status.TARGET, Status.BUDGET, Status.TIME, Status.CALLBACK),
            status=int(status),
            message=self._message(status),
            weights=self._weights(),
            history=self.history.arrays(),
            scale=self.scale.copy(),
            recipe=self.recipe,
        )

    def _weights(self) -> Floats:
        known = None if self.plan is None else self.plan.weights(self)
        return self.sampler.weights() if known is None else known

    def _message(self, status: Status) -> str:
        return status.message if self.plan is None else f"{status.message} {self.plan.message}"

    def state_dict(self) -> dict[str, Any]:
        """Return everything in the run as nested dicts of arrays and plain values.

        Evaluations that were asked and not yet all told are not part of it: they are asked again.
        """
        return {
            "theta": self.theta.copy(),
            "t": self.t,
            "nfev": self.nfev,
            "n_skipped": self.n_skipped,
            "leg_start": self.leg_start,
            "reserve": self.reserve,
            "max_evals": self.max_evals,
            "status": int(self.status),
            "scale": self.scale.copy(),
            "slots": self.slots.copy(),
            "average": self.average.copy(),
            "observations": self.observations.copy(),
            "last_phase": self.last_phase.copy(),
            "chunk_start": self.chunk_start,
            "rows": None if self.rows is None else self.rows.copy(),
            "scouted": None if self.scouted is None else self.scouted.copy(),
            "sampler": self.sampler.state_dict(),
            "history": self.history.state_dict(),
            "stage": None if self.stage is None else self.stage.state_dict(),
            "plan": None if self.plan is None else self.plan.state_dict(),
            "n_scouted": self.n_scouted,
            "leg_end": self.leg_end,
            "leg_total": self.leg_total,
            "sample_key": self.sample_key.copy(),
            "entropy": str(self.entropy),
            **(self._generator_states() if self.pending is None else self._generators),
        }

    def _generator_states(self) -> dict[str, Any]:
        """Return the generators' states, kept at every ask so that it can be asked again."""
        return {
            "rows_rng": self.rows_rng.bit_generator.state,
            "direction_rng": self.direction_rng.bit_generator.state,
            "choice": self.stream.copy() if self.policy.needs_gradient else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a run where ``state_dict`` left it."""
        self.pending = None
        self.max_evals = state["max_evals"]
        self.reserve = int(state["reserve"])
        if self.plan is not None:
            self.plan.load_state_dict(self, state["plan"])
        elif state["stage"] is None:
            self.stage = None
        if self.stage is not None:
            self.stage.load_state_dict(state["stage"])
        self.leg_end, self.leg_total = state["leg_end"], state["leg_total"]
        for name in ("theta", "slots", "average", "observations", "sample_key"):
            getattr(self, name)[...] = state[name]
        for name in ("t", "nfev", "n_skipped", "leg_start", "n_scouted"):
            setattr(self, name, int(state[name]))
        self.status = Status(int(state["status"]))
        self.last_phase = state["last_phase"].copy()
        self.rows = None if state["rows"] is None else state["rows"].copy()
        self.scouted = None if state["scouted"] is None else state["scouted"].copy()
        self.sampler.load_state_dict(state["sampler"])
        self.history.load_state_dict(state["history"])
        self.rows_rng.bit_generator.state = state["rows_rng"]
        self.direction_rng.bit_generator.state = state["direction_rng"]
        if state["choice"] is not None:
            self.stream[...] = state["choice"]
        self.entropy = int(state["entropy"])
        self.chunk_start = int(state["chunk_start"])
        self.set_scale(state["scale"].copy())
