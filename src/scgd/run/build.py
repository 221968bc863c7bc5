"""From a user's arguments to a run; both front doors come through here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scgd.checks import count, flag
from scgd.constraints import Constraints, Merit, constrained
from scgd.estimators import FirstOrder
from scgd.plans import METHODS, TOL, Ground, Method, Plan, Planned, as_method, story_of
from scgd.policies import Musketeer
from scgd.problem import Problem, check_noise
from scgd.recipes import RECIPES, Recipe
from scgd.run.identity import identity
from scgd.run.ledger import Ledger
from scgd.run.run import Run
from scgd.run.seeds import Seed
from scgd.samples import Samples
from scgd.spaces import Space
from scgd.steps import SGD
from scgd.theory import known as is_known
from scgd.theory import warn_if_violated
from scgd.trials import Earlier, check_earlier

__all__ = ["Built", "build", "choose_method"]


USES_NOISE = ("auto", "noisy")


@dataclass(frozen=True)
class Built:
    """A run and what it was made of."""

    run: Run
    seed: Seed
    method: Method
    problem: Problem
    samples: Samples
    earlier: Earlier
    constraints: Constraints | None = None

    def identity(self, args: tuple[Any, ...] = (), asynchronous: int = 0) -> dict[str, Any]:
        """Return what must match for the run to be taken up."""
        return identity(
            self.problem, self.samples, self.seed, self.method, self.run.ledger.on_nonfinite, args,
            asynchronous, self.run.ledger.sign < 0, self.earlier, self.run.plan.ground.tol,
            self.run.plan.ground.patience,
            "none" if self.constraints is None else self.constraints.text,
        )  # fmt: skip


def build(
    x0: Any,
    method: Method,
    *,
    sample: Any = None,
    batch_size: Any = 1,
    bounds: Any = None,
    scale: Any = None,
    noise: Any = None,
    max_evals: Any = None,
    seed: Any = None,
    on_nonfinite: str = "raise",
    tol: Any = TOL,
    patience: Any = None,
    asks: bool = False,
    first_order: bool = False,
    maximize: bool = False,
    earlier: Any = (),
    constraints: Any = (),
) -> Built:
    """Check the arguments and make a run of them."""
    noise = None if noise is None else check_noise(noise)
    if isinstance(x0, Space):
        problem = replace(x0.problem(bounds=bounds, scale=scale), noise=noise)
        check_steps(x0, method)
        if np.size(constraints):
            raise ValueError(
                "constraints are over coordinates, which a Space hides; return a penalty or NaN "
                "from fun instead"
            )
    else:
        problem = Problem.check(x0, bounds, scale, noise)
    flag(maximize, "maximize")
    known = check_earlier(earlier, problem, -1.0 if maximize else 1.0)
    if len(known[1]):  # the best place that is known is where to start
        problem = replace(problem, x0=known[0][np.argmin(known[1])].copy())
    given = Constraints.check(constraints, problem)
    merit = None if given is None else Merit(given, problem.n_coords)
    problem = problem if given is None else given.free(problem)
    root = Seed(seed)
    samples = Samples.check(sample, batch_size, root.sample_key)
    refuse_noise(problem, method, samples)
    budget = None if max_evals is None else count(max_evals, "max_evals")
    repeats = not samples.controlled
    ledger = Ledger(problem.n_coords, on_nonfinite, repeats=repeats, maximize=maximize)
    ground = Ground(
        problem, samples, root.searches, budget, tol=check_tol(tol),
        patience=None if patience is None else count(patience, "patience"), asks=asks,
        first_order=first_order, recipe=isinstance(method, Recipe),
    )  # fmt: skip
    ground.earlier = known
    story = story_of(method) if merit is None else constrained(story_of(method), merit)
    run = Run(Plan(story, ground), ledger, budget, merit)
    for x, value in zip(*known, strict=True):
        run.know(x, value)
    return Built(run, root, method, problem, samples, known, given)


def refuse_noise(problem: Problem, method: Method, samples: Samples) -> None:
    """Refuse a known noise where nobody would use it."""
    if problem.noise is None:
        return
    if samples.controlled:
        raise ValueError(
            "noise= is for noise that nobody controls; with sample= the sample is the noise: "
            "drop one of them"
        )
    if not isinstance(method, Planned) or method.name not in USES_NOISE:
        raise ValueError(
            f"noise is used by method {' and '.join(USES_NOISE)}, not by {method.name!r}; drop it"
        )


def check_tol(tol: Any) -> float:
    """Return a share of what was gained."""
    known = isinstance(tol, int | float | np.number) and not isinstance(tol, bool)
    if not known or not 0 <= tol < 1:
        raise ValueError(f"tol must be a number from 0 (never stop early) to below 1, got {tol!r}")
    return float(tol)


def check_steps(space: Space, method: Method) -> None:
    """Refuse a method that would round where a space has steps."""
    if not space.continuous and not (isinstance(method, Planned) and method.knows_steps):
        able = [name for name, row in METHODS.items() if getattr(row, "knows_steps", False)]
        raise ValueError(
            f"method {getattr(method, 'name', 'given')!r} knows no whole numbers, choices or "
            f"conditions; with this Space use one of {able} and replace none of its parts"
        )


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
    own = is_known(mixing) and mixing != Musketeer().mixing
    warn_if_violated(
        rate if is_known(rate) else None,
        mixing if own else None,
        radius if is_known(radius) else None,
    )
