"""A run keeps the books of a search: budget, numbers, values, faults, history.

Only the run issues numbers of evaluations. Each value arrives alone, in any order, late or lost;
when the last one of a question is there, the search takes them all in one commit. Open questions,
with the values that have arrived, are part of the state: a run that is taken up makes the
evaluations that are missing, and none twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.constraints.merit import Merit
from scgd.history import History, Status, mean_and_error
from scgd.plans import Plan
from scgd.problem import as_scalar, count
from scgd.questions import Question
from scgd.run.ledger import Ledger
from scgd.run.opened import Open, open_state, reopened
from scgd.run.recommending import chosen
from scgd.run.remedies import remedy
from scgd.searches import Search, Standing, Stepping
from scgd.typing import Floats

if TYPE_CHECKING:
    from scgd.results import Result
    from scgd.run.recording import Record

__all__ = ["Run"]

STRETCH = 10_000
"""Evaluations that a body makes at a time where they are noted."""


class Run:
    """The books of one search.

    Parameters
    ----------
    plan
        The search.
    ledger
        What happened to evaluations so far.
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
    filling, make_filling
        A search that has work while the plan waits, once it was needed, and where it comes from;
        None where waiting does no harm.
    record
        Where evaluations are noted; None for nowhere.
    """

    record: Record | None = None

    def __init__(
        self, plan: Plan, ledger: Ledger, max_evals: int | None, merit: Merit | None = None
    ) -> None:
        self.merit = merit
        self.plan, self.ledger, self.max_evals = plan, ledger, max_evals
        self.history = History()
        self.status = Status.RUNNING
        self.open: dict[int, Open] = {}
        self.place: dict[int, Open] = {}
        self.order: list[int] = []
        self.ordered = False
        self.n_issued = 0
        self.n_reports = 0
        self.remark = ""
        self.earlier = False  # whether measurements were handed in that nobody asked for
        self.make_filling: Callable[[], Search] | None = None
        self.filling: Search | None = None
        self.whole = True  # not in the middle of a commit, so that the state can be saved

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
        return not self.open and (self.plan.finished or self.plan.cost > self.room)

    def extend(self, max_evals: int | None) -> None:
        """Go on with another budget: schedules that fall over it start a new leg here."""
        self.max_evals = None if max_evals is None else count(max_evals, "max_evals")
        self.status = Status.RUNNING
        self.plan.extend(self.max_evals)

    # ---- questions and values --------------------------------------------------------------------

    def next_question(self) -> Open | None:
        """Open the search's next question; None where it waits or the budget does not pay."""
        if self.plan.cost > self.room:
            return None
        self.plan.room = self.room
        question = self.plan.pose()
        if question is None:
            return None
        return self._opened(question, self.plan)

    def filling_question(self) -> Open | None:
        """Open a question beside the plan's; None where the budget does not pay for it."""
        if self.make_filling is None or self.plan.finished or self.room < 1:
            return None
        self.filling = self.filling or self.make_filling()
        question = self.filling.pose()
        return None if question is None else self._opened(question, self.filling)

    @property
    def n_filled(self) -> int:
        """Values told to the filling."""
        return 0 if self.filling is None else self.filling.n_evals

    def _opened(self, question: Question, owner: Search) -> Open:
        opened = Open(question, self.n_issued, owner)
        self._issue(opened)
        self.n_issued += len(question)
        return opened

    def _issue(self, opened: Open) -> None:
        self.open[opened.first] = opened
        for j in opened.missing:
            self.place[opened.first + j] = opened

    def accept(self, number: int, value: Any) -> None:
        """Take the value of an evaluation; the last one of a question makes the search move.

        A value that is refused (it is not a number, or not finite under ``"raise"``) leaves the
        question as it was.
        """
        if number not in self.place:
            raise ValueError(f"evaluation {number} was not asked, or has been answered")
        opened = self.place[number]
        j = number - opened.first
        self._enter(number, self._checked(value, opened.question, number, j))

    def check(self, number: int, value: Any, *, lost: bool = False) -> None:
        """Refuse a value that would not be accepted; nothing is entered."""
        if number not in self.place:
            raise ValueError(f"evaluation {number} was not asked, or has been answered")
        if lost:
            return
        opened, n_failed = self.place[number], self.ledger.n_failed
        try:
            self._checked(value, opened.question, number, number - opened.first)
        finally:
            self.ledger.n_failed = n_failed

    def _enter(self, number: int, checked: Any) -> None:
        """Enter a value in the books."""
        opened = self.place[number]
        j, question = number - opened.first, opened.question
        opened.values[j] = checked
        opened.n_left -= 1
        del self.place[number]
        self.ledger.accepted(checked)
        if self.ordered:
            self.order.append(number)
        if self.record is not None:
            self.record.add(number, opened.member, checked, question, j)
        best = self.ledger.best
        if number == 0 and self.merit is None:
            self._note_first(checked, question)
        if self.merit is not None:
            self.merit.offer(np.asarray(checked), question.at(j))
        elif best is not None and question.kind == "values" and checked < best.value:
            best.offer(checked, question, j)
        if opened.n_left == 0:
            self._commit(opened)

    def _note_first(self, checked: Any, question: Question) -> None:
        """Note f(x0) where a run begins with it: ends are measured by it.

        Not that of a recipe's first step, of which compiled loops tell nothing.
        """
        if isinstance(self.plan.active, Stepping):
            return
        if question.kind == "values" and np.array_equal(question.at(0), self.plan.start):
            self.ledger.first = checked

    def lose(self, number: int) -> None:
        """Take note that an evaluation will have no value."""
        if number not in self.place:
            raise ValueError(f"evaluation {number} was not asked, or has been answered")
        question = self.place[number].question
        n = len(question.support)
        self.ledger.n_failed += 1
        partials = question.kind == "partials"
        lost: Any = np.full(n, np.nan) if partials else self.ledger.stand_in
        self._enter(number, lost if self.merit is None else np.full(self.merit.size, np.nan))

    def _checked(self, value: Any, question: Question, number: int, j: int) -> Any:
        """Return the value as the search wants it; where it was lost, what stands in for it."""
        if question.kind == "partials":
            return self._checked_partials(value, question, number, j)
        if self.merit is not None:
            return self._checked_vector(value, question, number, j)
        scalar = as_scalar(value)
        if scalar - scalar == 0.0:
            return scalar
        self.ledger.lost(scalar, number, lambda: question.at(j), far=question.far)
        return self.ledger.stand_in

    def _checked_vector(self, value: Any, question: Question, number: int, j: int) -> Any:
        """Return f and the constraints; a constraint that is not finite loses the value."""
        vector: Floats = np.array(value, np.float64)
        if not np.isfinite(vector).all():
            bad = float(vector[~np.isfinite(vector)][0])
            self.ledger.lost(bad, number, lambda: question.at(j), far=question.far)
            return np.full(vector.shape, np.nan)
        return vector

    def _checked_partials(self, value: Any, question: Question, number: int, j: int) -> Any:
        n = len(question.support)
        try:
            array = np.array(value, np.float64)
        except (TypeError, ValueError):
            array = np.empty(0)
        if array.shape != (n,):
            raise TypeError(
                f"jac must return {n} partial derivatives, one per coordinate it is given, got "
                f"{type(value).__name__} of shape {np.shape(value)}"
            )
        if not np.isfinite(array).all():
            bad = float(array[~np.isfinite(array)].flat[0])
            self.ledger.lost(bad, number, lambda: question.at(j), far=question.far)
        return array

    def _commit(self, opened: Open) -> None:
        """Let the search take the values of a question."""
        del self.open[opened.first]
        for other in self.open.values():
            other.question.detach()
        values: Any = opened.values
        if opened.question.kind == "values":
            values = np.array(values)
        if self.merit is not None:
            self.merit.vectors = values
            with np.errstate(all="ignore"):
                values = self.merit(values)
        self.whole = False
        with np.errstate(all="ignore"):
            opened.owner.take(opened.question, values)
        self.note()
        self.whole = True

    def note(self) -> None:
        """Take away what the search has seen."""
        for n_evals, value in self.plan.journal:
            self.history.append(n_evals + self.n_filled, value)
            self.n_reports += 1
        self.plan.journal.clear()

    def run_body(self, body: Callable[[float], None]) -> None:
        """Let a body take steps of the search, and enter them in the books, whatever happens."""
        member, record, room = self.plan.active.member, self.record, self.room
        told = self.ledger.begin_telling(record is not None and record.room > 0)
        if told is not None:
            room = min(room, max(STRETCH, self.plan.cost))
        try:
            with np.errstate(all="ignore"):
                body(room)
        finally:
            self.plan.settle()
            n = self.plan.n_evals + self.n_filled - self.nfev
            if record is not None and told is not None and len(told) >= n:
                record.extend(self.n_issued, member, told[:n], self.ledger.marks)
            self.ledger.n_accepted += n
            self.n_issued += n
            self.note()

    # ---- what it says ----------------------------------------------------------------------------

    def result(self) -> Result:
        """Return the result so far."""
        from scgd.results import Result  # half a second that `import scgd` need not take

        status = self._final_status()
        with np.errstate(all="ignore"):
            standing = self.recommended(status)
        fun, error = mean_and_error(standing.values)
        still = np.array_equal(standing.x, self.plan.start)
        if status is Status.BUDGET and (np.isnan(fun) or (self.max_evals == 1 and still)):
            status = Status.TOO_SMALL  # spent before anything was seen at x, or beyond x0
        if self.merit is not None:
            x, fun, error, violation = self.merit.best
            standing = Standing(x, np.array([fun]), exact=error == 0.0)
        history, space = self.history.arrays(), self.plan.ground.problem.space
        shares, errors = self.plan.relevance or (None, None)
        stuck = self.nfev > 0 and status in ENDS and still
        result = Result(
            x=standing.x.copy(),
            **({} if space is None else {"params": space.decode(standing.x), "names": space.names}),
            fun=self.ledger.sign * fun,
            fun_error=0.0 if standing.exact else error,
            nfev=self.nfev,
            max_evals=self.max_evals,
            nit=self.plan.n_steps,
            n_failed=self.ledger.n_failed,
            success=status in SUCCESSES and not stuck,
            status=int(status),
            message=self._message(
                status, remedy(fun, recipe=self.plan.ground.recipe) if stuck else ""
            ),
            weights=self.plan.weights,
            relevance=shares,
            relevance_error=errors,
            members=list(self.plan.members.items()),
            farthest=self.plan.farthest,
            history={**history, "fun": self.ledger.sign * history["fun"]},
            scale=self.plan.scale.copy(),
            table=None if self.record is None else self.record.so_far(),
        )
        if self.merit is not None:
            result.maxcv = violation
            result.success = result.success and violation == 0.0
        return result

    @property
    def by_bodies(self) -> bool:
        """Whether loops may take many steps at a time: nobody looks at each evaluation."""
        return self.merit is None and not (self.record is not None and self.record.whole)

    def recommended(self, status: Status) -> Standing:
        """Return the best point seen where f repeats itself, else what the search recommends."""
        standing = self.plan.reached if status is Status.TARGET else self.plan.standing
        if self.merit is not None:
            return Standing(self.merit.best[0], np.array([self.merit.best[1]]))
        ground = self.plan.ground
        repeats = ground.repeats or (standing.exact and self.earlier)
        asked = np.array([ground.first, ground.beside])
        standing = chosen(standing, self.ledger, self.plan.start, asked, repeats=repeats)
        if self.filling is None or standing.exact:
            return standing
        return self._filled(standing)

    def _filled(self, standing: Standing) -> Standing:
        """Return the filling's centre, if it is lower by more than the standard errors of both."""
        assert self.filling is not None
        other, (seen, error) = self.filling.standing, mean_and_error(standing.values)
        lower, spread = mean_and_error(other.values)
        better = lower + np.hypot(np.nan_to_num(error), spread) < seen
        return other if better or (np.isnan(seen) and np.isfinite(lower)) else standing

    def know(self, x: Floats, value: float) -> None:
        """Take an earlier measurement, which costs nothing."""
        self.earlier = True
        if self.ledger.best is not None and value < self.ledger.best.value:
            self.ledger.best.put(value, x)
        self.plan.active.know(x, value)

    def _final_status(self) -> Status:
        status = self.status
        ended = status in (Status.RUNNING, Status.BUDGET, Status.TIME)
        if ended and self.nfev and self.ledger.n_failed == self.nfev:
            return Status.LOST
        if status is not Status.RUNNING or not self.done:
            return status
        if self.plan.finished:
            return Status.CONVERGED if self.plan.ground.converged else Status.FINISHED
        return Status.BUDGET if self.nfev else Status.TOO_SMALL

    def _message(self, status: Status, stuck: str = "") -> str:
        parts = [status.message]
        if status is Status.CONVERGED and self.max_evals is not None:
            parts.append(f"{self.max_evals - self.nfev} evaluations were not needed.")
        if status is Status.BUDGET and self.max_evals is not None and self.nfev < self.max_evals:
            parts = [
                f"{self.nfev} of {self.max_evals} evaluations; no more question was affordable."
            ]
        parts.append(stuck)
        if self.ledger.n_failed:
            parts.append(f"{self.ledger.n_failed} evaluations failed: they gave no finite value.")
        if self.merit is not None and not self.merit.feasible:
            parts.append(f"No feasible point seen, least violation {self.merit.best[3]:.3g}.")
        filled = f"{self.n_filled} filled in while it waited." if self.n_filled else ""
        return " ".join(filter(None, [self.remark, *parts, self.plan.sentence, filled]))

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
            "plan": self.plan.state_dict(),
            "earlier": self.earlier,
            "filling": None if self.filling is None else self.filling.state_dict(),
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
        self.history.load_state_dict(state["history"])
        self.plan.load_state_dict(state["plan"])
        self.earlier, self.filling = bool(state["earlier"]), None
        if state["filling"] is not None:
            assert self.make_filling is not None, "the run was another door's"
            self.filling = self.make_filling()
            self.filling.load_state_dict(state["filling"])
        self.open.clear()
        self.place.clear()
        for first, saved in state["open"].items():
            owner = self.filling if saved["filled"] else self.plan
            assert owner is not None, "a question that nobody asked"
            self._issue(reopened(owner, int(first), saved))
        n_open = sum(len(opened.question) for opened in self.open.values())
        n_left = sum(opened.n_left for opened in self.open.values())
        n_plan = sum(opened.owner is self.plan for opened in self.open.values())
        n_told = self.plan.n_evals + self.n_filled
        counts = (self.n_issued, self.nfev, self.plan.n_open)
        if counts != (n_told + n_open, n_told + n_open - n_left, n_plan):
            raise ValueError("the numbers of evaluations do not add up")


ENDS = (Status.BUDGET, Status.TIME, Status.FINISHED, Status.CONVERGED)
SUCCESSES = (Status.TARGET, Status.CALLBACK, *ENDS)
