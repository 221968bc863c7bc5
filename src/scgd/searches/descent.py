"""The member for deterministic functions: two searches share one point and race for the budget."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from scgd.problem import Problem
from scgd.questions import Point, Question
from scgd.searches.base import Relevance, Search, Standing
from scgd.searches.bfgs import ActiveBFGS
from scgd.searches.parabolas import Parabolas
from scgd.typing import Floats, Ints

__all__ = ["Descent"]

MOST_ACTIVE = 500
SCANNED = 0.55
"""Share of a short budget that may go into one difference per coordinate."""
COVERED = 1e-4
NOTHING = 1e-13
"""Relative decrease per evaluation below which both searches are stuck."""
LOOKED = 5
"""Evaluations per coordinate, without a gain since both searches were stuck, that end it."""
VISIT = 6
"""Every so many chunks the slower search gets a turn."""


class Descent(Search):
    r"""Sweep all coordinates with parabolas, then race parabolas against BFGS on the active ones.

    After the sweep the active set holds the coordinates whose slopes and curvatures explain nearly
    all of what f can change over its length scale. Chunks of the budget then go to the search with
    the larger decrease per evaluation, now and then to the other one: without noise such a race
    measures what it claims to. ``only`` names one of the two to run it alone after the sweep.

    Parameters
    ----------
    problem, point
        What is known, and where to start.
    rng
        Where the order of coordinates comes from.
    length, error
        The length scale of each coordinate and the size of rounding errors of f.
    budget
        Evaluations to plan for.
    only
        ``"parabolas"`` or ``"bfgs"``; empty for both.
    tol
        The share of the gain so far that counts as nothing: it ends when the decrease predicted for
        five evaluations per coordinate is smaller, and as many with wide radii brought no more.
    """

    name: ClassVar[str] = "descent"
    memory: ClassVar[tuple[str, ...]] = (
        "turn", "n_chunks", "chunk_start", "chunk_end", "chunk_value", "budget", "rates",
        "parabolas", "first", "stuck_since", "stuck_value",
    )  # fmt: skip

    def __init__(
        self,
        problem: Problem,
        point: Point,
        rng: np.random.Generator,
        length: Floats,
        error: float,
        budget: int,
        only: str = "",
        *,
        tol: float = 0.0,
    ) -> None:
        super().__init__(point)
        self.problem, self.length, self.error = problem, length, error
        self.budget, self.only, self.tol = budget, only, tol
        self.first = self.stuck_value = float("nan")
        self.stuck_since = -1
        n = problem.n_coords
        short = 3 * n > 0.8 * budget
        n_scanned = min(n, max(1, int(SCANNED * budget))) if short else 0
        self.parabolas = Parabolas(problem, point, rng, length, n_scanned)
        self.newton: ActiveBFGS | None = None
        self.turn = "sweep"
        self.n_chunks = self.chunk_start = self.chunk_end = 0
        self.chunk_value = float("nan")
        self.rates = [float("inf"), float("inf")]
        self.reported = 0

    @property
    def arm(self) -> ActiveBFGS | Parabolas:
        """The search whose turn it is."""
        if self.turn == "newton":
            assert self.newton is not None
            return self.newton
        return self.parabolas

    @property
    def member(self) -> str:
        """The search whose turn it is, by name."""
        return self.arm.name

    @property
    def cost(self) -> int:
        """Evaluations of the next question."""
        return self.arm.cost

    def ask(self) -> Question | None:
        """Let the search in turn ask."""
        return self.arm.pose()

    def tell(self, question: Question, values: Floats) -> None:
        """Let it learn, and pass the turn on when its chunk is spent."""
        self.arm.take(question, values)
        self.first = self.first if self.n_evals > 1 else self.arm.value
        if self.n_evals - self.reported >= self.problem.n_coords**0.5:
            self.reported = self.n_evals
            self.report(self.arm.value)
        if self.turn == "sweep":
            if self.parabolas.swept and self.parabolas.n_points == 2:
                self._start_race()
        elif self.n_evals >= self.chunk_end or self._stalled():
            self._end_chunk()

    def _stalled(self) -> bool:
        return self.turn == "newton" and self.newton is not None and self.newton.stalled

    def _start_race(self) -> None:
        active = active_set(self.parabolas.slope, self.parabolas.bend, self.length)
        if len(active) and self.only != "parabolas":
            self.newton = self._newton(active, self.parabolas.bend[active])
        else:
            self.rates[0] = 0.0
        self.turn = "parabolas"
        self._next_chunk(self.parabolas.value)

    def _newton(self, active: Ints, bend: Floats) -> ActiveBFGS:
        leash = self.parabolas.leash
        return ActiveBFGS(self.problem, self.point, self.length, active, bend, self.error, leash)

    def _end_chunk(self) -> None:
        arm = 0 if self.turn == "newton" else 1
        value, used = self.arm.value, self.n_evals - self.chunk_start
        self.rates[arm] = (self.chunk_value - value) / max(1, used)
        if self._stalled():
            self.rates[arm] *= 0.1
        worth = self.tol * max(0.0, self.first - value) / (LOOKED * self.problem.n_coords)
        alone = self.only == "bfgs" and self.newton is not None
        if max(self.rates[: 1 if alone else 2]) <= max(NOTHING * abs(value), worth):
            self.parabolas.lost, self.rates[1] = True, float("inf")
            self._judge_end(value)
        self._next_chunk(value)

    def _judge_end(self, value: float) -> None:
        """End where wide radii brought nothing either; note since when both are stuck."""
        gained = self.stuck_value - value > self.tol * (self.first - value)
        if self.stuck_since < 0 or gained:
            self.stuck_since, self.stuck_value = self.n_evals, value
        long = self.n_evals - self.stuck_since >= LOOKED * self.problem.n_coords
        self.finished = self.tol > 0 and long

    def _next_chunk(self, value: float) -> None:
        """Give the next chunk to the better search, or to the other one when it is due."""
        self.n_chunks += 1
        newton = self.newton is not None and self.rates[0] >= self.rates[1]
        if self.newton is not None and self.n_chunks % VISIT == 0:
            newton = not newton
        newton = newton or (self.only == "bfgs" and self.newton is not None)
        self.chunk_start, self.chunk_value = self.n_evals, value
        if newton:
            assert self.newton is not None
            self.turn = "newton"
            self.newton.restart(value)
            length = max(0.03 * self.budget, 4 * len(self.newton.support) + 20)
        else:
            self.turn = "parabolas"
            self.parabolas.value = value
            length = max(0.02 * self.budget, 20)
        self.chunk_end = self.n_evals + int(length)

    def extend(self, budget: int | None) -> None:
        """Plan for another number of evaluations."""
        if budget is not None:
            self.budget = budget

    @property
    def standing(self) -> Standing:
        """The point and f there."""
        return self.arm.standing

    @property
    def level(self) -> float:
        """F at the point."""
        return self.arm.value

    @property
    def weights(self) -> Floats | None:
        """What each coordinate can change of f over its length scale, as shares."""
        reach = potential(self.parabolas.slope, self.parabolas.bend, self.length)
        total = float(np.sum(reach))
        return reach / total if 0 < total < np.inf else None

    @property
    def relevance(self) -> Relevance | None:
        """The shares; errors are NaN after one look, infinite where there was none."""
        if self.weights is None:
            return None
        looked = np.isfinite(self.parabolas.slope)
        return self.weights, np.where(looked, np.nan, np.inf)

    @property
    def farthest(self) -> float:
        """How far from x0 it has looked."""
        return self.parabolas.leash.farthest

    @property
    def members(self) -> dict[str, int]:
        """The evaluations of both searches."""
        newton = 0 if self.newton is None else self.newton.n_evals
        return {"parabolas": self.parabolas.n_evals, "bfgs": newton}

    @property
    def sentence(self) -> str:
        """What ran."""
        newton = 0 if self.newton is None else self.newton.n_evals
        return f"parabolas along coordinates ({self.parabolas.n_evals}), BFGS ({newton})"

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        state = {**super().state_dict(), "reported": self.reported}
        newton = self.newton
        state["newton"] = None if newton is None else newton.state_dict()
        state["active"] = None if newton is None else newton.support
        state["active_bend"] = None if newton is None else newton.bend
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another descent."""
        if state["newton"] is not None:
            active = state["active"]
            if np.any((active < 0) | (active >= self.problem.n_coords)):
                raise ValueError("active coordinates are out of range")
            self.newton = self._newton(active, state["active_bend"])
            self.newton.load_state_dict(state["newton"])
        super().load_state_dict(state)
        self.reported = int(state["reported"])
        if self.turn not in ("sweep", "parabolas", "newton"):
            raise ValueError(f"a descent cannot be at {self.turn!r}")


def potential(slope: Floats, bend: Floats, length: Floats) -> Floats:
    """Return the change of f over the length scale of each coordinate; 0 where nothing was seen."""
    curved = 0.5 * np.where(np.isfinite(bend), np.abs(bend), 0.0) * length**2
    return np.where(np.isfinite(slope), np.abs(slope), 0.0) * length + curved


def active_set(slope: Floats, bend: Floats, length: Floats) -> Ints:
    """Return the coordinates that explain nearly all of the change of f over its length scale."""
    reach = potential(slope, bend, length)
    order = np.argsort(-reach, kind="stable")
    covered = np.cumsum(reach[order])
    if not covered[-1] > 0:
        return np.empty(0, np.int64)
    n = int(np.searchsorted(covered, (1 - COVERED) * covered[-1])) + 1
    n = min(max(n, 2), MOST_ACTIVE, int(np.count_nonzero(reach)))
    return np.sort(order[:n])
