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

from scgd.history import History, Status, mean_and_error
from scgd.plans import Plan
from scgd.problem import as_scalar, count
from scgd.questions import Question
from scgd.run.ledger import Ledger
from scgd.typing import Floats

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

__all__ = ["Open", "Run"]


class Open:
    """A question that is open: its numbers and the values that have arrived.

    Attributes
    ----------
    first
        The number of its first evaluation; the others follow.
    values
        What has arrived; None where nothing has.
    n_left
        How many are still to come.
    """

    def __init__(self, question: Question, first: int) -> None:
        self.question, self.first = question, first
        self.values: list[Any] = [None] * len(question)
        self.n_left = len(question)

    @property
    def missing(self) -> list[int]:
        """The places of values that are still to come."""
        return [j for j, value in enumerate(self.values) if value is None]


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

    Attributes
    ----------
    status
        Why it ended, or that it has not.
    open
        Open questions by the number of their first evaluation.
    order, ordered
        Numbers of the evaluations in the order in which their values were accepted, and whether
        that is recorded.
    """

    def __init__(self, plan: Plan, ledger: Ledger, max_evals: int | None) -> None:
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
        opened = Open(question, self.n_issued)
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

    def _enter(self, number: int, checked: Any) -> None:
        """Enter a value in the books."""
        opened = self.place[number]
        j, question = number - opened.first, opened.question
        opened.values[j] = checked
        opened.n_left -= 1
        del self.place[number]
        self.ledger.n_accepted += 1
        if self.ordered:
            self.order.append(number)
        best = self.ledger.best
        if best is not None and question.kind == "values" and checked < best.value:
            best.offer(checked, question, j)
        if opened.n_left == 0:
            self._commit(opened)

    def lose(self, number: int) -> None:
        """Take note that an evaluation will have no value."""
        if number not in self.place:
            raise ValueError(f"evaluation {number} was not asked, or has been answered")
        question = self.place[number].question
        n = len(question.support)
        self.ledger.n_failed += 1
        partials = question.kind == "partials"
        self._enter(number, np.full(n, np.nan) if partials else float("nan"))

    def _checked(self, value: Any, question: Question, number: int, j: int) -> Any:
        """Return the value as the search wants it, NaN where it was lost."""
        if question.kind == "partials":
            return self._checked_partials(value, question, number, j)
        scalar = as_scalar(value)
        if scalar - scalar == 0.0:
            return scalar
        self.ledger.lost(scalar, number, lambda: question.at(j), far=question.far)
        return float("nan")

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
        self.whole = False
        with np.errstate(all="ignore"):
            self.plan.take(opened.question, values)
        self.note()
        self.whole = True

    def note(self) -> None:
        """Take away what the search has seen."""
        for n_evals, value in self.plan.journal:
            self.history.append(n_evals, value)
            self.n_reports += 1
        self.plan.journal.clear()

    def run_body(self, body: Callable[[float], None]) -> None:
        """Let a body take steps of the search, and enter them in the books, whatever happens."""
        try:
            with np.errstate(all="ignore"):
                body(self.room)
        finally:
            self.plan.settle()
            n = self.plan.n_evals - self.nfev
            self.ledger.n_accepted += n
            self.n_issued += n
            self.note()

    # ---- what it says ----------------------------------------------------------------------------

    def result(self) -> OptimizeResult:
        """Return the result so far."""
        from scipy.optimize import OptimizeResult  # half a second that `import scgd` need not take

        status = self._final_status()
        with np.errstate(all="ignore"):
            standing = self.plan.reached if status is Status.TARGET else self.plan.standing
        fun, error = mean_and_error(standing.values)
        if status is Status.BUDGET and np.isnan(fun):  # spent before anything was seen at x
            status = Status.TOO_SMALL
        return OptimizeResult(
            x=standing.x.copy(),
            fun=fun,
            fun_error=0.0 if standing.exact else error,
            nfev=self.nfev,
            nit=self.plan.n_steps,
            n_failed=self.ledger.n_failed,
            success=status in SUCCESSES,
            status=int(status),
            message=self._message(status),
            weights=self.plan.weights,
            history=self.history.arrays(),
            scale=self.plan.scale.copy(),
        )

    def _final_status(self) -> Status:
        status = self.status
        ended = status in (Status.RUNNING, Status.BUDGET, Status.TIME)
        if ended and self.nfev and self.ledger.n_failed == self.nfev:
            return Status.LOST
        if status is not Status.RUNNING or not self.done:
            return status
        if self.plan.finished:
            return Status.FINISHED
        return Status.BUDGET if self.nfev else Status.TOO_SMALL

    def _message(self, status: Status) -> str:
        parts = [status.message]
        if status is Status.BUDGET and self.max_evals is not None and self.nfev < self.max_evals:
            parts = [
                f"{self.nfev} of {self.max_evals} evaluations; no more question was affordable."
            ]
        if self.ledger.n_failed:
            parts.append(f"{self.ledger.n_failed} values were not finite.")
        return " ".join(filter(None, [self.remark, *parts, self.plan.sentence]))

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
            "open": {str(first): open_state(opened) for first, opened in self.open.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a run where ``state_dict`` left it."""
        self.max_evals, self.n_issued = state["max_evals"], int(state["n_issued"])
        self.status = Status(int(state["status"]))
        self.order = state["order"].tolist()
        self.ledger.load_state_dict(state["ledger"])
        self.history.load_state_dict(state["history"])
        self.plan.load_state_dict(state["plan"])
        self.open.clear()
        self.place.clear()
        for first, saved in state["open"].items():
            self._issue(reopened(self.plan, int(first), saved))
        n_open = sum(len(opened.question) for opened in self.open.values())
        if self.n_issued != self.plan.n_evals + n_open or self.plan.n_open != len(self.open):
            raise ValueError("the numbers of evaluations do not add up")


SUCCESSES = (Status.TARGET, Status.BUDGET, Status.TIME, Status.CALLBACK, Status.FINISHED)


def open_state(opened: Open) -> dict[str, Any]:
    """Return an open question and what has arrived of it, for a checkpoint."""
    arrived = [j for j, value in enumerate(opened.values) if value is not None]
    values: Floats = np.array([opened.values[j] for j in arrived], np.float64)
    return {
        "question": opened.question.state_dict(),
        "arrived": np.array(arrived, np.int64),
        "values": values,
    }


def reopened(plan: Plan, first: int, saved: dict[str, Any]) -> Open:
    """Return an open question that was saved."""
    opened = Open(plan.reopen(saved["question"]), first)
    if first < 0 or len(saved["arrived"]) >= len(opened.question):
        raise ValueError("an open question has no value to come")
    for j, value in zip(saved["arrived"].tolist(), saved["values"].tolist(), strict=True):
        if not 0 <= j < len(opened.values):
            raise ValueError("a value is not one of its question's")
        opened.values[j] = value
        opened.n_left -= 1
    return opened
