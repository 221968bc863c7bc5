"""From a user's arguments to a run; both front doors come through here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scgd.estimators import FirstOrder
from scgd.plans import METHODS, Ground, Method, Plan, Planned, as_method, story_of
from scgd.policies import Musketeer
from scgd.problem import Problem, count
from scgd.recipes import RECIPES, Recipe
from scgd.run.identity import identity
from scgd.run.ledger import Ledger
from scgd.run.run import Run
from scgd.run.seeds import Seed
from scgd.samples import Samples
from scgd.spaces import Space
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
            asynchronous, self.run.ledger.sign < 0,
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
    maximize: bool = False,
) -> Built:
    """Check the arguments and make a run of them."""
    if isinstance(x0, Space):
        problem = x0.problem(bounds=bounds, scale=scale)
        check_steps(x0, method)
    else:
        problem = Problem.check(x0, bounds, scale)
    root = Seed(seed)
    samples = Samples.check(sample, batch_size, root.sample_key)
    budget = None if max_evals is None else count(max_evals, "max_evals")
    check_flag(maximize, "maximize")
    repeats = not samples.controlled
    ledger = Ledger(problem.n_coords, on_nonfinite, repeats=repeats, maximize=maximize)
    ground = Ground(problem, samples, root.searches, budget)
    run = Run(Plan(story_of(method), ground), ledger, budget)
    return Built(run, root, method, problem, samples)


def check_flag(value: Any, name: str) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")


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
    if isinstance(chosen, Planned) and (given or jac is not None):
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
