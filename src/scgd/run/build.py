"""From a user's arguments to a run; both front doors come through here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.estimators import FirstOrder
from scgd.plans import TOL, Ground, Method, Plan, Planned, as_method, story_of
from scgd.policies import Musketeer
from scgd.problem import Problem, count
from scgd.recipes import RECIPES, Recipe
from scgd.run.identity import identity
from scgd.run.ledger import Ledger
from scgd.run.run import Run
from scgd.run.seeds import Seed
from scgd.samples import Samples
from scgd.steps import SGD
from scgd.theory import known, warn_if_violated

__all__ = ["Built", "build", "choose_method"]


@dataclass(frozen=True)
class Built:
    """A run and what it was made of."""

    run: Run
    seed: Seed
    method: Method
    problem: Problem
    samples: Samples

    def identity(self, args: tuple[Any, ...] = (), asynchronous: int = 0) -> dict[str, Any]:
        """Return what must match for the run to be taken up."""
        return identity(
            self.problem, self.samples, self.seed, self.method, self.run.ledger.on_nonfinite, args,
            asynchronous, self.run.plan.ground.tol, self.run.plan.ground.patience,
        )  # fmt: skip


def build(
    x0: Any,
    method: Method,
    *,
    sample: Any = None,
    batch_size: Any = 1,
    bounds: Any = None,
    scale: Any = None,
    max_evals: Any = None,
    seed: Any = None,
    on_nonfinite: str = "raise",
    tol: Any = TOL,
    patience: Any = None,
    asks: bool = False,
    first_order: bool = False,
) -> Built:
    """Check the arguments and make a run of them."""
    problem = Problem.check(x0, bounds, scale)
    root = Seed(seed)
    samples = Samples.check(sample, batch_size, root.sample_key)
    budget = None if max_evals is None else count(max_evals, "max_evals")
    ledger = Ledger(problem.n_coords, on_nonfinite, repeats=not samples.controlled)
    ground = Ground(
        problem, samples, root.searches, budget, tol=check_tol(tol),
        patience=None if patience is None else count(patience, "patience"), asks=asks,
        first_order=first_order,
    )  # fmt: skip
    run = Run(Plan(story_of(method), ground), ledger, budget)
    return Built(run, root, method, problem, samples)


def check_tol(tol: Any) -> float:
    """Return a share of what was gained."""
    known = isinstance(tol, int | float | np.number) and not isinstance(tol, bool)
    if not known or not 0 <= tol < 1:
        raise ValueError(f"tol must be a number from 0 (never stop early) to below 1, got {tol!r}")
    return float(tol)


def choose_method(method: Any, jac: Any, parts: dict[str, Any]) -> Method:
    """Return the method with the parts that the user gave replaced.

    Where parts of a method that chooses its own are given, they replace those of ``"musketeer"``.
    """
    chosen = as_method(method)
    given = {name: value for name, value in parts.items() if value is not None}
    if isinstance(chosen, Planned) and jac is not None and chosen.name != "auto":
        raise ValueError(f"method {chosen.name!r} does not use jac; drop it, or choose another")
    if isinstance(chosen, Planned) and given:
        chosen = RECIPES["musketeer"]
    if isinstance(chosen, Planned):
        return chosen
    chosen = chosen.override(**given)
    warn_of_theory(chosen, given)
    exact = isinstance(chosen.estimator, FirstOrder)
    if jac is None:
        if exact:
            raise ValueError("estimator 'first-order' needs jac=, a function of (x, coords)")
        return chosen
    if "estimator" in given and not exact:
        raise ValueError("jac and an estimator of differences exclude each other; drop one of them")
    return chosen.first_order()


def warn_of_theory(recipe: Recipe, given: dict[str, Any]) -> None:
    """Warn where plain steps under schedules of a known form leave what the theorems cover."""
    if not isinstance(recipe.step, SGD):
        return
    rate, radius, policy = (given.get(name) for name in ("learning_rate", "radius", "policy"))
    mixing = policy.mixing if isinstance(policy, Musketeer) else None
    own = known(mixing) and mixing != Musketeer().mixing
    warn_if_violated(
        rate if known(rate) else None, mixing if own else None, radius if known(radius) else None
    )
