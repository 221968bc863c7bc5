"""The member for deterministic functions: two searches share one point and race for the budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.auto.newton import ActiveBFGS
from scgd.auto.parabola import Parabolas
from scgd.auto.stage import Question, Stage
from scgd.estimators import Probes
from scgd.problem import Problem
from scgd.typing import Floats, Ints

__all__ = ["Descent"]

MOST_ACTIVE = 500
SCANNED = 0.55
"""Share of a short budget that may go into one difference per coordinate."""
COVERED = 1e-4
NOTHING = 1e-13
"""Relative decrease per evaluation below which both searches are stuck."""
MEMORY = (
    "turn", "spent", "n_chunks", "chunk_start", "chunk_end", "chunk_value", "budget", "finished",
)  # fmt: skip
VISIT = 6
"""Every so many chunks the slower search gets a turn."""


class Descent(Stage):
    r"""Sweep all coordinates with parabolas, then race parabolas against BFGS on the active ones.

    After the sweep the active set holds the coordinates whose slopes and curvatures explain nearly
    all of what f can change over its length scale. Chunks of the budget then go to the search with
    the larger decrease per evaluation, now and then to the other one: without noise such a race
    measures what it claims to. ``search`` names one of the two to run it alone after the sweep
    (``"parabola"`` or ``"bfgs"``).
    """

    def __init__(
        self, theta: Floats, length: Floats, error: float, budget: int, search: str = "descent"
    ) -> None:
        self.theta, self.length, self.error, self.budget = theta, length, error, budget
        self.search = search
        short = 3 * theta.size > 0.8 * budget
        n_scanned = min(theta.size, max(1, int(SCANNED * budget))) if short else 0
        self.parabolas = Parabolas(theta, length, n_scanned)
        self.newton: ActiveBFGS | None = None
        self.turn = "sweep"
        self.spent = self.n_chunks = 0
        self.chunk_end = 0
        self.chunk_value = float("nan")
        self.rates = [float("inf"), float("inf")]

    @property
    def arm(self) -> Stage:
        """The search whose turn it is."""
        if self.turn == "newton":
            assert self.newton is not None
            return self.newton
        return self.parabolas

    @property
    def value(self) -> float:
        """F at the current point."""
        if self.turn == "newton":
            assert self.newton is not None
            return self.newton.value
        return self.parabolas.value

    @property
    def n_points(self) -> int:  # type: ignore[override]
        """Evaluations of the next question."""
        return self.arm.n_points

    def probe(self, theta: Floats, problem: Problem, rng: np.random.Generator) -> Probes:
        """Let the search in turn ask."""
        return self.arm.probe(theta, problem, rng)

    def question(self, theta: Floats, problem: Problem, rng: np.random.Generator) -> Question:
        """Let the search in turn ask for single entries."""
        return self.arm.question(theta, problem, rng)

    @property
    def draws(self) -> bool:
        """Whether the search in turn draws random numbers."""
        return self.arm.draws

    def learn(self, values: Floats | None) -> None:
        """Let it learn, and pass the turn on when its chunk is spent."""
        self.spent += self.arm.n_points
        self.arm.learn(values)
        if self.turn == "sweep":
            if self.parabolas.swept and self.parabolas.n_points == 2:
                self._start_race()
        elif self.spent >= self.chunk_end or self._stalled():
            self._end_chunk()

    def _stalled(self) -> bool:
        return self.turn == "newton" and self.newton is not None and self.newton.stalled

    def _start_race(self) -> None:
        active = active_set(self.parabolas.slope, self.parabolas.bend, self.length)
        if len(active) and self.search != "parabola":
            bend = self.parabolas.bend[active]
            self.newton = ActiveBFGS(self.theta, self.length, active, bend, self.error)
        else:
            self.rates[0] = 0.0
        self.turn = "parabolas"
        self._next_chunk(self.parabolas.value)

    def _end_chunk(self) -> None:
        arm = 0 if self.turn == "newton" else 1
        value, used = self.value, self.spent - self.chunk_start
        self.rates[arm] = (self.chunk_value - value) / max(1, used)
        if self._stalled():
            self.rates[arm] *= 0.1
        if max(self.rates) <= NOTHING * abs(value):
            self.parabolas.lost, self.rates[1] = True, float("inf")
        self._next_chunk(value)

    def _next_chunk(self, value: float) -> None:
        """Give the next chunk to the better search, or to the other one when it is due."""
        self.n_chunks += 1
        newton = self.newton is not None and self.rates[0] >= self.rates[1]
        if self.newton is not None and self.n_chunks % VISIT == 0:
            newton = not newton
        newton = newton or (self.search == "bfgs" and self.newton is not None)
        self.chunk_start, self.chunk_value = self.spent, value
        if newton:
            assert self.newton is not None
            self.turn = "newton"
            self.newton.restart(value)
            length = max(0.03 * self.budget, 4 * len(self.newton.active) + 20)
        else:
            self.turn = "parabolas"
            self.parabolas.value = value
            length = max(0.02 * self.budget, 20)
        self.chunk_end = self.spent + int(length)

    chunk_start = 0

    def importance(self) -> Floats:
        """Return what each coordinate can change of f over its length scale."""
        return potential(self.parabolas.slope, self.parabolas.bend, self.length)

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        state: dict[str, Any] = {name: getattr(self, name) for name in MEMORY}
        state["rates"] = np.array(self.rates)
        state["parabolas"] = self.parabolas.state_dict()
        state["newton"] = None if self.newton is None else self.newton.state_dict()
        state["active"] = None if self.newton is None else self.newton.active
        state["active_bend"] = None if self.newton is None else self.newton.bend
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another descent."""
        for name in MEMORY:
            setattr(self, name, state[name])
        self.rates = state["rates"].tolist()
        self.parabolas.load_state_dict(state["parabolas"])
        if state["newton"] is not None:
            active, bend = state["active"], state["active_bend"]
            self.newton = ActiveBFGS(self.theta, self.length, active, bend, self.error)
            self.newton.load_state_dict(state["newton"])


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
