"""Run a strategy: make questions of what it yields, send it the values, keep the log.

The log is all the state there is: the values that were sent, in order, with the places where the
budget was changed and where SCGD took over. A run that is resumed starts the generator again and
sends it the log, which costs no evaluation. A running checksum of the points that were asked tells
whether they are the same; another version or another machine's arithmetic may ask others.
"""

from __future__ import annotations

import zlib
from array import array
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.descent.engine import CoordinateDescent
from scgd.history import History
from scgd.problem import Problem
from scgd.questions import BASE, EVERYWHERE, NOWHERE, Point, Question
from scgd.run.recommending import valued
from scgd.samples import Samples
from scgd.strategies.asks import Along, Gradient, Outcome, Report, Stage, Steps, Strategy, Wait
from scgd.strategies.budget import TOL, Budget
from scgd.typing import Floats

if TYPE_CHECKING:
    from scgd.run.build import Seed

STRATEGIES = 0
"""Which child of the seed strategies draw from."""
STRATEGY = 0
"""The owner of the samples of a strategy; each engine has the next one."""


class OtherPoints(ValueError):
    """The strategy asks other points than those that the log has values of."""


class Interpreter:
    """Runs one strategy.

    Parameters
    ----------
    strategy
        The generator function.
    problem, samples
        What is known of the problem, and where samples come from.
    seed
        One seed, one trajectory.
    limit
        Evaluations in all; None for no limit.
    history
        Where it notes what it has seen.
    tol, max_stall
        As in :class:`~scgd.strategies.budget.Budget`.
    width
        Numbers of a value: 0 for a plain number (with constraints it is a vector).

    Attributes
    ----------
    asked
        What the strategy waits for: points, :class:`Steps`, :class:`Wait`; None at its end.
    size, n_asked, n_answered, values
        Evaluations of that, how many have been asked and answered, and the values so far.
    n_evals, n_questions
        Evaluations whose values were sent, and batches and steps.
    report, incumbent
        What it told last, by name; the value of the point it recommends, and its error.
    members
        Evaluations by solver.
    """

    def __init__(
        self,
        strategy: Strategy,
        problem: Problem,
        samples: Samples,
        seed: Seed,
        limit: int | None,
        history: History,
        *,
        tol: float = TOL,
        max_stall: int | None = None,
        width: int = 0,
    ) -> None:
        self.strategy, self.problem, self.samples, self.seed = strategy, problem, samples, seed
        self.tol, self.max_stall, self.width = tol, max_stall, width
        self.first_limit = limit
        self.history = history
        self.n_known = len(problem.known.values)
        self.n_filled = 0
        self.begin()

    @cached_property
    def point(self) -> Point:
        """Whose buffer functions see where there is no engine."""
        return Point(self.problem.x0)

    def begin(self) -> None:
        """Start the generator."""
        x0 = self.problem.x0
        self.budget = Budget(self.first_limit, x0.size, self.tol, self.max_stall)
        self.log = array("d")
        self.marks: list[dict[str, Any]] = []
        self.checksum = self.n_evals = self.n_samples = self.n_engines = 0
        self.past_steps = self.n_batches = 0
        self.grown = False  # whether the budget was changed since the strategy waited last
        self.report: dict[str, Any] = {"solver": "strategy"}
        self.solver = "strategy"  # who asks
        self.members: dict[str, int] = {}
        self.incumbent = (float("nan"), float("nan"))
        self.best = float("inf")
        self.low, self.high = x0.copy(), x0.copy()
        self.engine: CoordinateDescent | None = None
        self.began = 0  # evaluations of the engine when its stage began
        self._start(self.problem)

    def _start(self, problem: Problem, *key: int) -> None:
        """Make a generator with a random stream of its own, and take what it asks first."""
        own = np.random.PCG64(self.seed.child(STRATEGIES, 0, *key))
        self.outcome = Outcome()
        self.generator = self.strategy(problem, self.budget, np.random.Generator(own))
        self.asked: Any = None
        self._advance(None)

    # ---- the generator ---------------------------------------------------------------------------

    def _advance(self, sent: Any) -> None:
        """Send values; take what the strategy asks next."""
        self.size = self.n_asked = self.n_answered = 0
        self.stepping, send = False, self.generator.send
        try:
            asked = send(sent)
            while isinstance(asked, Report | Wait):
                if isinstance(asked, Report):
                    self._note(asked)
                elif self.grown and self.budget.left > 0:  # since it made up its mind
                    self.grown = False
                else:
                    break
                asked = send(None)
        except StopIteration as end:
            self.asked = None
            self.outcome = end.value if isinstance(end.value, Outcome) else Outcome()
            return
        self.asked = asked
        if isinstance(asked, Steps):
            self._begin_steps(asked)
        elif not isinstance(asked, Wait):
            self._begin_batch()

    def _note(self, report: Report) -> None:
        for name, value in vars(report).items():
            if value is not None:
                self.report[name] = value.copy() if name == "x" else value
        self.solver = self.report["solver"]
        if report.x is not None:
            values = np.array(() if report.values is None else report.values)
            self.incumbent = valued(values, self.report.get("noise"))

    def _begin_steps(self, asked: Steps) -> None:
        engine = asked.engine
        if engine is not self.engine:
            if self.engine is not None:
                self.past_steps += self.engine.n_asked
            self.n_engines += 1
            self.engine = engine
            engine.samples, engine.owner = self.samples, STRATEGY + self.n_engines
        self.began, self.stepping, self.solver = engine.n_evals, True, "SCGD"
        n_evals = self.budget.left - asked.spare if asked.spare else asked.n_evals
        engine.begin_stage(n_evals, asked.base)

    def _begin_batch(self) -> None:
        """Take points: how many there are, how they share samples, and their checksum."""
        asked, self.group = self.asked, 1
        if isinstance(asked, Gradient):
            self.size, numbers = 1, len(asked.coords)
            self.checksum = summed(summed(self.checksum, asked.x), asked.coords)
            self.values: Floats = np.full(numbers, np.nan)
            return
        if isinstance(asked, Along):
            self.size = self.group = len(asked)
            coords = np.asarray(asked.coords, np.int64)
            self.checksum = summed(summed(self.checksum, coords), asked.entries)
            np.minimum.at(self.low, coords, asked.entries)
            np.maximum.at(self.high, coords, asked.entries)
        else:
            self.size = asked.size // asked.shape[-1]
            self.group = self.size if asked.ndim < 3 else asked.shape[1]
            rows = asked if asked.ndim < 3 or asked.strides[0] else asked[0]
            rows = rows if self.size else self.low[None]
            self.checksum = zlib.crc32(np.ascontiguousarray(rows).data, self.checksum)
            rows = rows.reshape(-1, rows.shape[-1])
            few = len(rows) <= 4  # a row by itself costs a fifth of what a reduction costs
            for row in rows if few else (rows.min(axis=0), rows.max(axis=0)):
                np.minimum(self.low, row, out=self.low)
                np.maximum(self.high, row, out=self.high)
        self.values = np.empty((self.size, self.width) if self.width else self.size)
        self.values.fill(np.nan)
        if not self.size:  # no points, no values
            self.answer()

    def answer(self) -> None:
        """Send the values of a batch that is complete."""
        asked, values = self.asked, self.values
        self.log.frombytes(values.tobytes())
        self.members[self.solver] = self.members.get(self.solver, 0) + self.size
        self.n_evals += self.size
        self.n_batches += 1
        self.n_samples += self.size // max(self.group, 1)
        self.budget.spent = self.n_evals
        sent: Any = values
        if not isinstance(asked, Gradient):
            self._observe(values if not self.width else values[:, 0])
            more = values.shape[1:]
            if asked.ndim == 1:
                sent = values[0] if more else float(values[0])
            elif asked.ndim == 3:
                sent = values.reshape(*asked.shape[:-1], *more)
        self._advance(sent)

    def _observe(self, values: Floats) -> None:
        """Note what was seen, for history, target and callback."""
        if len(values) == 1:
            low = mean = float(values[0])
        else:
            mean = float(np.add.reduce(values) / max(1, len(values)))
            if mean != mean:  # some failed
                values = values[values == values]
                mean = float(np.add.reduce(values) / max(1, len(values)))
            if not len(values):
                return
            low = float(np.minimum.reduce(values))
        self.best = low if low < self.best else self.best
        n = self.n_evals + self.n_filled
        if self.deterministic:
            self.history.append(n, self.best, self.best, 0.0)
        else:
            self.history.append(n, mean, *self.incumbent)

    def _send_stage(self, stage: Stage) -> None:
        self.marks.append({"at": len(self.log), "stage": asdict(stage)})
        self.n_evals += stage.n_evals
        self.members["SCGD"] = self.members.get("SCGD", 0) + stage.n_evals
        self.budget.spent, self.solver = self.n_evals, self.report["solver"]
        self._advance(stage)

    # ---- questions and values --------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether it has returned."""
        return self.asked is None

    @property
    def cost(self) -> float:
        """Evaluations that the next question needs, at least; infinite where it waits."""
        if self.stepping:
            assert self.engine is not None
            return self.engine.cost
        return float("inf") if self.asked is None or isinstance(self.asked, Wait) else 1

    def ask(self, room: float) -> Question | None:
        """Return the next question, of so many evaluations at most; None when values must come."""
        if self.stepping:
            assert self.engine is not None
            return self.engine.ask()
        left = self.size - self.n_asked
        if left == 0:
            return None
        first = self.n_asked
        n = int(min(self.group - first % self.group, left, max(1.0, room)))
        self.n_asked += n
        return self._question(first, n)

    def _question(self, first: int, n: int) -> Question:
        """Return evaluations of the batch; all of a group share one sample."""
        asked, some = self.asked, slice(first, first + n)
        sample = (self.n_samples + first // self.group, STRATEGY)
        if isinstance(asked, Gradient):
            return Question(
                self.point, asked.coords, np.array([BASE]), np.array([np.nan]), base=asked.x,
                sample=sample, kind="partials",
            )  # fmt: skip
        if isinstance(asked, Along):
            coords = np.asarray(asked.coords[some], np.int64)
            entries = np.asarray(asked.entries[some], np.float64)
            return Question(
                self.point, NOWHERE, coords, entries, base=asked.x, sample=sample, may_fail=True,
                role=first,
            )  # fmt: skip
        rows = asked.reshape(-1, asked.shape[-1])[some] if asked.ndim < 3 else self._rows(first, n)
        return Question(
            self.point, EVERYWHERE, np.full(n, BASE), rows, base=rows[0], sample=sample,
            may_fail=True, role=first,
        )  # fmt: skip

    def _rows(self, first: int, n: int) -> Floats:
        """Return rows of one group of a three-dimensional batch, without a copy of the others."""
        start = first % self.group
        rows: Floats = self.asked[first // self.group][start : start + n]
        return rows

    def tell(self, question: Question, values: Any) -> None:
        """Take the values of a question that was asked."""
        if self.stepping:
            assert self.engine is not None
            self.engine.tell(question, values)
            self.settle()
        elif isinstance(self.asked, Gradient):
            self.values[:] = values[0]
            self.answer()
        else:
            self.enter(question.role, values)

    def enter(self, first: int, values: Any) -> None:
        """Take values of the batch from one place on; send all of them when none is missing."""
        n = len(values)
        self.values[first : first + n] = values
        self.n_answered += n
        if self.n_answered == self.size:
            self.answer()

    def close(self) -> None:
        """Have the strategy clean up; what goes wrong then changes no result."""
        with suppress(Exception):
            self.generator.close()

    def settle(self) -> None:
        """Take note of steps that were taken; go on where the stage is over."""
        engine = self.engine
        while self.stepping and engine is not None:
            before = self.n_evals - self.began + self.n_filled
            for n, value in engine.journal:
                self.history.append(before + n, value, *self.incumbent)
            engine.journal.clear()
            lost = engine.diverged and self.asked.n_evals is None and not engine.n_open
            if not (lost or engine.finished):
                return
            self._send_stage(engine.stage(engine.n_evals - self.began))
            if lost:  # a strategy that was to go on for ever ends with it
                self.generator.close()
                self.asked, self.stepping, self.size = None, False, 0
                self.outcome = Outcome(diverged=True)
            engine = self.engine

    def extend(self, limit: int | None, x: Floats | None = None) -> None:
        """Plan for so many evaluations in all from now on.

        A strategy that has returned for want of budget begins again, at ``x``.
        """
        mark: dict[str, Any] = {"at": len(self.log), "limit": limit}
        if (
            x is not None
            and self.finished
            and not (self.outcome.converged or self.outcome.diverged)
        ):
            mark["again"] = x.copy()
        self._extend(mark)
        if isinstance(self.asked, Steps) and self.asked.n_evals is None:
            assert self.engine is not None
            end = None if limit is None else limit + self.began - self.n_evals - self.asked.spare
            self.engine.plan_for(end)

    def _extend(self, mark: dict[str, Any]) -> None:
        self.marks.append(mark)
        self.budget.limit, self.grown = mark["limit"], True
        if isinstance(self.asked, Wait) and self.budget.left > 0:
            self.grown = False
            self._advance(None)
        if "again" in mark:
            self.grown = False
            n_again = sum("again" in mark for mark in self.marks)
            self._start(replace(self.problem, x0=mark["again"].copy()), n_again)

    def know(self, x: Floats, value: float) -> None:
        """Take a measurement that was not asked for, which a strategy may look at."""
        self.marks.append({"at": len(self.log), "x": x.copy(), "value": value})
        self.problem.known.add(x, value)

    # ---- what it stands for ----------------------------------------------------------------------

    @property
    def n_told(self) -> int:
        """Evaluations whose values the strategy or its engine has."""
        running = self.engine.n_evals - self.began if self.stepping and self.engine else 0
        return self.n_evals + running

    @property
    def n_entered(self) -> int:
        """Evaluations with a value, those of the batch in hand and of the filler included."""
        return self.n_told + self.n_answered + self.n_filled

    @property
    def deterministic(self) -> bool:
        """Whether f repeats itself, by test or by word."""
        return bool(self.report.get("deterministic", False))

    @property
    def level(self) -> float:
        """The value reached, to be compared with a target; NaN while too little was seen."""
        if self.stepping and self.engine is not None:
            return self.engine.level
        if self.deterministic:
            return self.best
        _, values = self.recommended  # a target is met where the answer is, and not by luck
        seen = values[np.isfinite(values)]
        if self.report.get("x") is None or not seen.size:
            return float("nan")
        noise = float(self.report.get("noise") or 0.0)
        return float(seen.mean()) + noise / float(np.sqrt(seen.size))

    @property
    def recommended(self) -> tuple[Floats, Floats]:
        """The point it would answer now, and observations at it or near it."""
        engine, x = self.engine, self.report.get("x")
        if engine is not None and (x is None or (self.stepping and engine.stage(0).fell)):
            return engine.recommended
        if x is None:
            return self.problem.x0, np.empty(0)
        return x, np.asarray(self.report.get("values", ()), np.float64)

    @property
    def relevance(self) -> tuple[Floats, Floats] | None:
        """Each coordinate's share in the changes of f, and standard errors."""
        return self.report.get("relevance")

    @property
    def weights(self) -> Floats | None:
        """The sampling distribution learned, or the relevance where there is none."""
        own = None if self.engine is None else self.engine.weights
        return self.relevance[0] if own is None and self.relevance is not None else own

    @property
    def scale(self) -> Floats:
        """The unit of each coordinate that steps go by."""
        return self.problem.unit if self.engine is None else self.engine.scale

    @property
    def farthest(self) -> float:
        """How far from x0 a point was asked, in any coordinate, in units of its scale."""
        away = max(self.problem.away(self.low), self.problem.away(self.high))
        return away if self.engine is None else max(away, self.engine.farthest)

    @property
    def n_steps(self) -> int:
        """Batches that were answered, and steps that were taken."""
        steps = 0 if self.engine is None else self.engine.n_asked - self.engine.n_open
        return self.n_batches + self.past_steps + steps

    @property
    def ran(self) -> dict[str, int]:
        """Evaluations by solver, the stage in hand included."""
        ran = dict(self.members)
        if self.n_told > self.n_evals:
            ran["SCGD"] = ran.get("SCGD", 0) + self.n_told - self.n_evals
        return ran

    # ---- state -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the log, and what has arrived of the batch or the stage in hand."""
        engine = self.engine
        return {
            "limit": self.first_limit,
            "log": np.array(self.log, np.float64),
            "marks": {str(i): mark for i, mark in enumerate(self.marks)},
            "checksum": self.checksum,
            "values": self.values.copy() if self.size else np.empty(0),
            "n_asked": self.n_asked,
            "n_answered": self.n_answered,
            "began": self.began,
            "engine": None if engine is None else engine.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Send the log again, then take up the batch or the stage in hand."""
        self.first_limit = state["limit"]
        self.problem.known.keep(self.n_known)
        self.begin()
        marks = [state["marks"][str(i)] for i in range(len(state["marks"]))]
        self._replay(np.asarray(state["log"], np.float64), marks)
        if self.checksum != state["checksum"]:
            raise OtherPoints("the strategy asks other points than those it was saved with")
        if self.size:
            if self.values.shape != state["values"].shape:
                raise ValueError("a batch has another size")
            self.values[:] = state["values"]
        self.n_asked, self.n_answered = int(state["n_asked"]), int(state["n_answered"])
        if not 0 <= self.n_answered <= self.n_asked <= self.size:
            raise ValueError("a batch has more answers than questions")
        if (self.engine is None) != (state["engine"] is None):
            raise OtherPoints("SCGD has not begun where the saved run had")
        if self.engine is not None:
            self.began = int(state["began"])
            self.engine.load_state_dict(state["engine"])
            if self.engine.n_evals < self.began:
                raise ValueError("a stage has fewer evaluations than at its beginning")

    def _replay(self, log: Floats, marks: list[dict[str, Any]]) -> None:
        """Send values and stages in the order in which they came."""
        place = k = 0
        while place < len(log) or k < len(marks):
            if k < len(marks) and marks[k]["at"] == place:
                self._replay_mark(marks[k])
                k += 1
            elif self.asked is None or not self.size:
                raise OtherPoints("the strategy ends before its log does")
            else:
                n = self.values.size
                if place + n > len(log):
                    raise OtherPoints("the log ends in the middle of a batch")
                self.values.flat[:] = log[place : place + n]
                place += n
                self.answer()

    def _replay_mark(self, mark: dict[str, Any]) -> None:
        if "value" in mark:
            self.know(mark["x"], mark["value"])
            return
        if "limit" in mark:
            self._extend(mark)
            return
        if not self.stepping or self.engine is None:
            raise OtherPoints("the strategy does not hand over to SCGD where it did")
        stage = Stage(**mark["stage"])
        self.engine.point.put(stage.x)
        self.engine.n_evals += stage.n_evals
        self._send_stage(stage)


def summed(checksum: int, numbers: Any) -> int:
    """Return a checksum of everything before and some numbers."""
    return zlib.crc32(np.ascontiguousarray(numbers).data, checksum)
