"""Several steps under way at a time, for evaluations that are slow and take uneven time.

A step is asked at the point reached so far and moves the point that is there when its last value
arrives, with gradients that are a few steps old. The trajectory is a function of the seed, the
number of evaluations under way and the order in which values are accepted; that order is recorded,
so any run can be replayed, and together with the values it is the whole checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.checkpoint import CheckpointError
from scgd.estimators import Probes
from scgd.optimizer import Optimizer
from scgd.problem import count
from scgd.typing import Ints
from scgd.workers import Evaluator

__all__ = ["Events", "Flights"]


@dataclass(frozen=True)
class Events:
    """What happened in an asynchronous run.

    Parameters
    ----------
    limit
        How many evaluations were kept under way.
    order
        The numbers of the evaluations in the order in which their values were accepted.
    """

    limit: int
    order: Ints


class Flights:
    """The steps under way of an optimizer.

    Parameters
    ----------
    opt
        A fresh optimizer.
    plan
        How many evaluations to keep under way, or the :class:`Events` of a run to be replayed.
    """

    def __init__(self, opt: Optimizer, plan: int | Events) -> None:
        self.opt = opt
        self.replay = plan.order.tolist() if isinstance(plan, Events) else None
        self.limit = plan.limit if isinstance(plan, Events) else count(plan, "asynchronous")
        self._check()
        opt.sampler.ahead = True
        self.n_launched = 0
        self.order: list[int] = []
        self.values: list[Any] = []
        self.steps: dict[int, tuple[Probes, dict[int, Any]]] = {}
        self.landed: dict[int, Any] = {}

    def _check(self) -> None:
        opt = self.opt
        if opt.policy.needs_gradient or opt.recipe.adaptive:
            name = "method 'auto'" if opt.recipe.adaptive else f"policy {opt.policy!r}"
            raise ValueError(f"{name} cannot be asynchronous; pass method='musketeer', for example")
        if self.limit < opt.step_cost:
            raise ValueError(
                f"asynchronous must be at least the {opt.step_cost} evaluations of a step, "
                f"got {self.limit}"
            )

    @property
    def events(self) -> Events:
        """What happened so far."""
        return Events(self.limit, np.array(self.order, np.int64))

    @property
    def n_flying(self) -> int:
        """Evaluations under way."""
        return self.n_launched - len(self.order)

    @property
    def done(self) -> bool:
        """Whether nothing is under way and the budget does not pay for another step."""
        return not self.steps and not self._affordable()

    def _affordable(self) -> bool:
        opt = self.opt
        cost = opt.stage.n_points if opt.stage else opt.step_cost
        spent = self.n_launched + opt.reserve
        return opt.max_evals is None or spent + cost <= opt.max_evals

    def launch(self) -> Probes | None:
        """Return the evaluations of one more step, at a copy of the point; None if all fly."""
        opt = self.opt
        if not self._affordable():
            return None
        if self.steps and (opt.stage or self.n_flying + opt.step_cost > self.limit):
            return None
        probes = opt._next_probes()
        probes.theta = opt.theta.copy()
        probes.ids = np.arange(self.n_launched, self.n_launched + len(probes))
        values: dict[int, Any] = {}
        self.steps.update(dict.fromkeys(probes.ids.tolist(), (probes, values)))
        self.n_launched += len(probes)
        opt.ahead += opt.stage is None
        return probes

    def accept(self, number: int, value: Any) -> None:
        """Take a value; the last one of a step makes its move."""
        probes, values = self.steps.pop(number)
        values[number] = value
        self.order.append(number)
        self.values.append(value)
        if len(values) == len(probes):
            self._land(probes, [values[i] for i in probes.ids.tolist()])

    def _land(self, probes: Probes, values: list[Any]) -> None:
        opt = self.opt
        opt._values, opt._answered = values, np.ones(len(values), bool)
        if opt.stage is None:
            assert probes.probs is not None
            opt.sampler.place(probes.support, probes.probs)
            opt.ahead -= 1
        opt._finish(probes)

    def pilot(self, evaluate: Evaluator) -> Callable[[], None]:
        """Return what accepts one value and keeps the rest flying."""
        for probes in {id(step[0]): step[0] for step in self.steps.values()}.values():
            evaluate.submit(probes)

        def advance() -> None:
            while (probes := self.launch()) is not None:
                evaluate.submit(probes)
            while (ready := self._next()) is None:
                for number, value in evaluate.arrived():
                    if number in self.steps:
                        self.landed[number] = value
            self.accept(ready, self.landed.pop(ready))

        return advance

    def _next(self) -> int | None:
        """Return the number of the value to accept next, if it is there."""
        if self.replay is not None and len(self.order) < len(self.replay):
            wanted = self.replay[len(self.order)]
            return wanted if wanted in self.landed else None
        return next(iter(self.landed), None)

    def state_dict(self) -> dict[str, Any]:
        """Return the events and their values, from which everything else follows."""
        opt = self.opt
        return {
            "order": np.array(self.order, np.int64),
            "values": np.array(self.values, np.float64),
            "entropy": str(opt.entropy),
            "max_evals": opt.max_evals,
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Do again what a saved run did, with its values instead of evaluations."""
        try:
            if state["entropy"] != str(self.opt.entropy):
                raise ValueError("its seed is another; pass seed= to resume an asynchronous run")
            if state["max_evals"] != self.opt.max_evals:
                raise ValueError(f"its max_evals is {state['max_evals']}")
            for number, value in zip(state["order"].tolist(), state["values"], strict=True):
                while self.launch() is not None:
                    pass
                self.accept(number, value)
        except Exception as error:  # a state from elsewhere can make its readers raise anything
            raise CheckpointError(
                f"the checkpoint does not fit this run ({type(error).__name__}: {error}); delete "
                "it to start afresh"
            ) from None
