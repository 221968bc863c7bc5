"""A run keeps the account of a strategy: budget, numbers, values, failures, history.

Only the run issues numbers of evaluations. Each value arrives alone, in any order, late or never;
when the last one of a question is there, the strategy takes them all in one commit. Open questions,
with the values that have arrived, are part of the state: a run that is resumed makes the
evaluations that are missing, and none twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.checks import count
from scgd.constraints.merit import Merit
from scgd.history import History, Status, mean_and_error
from scgd.method import SCGD
from scgd.methods import Method, Ran
from scgd.outcomes import CAUGHT
from scgd.problem import Problem, as_scalar
from scgd.questions import Open, Question, open_state, reopened
from scgd.run.interpreter import Interpreter
from scgd.run.ledger import Ledger
from scgd.run.recommending import Recommendation, chosen, valued
from scgd.typing import Floats

if TYPE_CHECKING:
    from scgd.results import Result
    from scgd.run.build import Seed
    from scgd.run.filler import Filler
    from scgd.run.recording import Record

STRETCH = 50_000
"""Evaluations that a loop makes at a time: what it has to report stays below 4 MB."""
LARGEST_SIZE = 1e140
"""Values beyond it (or below its inverse) have gradients whose squares overflow (or vanish)."""


class Run:
    """The account of one strategy.

    Parameters
    ----------
    strategy
        The interpreter of the strategy.
    ledger
        What happened to evaluations so far.
    method, seed
        What it was made of.
    max_evals
        Hard budget; None for none.
    merit
        What makes one number of f and the constraints, where there are any.

    Attributes
    ----------
    status
        Why it ended, or that it has not.
    open
        Open questions by the number of their first evaluation.
    order, ordered
        Numbers of the evaluations in the order in which their values were accepted, and whether
        that is recorded.
    filler, make_filler
        What has work while the strategy waits, once it was needed, and where it comes from;
        None where waiting does no harm.
    by_loops
        Whether loops may make many evaluations at a time: nobody looks at each.
    """

    def __init__(
        self,
        strategy: Interpreter,
        ledger: Ledger,
        method: Method,
        seed: Seed,
        max_evals: int | None,
        merit: Merit | None = None,
    ) -> None:
        self.strategy, self.ledger, self.method, self.seed = strategy, ledger, method, seed
        self.problem, self.samples = strategy.problem, strategy.samples
        self.max_evals, self.merit, self.by_loops = max_evals, merit, merit is None
        self.history: History = strategy.history
        self.began = time.monotonic()
        self.status = Status.RUNNING
        self.open: dict[int, Open] = {}
        self.place: dict[int, Open] = {}
        self.attached: list[Open] = []  # asked since the last commit
        self.order: list[int] = []
        self.ordered = False
        self.n_issued = 0
        self.remark = ""
        self.make_filler: Callable[[], Filler] | None = None
        self.filler: Filler | None = None
        self.whole = True  # not in the middle of a commit, so that the state can be saved

    @cached_property
    def record(self) -> Record:
        """Where evaluations are noted."""
        from scgd.run.recording import Record

        return Record(self.problem, self.began, sign=self.ledger.sign)

    def keep(self, record: Record) -> None:
        """Note evaluations there, with their points: each is then looked at."""
        self.record, self.by_loops = record, False

    # ---- budget ----------------------------------------------------------------------------------

    @property
    def nfev(self) -> int:
        """Evaluations accepted."""
        return self.ledger.n_accepted

    @property
    def room(self) -> float:
        """Evaluations that the budget pays for beside those that are open."""
        if self.max_evals is None:
            return float("inf")
        return self.max_evals - self.n_issued

    @property
    def done(self) -> bool:
        """Whether nothing is open and the budget does not pay for another question."""
        return not self.open and self.strategy.cost > self.room

    def extend(self, max_evals: int | None) -> None:
        """Go on with another budget: schedules that fall over it start a new stage here."""
        self.max_evals = None if max_evals is None else count(max_evals, "max_evals")
        self.status = Status.RUNNING
        again = self.strategy.finished and self.merit is None and self.nfev > 0
        x = self.recommended(self.status).x if again else None
        self.strategy.extend(self.max_evals, x)

    # ---- questions and values --------------------------------------------------------------------

    def next_question(self) -> Open | None:
        """Open the strategy's next question; None where it waits or the budget does not pay."""
        if self.strategy.cost > self.room:
            return None
        question = self.strategy.ask(self.room)
        return None if question is None else self._opened(question, self.strategy.solver)

    def filler_question(self) -> Open | None:
        """Open a question beside the strategy's; None where the budget does not pay for it."""
        if self.make_filler is None or self.strategy.finished or self.room < 1:
            return None
        if self.merit is not None:  # it compares numbers, and f alone says nothing here
            return None
        self.filler = self.filler or self.make_filler()
        question = self.filler.ask()
        return None if question is None else self._opened(question, FILLER)

    def _opened(self, question: Question, solver: str) -> Open:
        opened = Open(question, self.n_issued, solver)
        self._issue(opened)
        self.n_issued += len(question)
        return opened

    def _issue(self, opened: Open) -> None:
        self.open[opened.first] = opened
        self.attached.append(opened)
        for j in opened.missing:
            self.place[opened.first + j] = opened

    def accept(self, number: int, value: Any) -> None:
        """Take the value of an evaluation; the last one of a question makes the strategy go on.

        A value that is refused (it is not a number, or not finite under ``"raise"``) leaves the
        question as it was.
        """
        self.enter(number, *self.checked(number, value))

    def checked(self, number: int, value: Any) -> tuple[Any, bool]:
        """Return a value as the strategy is to have it, and whether it failed; enter nothing.

        :data:`~scgd.outcomes.CAUGHT` is a failed value of any kind.
        """
        if number not in self.place:
            raise ValueError(f"ids: evaluation {number} was not asked, or has been answered")
        question, merit, j = self.place[number].question, self.merit, self.offset(number)
        if question.kind == "partials":
            n, who = len(question.support), "jac"
            found: Any = np.full(n, CAUGHT) if value is CAUGHT else as_partials(value, n)
        elif merit is not None:
            found, who = np.array(np.full(merit.size, CAUGHT) if value is CAUGHT else value), "fun"
            if np.isfinite(found[0]):
                who = "one of the constraints"
        else:
            found, who = as_scalar(value), "fun"
            if found - found == 0.0:
                return found, False
        bad = np.ravel(found)[~np.isfinite(np.ravel(found))]
        if not bad.size:
            return found, False
        may_fail = question.may_fail
        self.ledger.refuse(float(bad[0]), number, lambda: question.at(j), who, may_fail=may_fail)
        if question.kind == "partials":
            return found, True
        return (self.ledger.stand_in if merit is None else np.full(merit.size, np.nan)), True

    def offset(self, number: int) -> int:
        """Return which evaluation of its question a number stands for."""
        return number - self.place[number].first

    def enter(self, number: int, value: Any, failed: bool = False) -> None:
        """Enter a value that was checked in the account."""
        opened, j, ledger = self.place[number], self.offset(number), self.ledger
        question = opened.question
        opened.values[j] = value
        opened.n_left -= 1
        del self.place[number]
        ledger.n_failed += failed
        ledger.accepted(value)
        if self.ordered:
            self.order.append(number)
        self.record.add(number, opened.solver, value, question, j)
        if self.merit is None and question.kind == "values":
            if ledger.best is not None and value < ledger.best.value:
                ledger.best.offer(value, question, j)
            first = number == 0 and not self.strategy.stepping  # compiled loops tell nothing of it
            if first and np.array_equal(question.at(0), self.problem.x0):
                ledger.first = value
        if opened.n_left == 0:
            self._commit(opened)

    def _commit(self, opened: Open) -> None:
        """Let the strategy take the values of a question."""
        del self.open[opened.first]
        for other in self.attached:
            if other is not opened:
                other.question.detach()
        self.attached.clear()
        values: Any = opened.values
        if opened.question.kind == "values":
            values = np.array(values)
        self.whole = False
        with np.errstate(all="ignore"):
            if opened.solver == FILLER:
                assert self.filler is not None
                self.filler.tell(opened.question, values)
                self.strategy.n_filled = self.filler.n_evals
            else:
                self.strategy.tell(opened.question, values)
        self.whole = True

    def run_loop(self, loop: Callable[[float], None]) -> None:
        """Let a loop make many evaluations, and enter them in the account, whatever happens."""
        strategy, ledger = self.strategy, self.ledger
        room, solver = min(self.room, max(STRETCH, strategy.cost)), strategy.solver
        seen = ledger.noted = [] if "record" not in vars(self) or self.record.room > 0 else None
        ledger.marks = [(0, time.monotonic())]
        try:
            with np.errstate(all="ignore"):
                loop(room)
        finally:
            with np.errstate(all="ignore"):
                strategy.settle()
            n = strategy.n_entered - self.nfev
            if seen is not None and len(seen) >= n:
                self.record.extend(self.n_issued, solver, seen[:n], ledger.marks)
            ledger.n_accepted += n
            self.n_issued += n

    # ---- what it says ----------------------------------------------------------------------------

    def result(self) -> Result:
        """Return the result so far."""
        from scgd.results import Result  # which `import scgd` need not load

        status, strategy = self._final_status(), self.strategy
        with np.errstate(all="ignore"):
            end = self.recommended(status)
        fun, error = self.valued(end)
        level = fun == self.ledger.first and not error > 0  # as high elsewhere is nothing gained
        still = level or np.array_equal(end.x, self.problem.x0)
        if status is Status.BUDGET and (np.isnan(fun) or (self.max_evals == 1 and still)):
            status = Status.TOO_SMALL  # spent before anything was seen at x, or beyond x0
        if self.merit is not None:
            x, fun, error, violation = self.merit.best
            end = Recommendation(x, np.array([fun]), exact=error == 0.0)
        history, space = self.history.arrays(self.ledger.sign), self.problem.space
        shares, errors = strategy.relevance or (None, None)
        ended = self.nfev > 0 and status in ENDS
        stuck, rose = ended and still, ended and self._rose(fun, error, end.values.size)
        late = status is Status.TIME and self.nfev == 0
        lost = 2 * self.ledger.n_failed > self.nfev
        cure = FAILING if lost else remedy(fun, self.problem)
        advice = cure if stuck else RISEN if rose else LATE if late else ""
        result = Result(
            x=end.x.copy(),
            **({} if space is None else {"params": space.decode(end.x), "names": space.names}),
            fun=self.ledger.sign * fun,
            fun_error=0.0 if end.exact else error,
            nfev=self.nfev,
            max_evals=self.max_evals,
            nit=strategy.n_steps,
            n_failed=self.ledger.n_failed,
            success=status in SUCCESSES and not (stuck or rose or late),
            status=int(status),
            message=self._message(status, advice),
            weights=strategy.weights,
            relevance=shares,
            relevance_error=errors,
            members=list(strategy.ran.items()),
            farthest=strategy.farthest,
            history=history,
            scale=strategy.scale.copy(),
            method=self.ran,
            table=self.record.so_far(),
        )
        if "screening" in strategy.report:
            result.screening = strategy.report["screening"]
        if self.merit is not None:
            result.maxcv = violation
            result.success = result.success and violation == 0.0
        return result

    @property
    def ran(self) -> SCGD | Ran:
        """What really ran: SCGD, or the solvers of a strategy."""
        if isinstance(self.method, SCGD):
            return self.method
        strategy = self.strategy
        steps = None if strategy.engine is None else strategy.engine.method
        return Ran(self.method.name, tuple(strategy.ran.items()), steps)

    def recommended(self, status: Status) -> Recommendation:
        """Return the best point seen where f repeats itself, else what the strategy recommends."""
        strategy = self.strategy
        if self.merit is not None:
            return Recommendation(self.merit.best[0], np.array([self.merit.best[1]]))
        found = Recommendation(*strategy.recommended)
        if strategy.outcome.diverged and strategy.engine is not None:
            return Recommendation(self.problem.x0, np.array(strategy.engine.firsts[:2]))
        if status is Status.TARGET and strategy.stepping and strategy.engine is not None:
            found = Recommendation(*strategy.engine.recommended)
        found = chosen(
            found, self.ledger, self.problem.x0, deterministic=strategy.deterministic,
            tested=not np.isnan(strategy.report.get("noise", 0.0)),
            reported=self.history.arrays()["fun"] if strategy.stepping else None,
        )  # fmt: skip
        if self.filler is None or found.exact:
            return found
        return self._filled(found)

    def _filled(self, found: Recommendation) -> Recommendation:
        """Return the filler's centre, if it is lower by more than the standard errors of both."""
        assert self.filler is not None
        other = Recommendation(*self.filler.recommended)
        (seen, error), (lower, spread) = mean_and_error(found.values), mean_and_error(other.values)
        better = lower + np.hypot(np.nan_to_num(error), spread) < seen
        return other if better or (np.isnan(seen) and np.isfinite(lower)) else found

    def valued(self, end: Recommendation) -> tuple[float, float]:
        """Return the value of what is recommended, and its standard error."""
        told = self.strategy.report
        return valued(end.values, told.get("noise") if end.x is told.get("x") else None)

    def _rose(self, fun: float, error: float, n_values: int) -> bool:
        """Tell whether the end lies above the beginning by more than two standard errors."""
        first, engine = self.ledger.first, self.strategy.engine
        if self.merit is not None:
            return False
        if np.isnan(first):  # SCGD began at once: its first phases tell
            return self.strategy.stepping and engine is not None and engine.stage(0).rose
        with np.errstate(over="ignore"):
            spread = float(np.nan_to_num(error)) * np.sqrt(1 + n_values)  # of mean and one value
            return bool(fun > first + 2 * spread)

    def know(self, x: Floats, value: float) -> None:
        """Take a measurement that was made before, which costs nothing."""
        if self.ledger.best is not None and value < self.ledger.best.value:
            self.ledger.best.put(value, x)
        if self.n_issued:
            self.strategy.know(x, value)

    def _final_status(self) -> Status:
        status = self.status
        ended = status in (Status.RUNNING, Status.BUDGET, Status.TIME)
        if ended and self.nfev and self.ledger.n_failed == self.nfev:
            return Status.FAILED
        if status is not Status.RUNNING or not self.done:
            return status
        outcome = self.strategy.outcome
        if self.strategy.finished and outcome.diverged:
            return Status.DIVERGED
        if self.strategy.finished and self.room >= 1:
            return Status.CONVERGED if outcome.converged else Status.FINISHED
        return Status.BUDGET if self.nfev else Status.TOO_SMALL

    def _message(self, status: Status, advice: str = "") -> str:
        parts = [status.message]
        if status is Status.CONVERGED and self.max_evals is not None:
            parts.append(f"{self.max_evals - self.nfev} evaluations were not needed.")
        if status is Status.BUDGET and self.max_evals is not None and self.nfev < self.max_evals:
            parts = [f"Budget exhausted: {self.nfev} of {self.max_evals} evaluations; the next "
                     "step needs more."]  # fmt: skip
        parts.append(advice)
        if n := self.ledger.n_failed:
            parts.append(f"Failed evaluations, without a finite value: {n}.")
        if self.merit is not None and 0 < self.merit.best[3] < np.inf:
            parts.append(f"No feasible point seen, least violation {self.merit.best[3]:.3g}.")
        ran = ", ".join(f"{name} {n}" for name, n in self.strategy.ran.items())
        parts += [self.strategy.report.get("message", ""), f"Evaluations: {ran or 'none'}."]
        n_filled = self.strategy.n_filled
        filled = f"{n_filled} filled in while it waited." if n_filled else ""
        return " ".join(filter(None, [self.remark, *parts, filled]))

    # ---- state -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return everything in the run as nested dicts of arrays and plain values."""
        return {
            "max_evals": self.max_evals,
            "status": int(self.status),
            "n_issued": self.n_issued,
            "order": np.array(self.order, np.int64),
            "ledger": self.ledger.state_dict(),
            "history": self.history.state_dict(),
            "strategy": self.strategy.state_dict(),
            "filler": None if self.filler is None else self.filler.state_dict(),
            "open": {str(first): open_state(opened) for first, opened in self.open.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a run where ``state_dict`` left it."""
        budget = state["max_evals"]
        self.max_evals = None if budget is None else count(budget, "max_evals")
        self.n_issued = int(state["n_issued"])
        self.status = Status(int(state["status"]))
        self.order = state["order"].tolist()
        self.ledger.load_state_dict(state["ledger"])
        self.strategy.load_state_dict(state["strategy"])  # which notes again what it has seen
        self.history.load_state_dict(state["history"])
        self.filler = None
        if state["filler"] is not None:
            assert self.make_filler is not None, "the run was made by ask and tell"
            self.filler = self.make_filler()
            self.filler.load_state_dict(state["filler"])
        self.strategy.n_filled = 0 if self.filler is None else self.filler.n_evals
        self.open.clear()
        self.place.clear()
        stepping, engine = self.strategy.stepping, self.strategy.engine
        point = engine.point if stepping and engine is not None else self.strategy.point
        for first, saved in state["open"].items():
            self._issue(reopened(point, int(first), saved))
        n_open = sum(len(opened.question) for opened in self.open.values())
        n_left = sum(opened.n_left for opened in self.open.values())
        n_told = self.strategy.n_entered
        counts = (self.n_issued, self.nfev)
        if counts != (n_told + n_open, n_told + n_open - n_left):
            raise ValueError("the numbers of evaluations do not add up")


LATE = "Nothing was evaluated; give a larger max_time."
RISEN = "Values rose from where it began; give smaller steps (learning_rate), or method='auto'."
FAILING = (
    "Nothing improved on x0: most evaluations had no finite value; see what fun returns near x0."
)
FILLER = "filler"
"""The solver of evaluations beside the strategy's."""
ENDS = (Status.BUDGET, Status.TIME, Status.FINISHED, Status.CONVERGED)
SUCCESSES = (Status.TARGET, Status.CALLBACK, *ENDS)


def as_partials(value: Any, n: int) -> Floats:
    """Return partial derivatives as an array, or say what they should have been."""
    try:
        if np.iscomplexobj(value):
            raise TypeError
        array = np.array(value, np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (n,):
        raise TypeError(
            f"jac must return {n} partial derivatives, real numbers and one per coordinate it is "
            f"given, got {type(value).__name__} of shape {np.shape(value)} and type "
            f"{getattr(value, 'dtype', 'object')}"
        )
    return array


def remedy(value: float, problem: Problem) -> str:
    """Return what helps a run that found nothing better than x0, where f has this value.

    What the user has given already is not advised.

    Examples
    --------
    >>> remedy(1.0, Problem.check(np.zeros(2), scale=1.0))
    'Nothing improved on x0; try more evaluations or another x0.'
    """
    size = abs(value)
    if 0.0 < size < 1.0 / LARGEST_SIZE or size > LARGEST_SIZE:
        return (
            f"Nothing improved on x0: values of f are near {size:.0e}, and squares of its slopes "
            "leave the range of numbers; multiply f so that they are near 1."
        )
    scale = "" if problem.scale_known else "scale= (the typical size of a coordinate), "
    bounds = "bounds=, " if scale and not problem.lower.size else ""
    return f"Nothing improved on x0; try {scale}{bounds}more evaluations or another x0."
