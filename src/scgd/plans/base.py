"""A plan is a search made of searches, written from top to bottom.

A story is a generator: it yields a search, which then runs until it is finished, and it is sent
what that search found, a few numbers. The plan keeps the findings. To take up a saved run it tells
the story the same findings again, which costs microseconds and no evaluations, and then loads the
state of the search in progress. For this a story may decide by findings, budget and evaluations
spent alone; arrays that outlive a search are put in the care of the :class:`Ground`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from scgd.plans.ground import TOL, Ground
from scgd.questions import Question
from scgd.searches import Finding, Relevance, Search, Standing, Stepping
from scgd.typing import Floats

__all__ = ["TOL", "Ground", "Plan", "Story", "Telling"]

Telling = Generator[Search, Any, None]
Story = Callable[[Ground], Telling]


class Plan(Search):
    """Run the searches of a story one after the other.

    Parameters
    ----------
    story
        What follows what.
    ground
        What it stands on.
    """

    name: ClassVar[str] = "plan"
    sequential: ClassVar[bool] = False

    def __init__(self, story: Story, ground: Ground) -> None:
        super().__init__(ground.point)
        self.story, self.ground, self.total = story, ground, ground.total
        self.first_total = ground.total  # under which the story began
        self._tell_from_start([])

    # ---- the story -------------------------------------------------------------------------------

    def _tell_from_start(self, log: list[dict[str, Any]]) -> None:
        """Tell the story what was found; the search that it yields then is the current one."""
        self.log: list[dict[str, Any]] = []
        self.ran: dict[str, int] = {}
        self.known: Relevance | None = None  # what the last search knew that knew what matters
        self.far = 0.0
        self.past = 0  # questions answered before the current search
        self.seen: Floats = np.empty(0)  # what the last search saw that saw anything of the point
        self.finished, self.n_evals = False, 0
        self.ground.begin()
        self.ground.total = self.first_total
        self.ground.silent = bool(log)
        self.telling = self.story(self.ground)
        self._begin(next(self.telling))
        for entry in log:
            if self.finished:
                raise ValueError("the story goes on after its end")
            self.n_evals = entry["spent"]
            self.ground.total = entry["total"]
            self._send(self.current.found(**entry["found"]))
        self.ground.silent = False

    def _begin(self, search: Search) -> None:
        self.current = search
        if search.lane == 0:
            self.ground.n_lanes += 1
            search.lane = self.ground.n_lanes
        self.began, self.before = self.n_evals, self.n_evals - search.n_evals
        self.past -= search.n_posed

    def _send(self, found: Finding) -> None:
        """Tell the story a finding, and what has been spent of what budget."""
        total, spent, name = self.ground.total, self.n_evals, self.current.name
        self.log.append({"found": asdict(found), "total": total, "spent": spent})
        for member, n in (self.current.members or {name: spent - self.began}).items():
            self.ran[member] = self.ran.get(member, 0) + n
        self.known = self.current.relevance or self.known
        self.far = max(self.far, self.current.farthest)
        self.ground.spent = spent
        self.past += self.current.n_posed
        values = self.current.standing.values
        self.seen = values.copy() if np.isfinite(values).any() else self.seen
        try:
            self._begin(self.telling.send(found))
        except StopIteration:
            self.finished = True

    def settle(self) -> None:
        """Take note of what the current search did, and go on where it has finished."""
        self.current.settle()
        self.n_evals = self.before + self.current.n_evals
        for n_evals, value in self.current.journal:
            self.journal.append((self.before + n_evals, value))
        self.current.journal.clear()
        while self.current.finished and not self.finished:
            self.ground.total = self.total
            self._send(self.current.finding())

    def extend(self, budget: int | None) -> None:
        """Plan for so many evaluations in all from now on."""
        self.total = budget
        self.current.extend(None if budget is None else budget - self.before)
        self.settle()

    # ---- what the current search does ------------------------------------------------------------

    @property
    def active(self) -> Search:
        """The search that asks next."""
        return self.current.active

    @property
    def cost(self) -> int:
        """Evaluations of the next question."""
        return self.current.cost

    def ask(self) -> Question | None:
        """Let the current search ask."""
        self.current.room = self.room
        question = self.current.pose()
        if question is not None:
            self.far = max(self.far, self.ground.problem.away(*question.set_entries))
        return question

    def tell(self, question: Question, values: Floats) -> None:
        """Let it learn, and go on where it has finished."""
        self.current.take(question, values)
        self.settle()

    def reopen(self, state: dict[str, Any]) -> Question:
        """Return a question that was open when the search was saved."""
        return self.current.reopen(state)

    @property
    def n_steps(self) -> int:
        """Questions answered, steps of a body among them."""
        return self.past if self.finished else self.past + self.current.n_posed - self.n_open

    @property
    def level(self) -> float:
        """The value that the current search has reached."""
        return self.current.level

    @property
    def reached(self) -> Standing:
        """Where the current search is."""
        return self.current.reached

    @property
    def standing(self) -> Standing:
        """Where it is; in the middle of a guarded leg only if the leg fell.

        Nobody has compared the point with where the leg began: what the leg saw first and last
        must do, and unless it fell the leg counts for nothing.
        """
        ground, leg = self.ground, self.ground.live.get("leg")
        if not ground.guarded or ground.kept is None or not isinstance(leg, Stepping):
            standing = self.current.standing
            known = np.isfinite(standing.values).any()
            return standing if known else Standing(standing.x, self.seen)
        if leg.finding().fell:
            return leg.standing
        return Standing(ground.kept["x"], np.array(leg.firsts) if leg.firsts else self.seen)

    @property
    def start(self) -> Floats:
        """Where the run began."""
        return self.ground.problem.x0

    @property
    def weights(self) -> Floats | None:
        """What is known of the coordinates' shares."""
        known = self.ground.arrays.get("importance")
        if known is not None and 0 < (total := float(known.sum())) < np.inf:
            return known / total
        if (law := self.ground.mean_law) is not None:
            return law[0]
        own, relevance = self.current.weights, self.relevance
        return own if own is not None or relevance is None else relevance[0]

    @property
    def relevance(self) -> Relevance | None:
        """What share each coordinate has in the changes of f; None where nothing can be said."""
        return self.current.relevance or self.known or self.ground.mean_law

    @property
    def farthest(self) -> float:
        """How far from x0 it has looked, in units of the problem's scale."""
        return max(self.far, self.current.farthest)

    @property
    def members(self) -> dict[str, int]:
        """What ran, and for how many evaluations."""
        ran, current = dict(self.ran), self.current
        if not self.finished and self.n_evals > self.began:
            now = current.members or {current.name: self.n_evals - self.began}
            for member, n in now.items():
                ran[member] = ran.get(member, 0) + n
            out = self.n_evals - sum(ran.values())  # told, but not yet put to use
            if out:
                ran[current.name] = ran.get(current.name, 0) + out
        return {member: n for member, n in ran.items() if n}

    @property
    def scale(self) -> Floats:
        """The unit of each coordinate that steps go by."""
        leg = self.ground.live.get("leg")
        return leg.scale if isinstance(leg, Stepping) else self.ground.problem.unit

    @property
    def sentence(self) -> str:
        """What was found, and what ran for how many evaluations."""
        parts = ", ".join(f"{name} {n}" for name, n in self.members.items())
        ground = self.ground
        looked = f" Looked up to {ground.size(self.farthest)} away from x0." * ground.looks
        return f"{ground.sentence}{looked} Evaluations: {parts or 'none'}.".strip()

    # ---- state -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        ground = self.ground
        return {
            **super().state_dict(),
            "total": self.total,
            "first_total": self.first_total,
            "past": self.past,
            "seen": self.seen,
            "ran": dict(self.ran),
            "known": None if self.known is None else np.stack(self.known),
            "far": self.farthest,
            "log": {str(i): entry for i, entry in enumerate(self.log)},
            "x": self.point.x.copy(),
            "kept": ground.kept,
            "arrays": {name: array.copy() for name, array in ground.arrays.items()},
            "live": {name: search.state_dict() for name, search in ground.live.items()},
            "current": None if self._lives else self.current.state_dict(),
        }

    def _shares(self, saved: Any) -> Relevance:
        if np.shape(saved) != (2, self.ground.problem.n_coords):
            raise ValueError("what is known is not a share and an error per coordinate")
        shares, errors = saved
        return shares, errors

    @property
    def _lives(self) -> bool:
        return self.current in self.ground.live.values()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Tell the story what was found, then take up the search in progress."""
        self.first_total = state["first_total"]
        self._tell_from_start([state["log"][str(i)] for i in range(len(state["log"]))])
        super().load_state_dict(state)
        self.total, self.past, self.seen = state["total"], int(state["past"]), state["seen"]
        self.ran = {name: int(n) for name, n in state["ran"].items()}
        self.known = None if state["known"] is None else self._shares(state["known"])
        self.far = float(state["far"])
        ground = self.ground
        if (
            ground.live.keys() != state["live"].keys()
            or ground.arrays.keys() != state["arrays"].keys()
        ):
            raise ValueError("the story of this checkpoint is another one")
        ground.kept = state["kept"]
        for name, array in ground.arrays.items():
            array[...] = state["arrays"][name]
        for name, search in ground.live.items():
            search.load_state_dict(state["live"][name])
        if not self._lives:
            self.current.load_state_dict(state["current"])
        x = state["x"]
        fits = isinstance(x, np.ndarray) and x.shape == self.point.x.shape
        if not fits or not np.isfinite(x).all():
            raise ValueError("x is not a point of this problem")
        self.point.put(x)
        self.before = self.n_evals - self.current.n_evals
