"""A search that takes f for deterministic, and somebody who looks whether it is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from scgd.questions import EVERYWHERE, Question, joint
from scgd.searches.around import ROUNDING, Around
from scgd.searches.base import Finding, Search, Standing
from scgd.typing import Floats

__all__ = ["Doubt", "Doubted"]

PERIOD, FEWEST = 0.05, 50
"""The part of the budget after which the best point is evaluated again, evaluations at least."""
AGAIN = -1
"""Role of the questions that look."""


@dataclass(frozen=True)
class Doubted(Finding):
    """Whether a value that was to be trusted came out differently, and what the search found.

    Parameters
    ----------
    differs
        Whether a value did not come again.
    found
        The finding of the search inside, as a dictionary.
    """

    differs: bool
    found: dict[str, Any]


class Doubt(Around):
    """Run a search of a deterministic function and evaluate its best point again now and then.

    Nine evaluations do not show noise that only some calls have. A search that keeps the best point
    seen then keeps a lucky value, which does not come again; the search is over when one does not.

    Parameters
    ----------
    inner
        The search; what it stands for must be a point and its exact value.
    budget
        Evaluations to plan for.
    """

    name: ClassVar[str] = "doubt"
    found: ClassVar[type[Finding]] = Doubted
    memory: ClassVar[tuple[str, ...]] = ("inner", "reference", "due", "differs")
    sequential: ClassVar[bool] = False

    def __init__(self, inner: Search, budget: int) -> None:
        super().__init__(inner)
        self.period = max(int(PERIOD * budget), FEWEST)
        self.reference, self.due, self.differs = float("nan"), self.period, False

    @property
    def looks(self) -> bool:
        """Whether the next question is our own."""
        if self.n_evals < self.due or self.inner.midway:
            return False
        standing = self.inner.standing
        known = standing.exact and np.isfinite(standing.values).all()
        return bool(known and standing.values.size == 1)

    @property
    def cost(self) -> int:
        """Evaluations of the next question, at least."""
        return 1 if self.looks else self.inner.cost

    def ask(self) -> Question | None:
        """Ask the best point again where that is due, once nothing else is open."""
        if self.reference == self.reference:
            return None
        if self.looks:
            if self.n_open:
                return None
            standing = self.inner.standing
            self.reference = float(standing.values[0])
            return joint(self.point, EVERYWHERE, standing.x[None].copy(), far=True, role=AGAIN)
        self.inner.lane, self.inner.room = self.lane, self.room
        return self.inner.pose()

    def tell(self, question: Question, values: Floats) -> None:
        """Compare, or let the search learn."""
        if question.role == AGAIN:
            off = abs(float(values[0]) - self.reference)
            self.differs = off > ROUNDING * abs(self.reference)  # never for a lost value
            self.reference, self.due = float("nan"), self.n_evals + self.period
            self.finished = self.differs
            return
        self.inner.take(question, values)
        self.settle()

    def settle(self) -> None:
        """Take note of what the search did."""
        super().settle()
        self.finished = self.finished or self.inner.finished

    def extend(self, budget: int | None) -> None:
        """Let the search plan for more."""
        self.inner.extend(None if budget is None else budget - self.n_evals + self.inner.n_evals)
        self.finished = self.differs or self.inner.finished

    def reopen(self, state: dict[str, Any]) -> Question:
        """Return a question that was open when the search was saved."""
        own = state["role"] == AGAIN
        return super().reopen(state) if own else self.inner.reopen(state)

    def finding(self) -> Doubted:
        """Return whether a value came out differently."""
        return Doubted(self.differs, asdict(self.inner.finding()))

    @property
    def standing(self) -> Standing:
        """What the search stands for; not exactly, once its value did not come again."""
        standing = self.inner.standing
        return Standing(standing.x, standing.values, standing.exact and not self.differs)
