"""From a user's arguments to a run; ``minimize`` and ``Optimizer`` both come through here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from scgd.checks import count, flag
from scgd.constraints import Constraints, Merit, by_feasibility, constrained
from scgd.estimators import FirstOrder
from scgd.method import SCGD
from scgd.methods import METHODS, Method, Named, Ran, as_method, screens
from scgd.options import Failures, Rows
from scgd.problem import Known as Measurements
from scgd.problem import Problem, check_noise
from scgd.run.identity import Seed, identity
from scgd.run.interpreter import Interpreter
from scgd.run.ledger import Ledger
from scgd.run.run import Run
from scgd.samples import Samples
from scgd.spaces import Space
from scgd.strategies.asks import Along, Asking, Gradient, Report, Steps, Strategy, Wait
from scgd.strategies.budget import TOL, Budget
from scgd.strategies.fixed_method import run_method
from scgd.strategies.incumbent import with_incumbent
from scgd.trials import Known, check_known

__all__ = ["Built", "build", "checked", "choose_method", "ran"]

USES_NOISE = ("auto",)


@dataclass(frozen=True)
class Built:
    """A run and what it was made of."""

    run: Run
    seed: Seed
    method: Method
    problem: Problem
    samples: Samples
    known: Known
    constraints: Constraints | None = None

    def identity(self, args: tuple[Any, ...] = (), asynchronous: int = 0) -> dict[str, Any]:
        """Return what must match for the run to be resumed."""
        strategy = self.run.strategy
        return identity(
            self.problem, self.samples, self.seed, self.method, self.run.ledger.on_nonfinite, args,
            asynchronous, self.run.ledger.sign < 0, self.known, strategy.tol, strategy.max_stall,
            "none" if self.constraints is None else self.constraints.text,
        )  # fmt: skip


def build(
    x0: Any,
    method: Method,
    *,
    sample: Any = None,
    bounds: Any = None,
    scale: Any = None,
    noise: Any = None,
    max_evals: Any = None,
    seed: Any = None,
    failures: Any = "raise",
    tol: Any = TOL,
    max_stall: Any = None,
    first_order: bool = False,
    maximize: bool = False,
    known: Any = (),
    constraints: Any = (),
) -> Built:
    """Check the arguments and make a run of them."""
    noise = None if noise is None else check_noise(noise)
    if isinstance(x0, Space):
        problem = replace(x0.problem(bounds=bounds, scale=scale), noise=noise)
        check_discrete(x0, method)
    else:
        problem = Problem.check(x0, bounds, scale, noise)
    flag(maximize, "maximize")
    measured = check_known(known, problem, -1.0 if maximize else 1.0)
    if len(measured[1]):  # the best place that is known is where to start
        problem = replace(problem, x0=measured[0][np.argmin(measured[1])].copy())
    given = Constraints.check(constraints, problem)
    merit = None if given is None else Merit(given, problem.n_coords)
    problem = problem if given is None else given.free(problem)
    root = Seed(seed)
    rows = sample if isinstance(sample, Rows) else None
    drawn, size = (sample, 1) if rows is None else (rows.n, rows.batch_size)
    samples = Samples.check(drawn, size, root.sample_key)
    problem = replace(
        problem, sampled=samples.controlled, has_gradient=first_order, known=Measurements(*measured)
    )
    refuse_noise(problem, method)
    budget = None if max_evals is None else count(max_evals, "max_evals")
    ledger = Ledger(
        problem.n_coords, Failures.of(failures).nonfinite, repeats=not samples.controlled,
        maximize=maximize,
    )  # fmt: skip
    strategy = strategy_of(method)
    if merit is not None:
        continuous = problem.space is None or problem.space.continuous
        strategy = (constrained if continuous else by_feasibility)(strategy, merit)
    interpreter = Interpreter(
        strategy, problem, samples, root.searches, budget, tol=check_tol(tol),
        max_stall=None if max_stall is None else count(max_stall, "max_stall"),
        width=0 if merit is None else merit.size,
    )  # fmt: skip
    run = Run(interpreter, ledger, budget, merit)
    for x, value in zip(*measured, strict=True):
        run.know(x, value)
    return Built(run, root, method, problem, samples, measured, given)


def strategy_of(method: Method) -> Strategy:
    """Return the strategy of a method, which re-evaluates its best candidates at the end.

    A screening recommends no point.
    """
    if not isinstance(method, SCGD) and screens(method):
        return method.strategy
    if isinstance(method, SCGD):
        strategy = run_method(method)
    elif METHODS.get(method.name) is method:
        strategy = method.strategy
    else:
        strategy = partial(checked, method.strategy)
    return partial(with_incumbent, strategy)


def ran(built: Built) -> SCGD | Ran:
    """Return what really ran: SCGD, or the solvers of a strategy."""
    if isinstance(built.method, SCGD):
        return built.method
    strategy = built.run.strategy
    steps = None if strategy.engine is None else strategy.engine.method
    return Ran(built.method.name, tuple(strategy.ran.items()), steps)


def refuse_noise(problem: Problem, method: Method) -> None:
    """Refuse a known noise level where nothing uses it."""
    if problem.noise is None:
        return
    if problem.sampled:
        raise ValueError(
            "noise= is for independent noise; with sample= the sample is the noise: drop one of "
            "them"
        )
    if method.name not in USES_NOISE and METHODS.get(method.name) is method:
        raise ValueError(
            f"noise is used by method {' and '.join(USES_NOISE)}, not by {method.name!r}; drop it"
        )


def check_tol(tol: Any) -> float:
    """Return a share of what was gained."""
    known = isinstance(tol, int | float | np.number) and not isinstance(tol, bool)
    if not known or not 0 <= tol < 1:
        raise ValueError(f"tol must be a number from 0 (never stop early) to below 1, got {tol!r}")
    return float(tol)


def check_discrete(space: Space, method: Method) -> None:
    """Refuse a method that would round where a space has steps."""
    if not space.continuous and not (isinstance(method, Named) and method.discrete):
        able = [name for name, row in METHODS.items() if isinstance(row, Named) and row.discrete]
        raise ValueError(
            f"method {method.name!r} knows no whole numbers, choices or conditions; with this "
            f"Space use one of {able}"
        )


def choose_method(method: Any, jac: Any) -> Method:
    """Return the method, with exact derivatives where ``jac`` is given."""
    chosen = as_method(method)
    if isinstance(chosen, Named):
        if jac is not None and chosen.name in METHODS and chosen.name != "auto":
            raise ValueError(f"method {chosen.name!r} does not use jac; drop it, or choose another")
        return chosen
    exact = isinstance(chosen.estimator, FirstOrder)
    if jac is None:
        if exact:
            raise ValueError("estimator 'first-order' needs jac=, a function of (x, coords)")
        return chosen
    if not exact and chosen.estimator != SCGD().estimator:
        raise ValueError("jac and an estimator of differences exclude each other; drop one of them")
    return chosen.first_order()


def checked(
    strategy: Strategy, problem: Problem, budget: Budget, rng: np.random.Generator
) -> Asking:
    """Run a strategy; bring its points inside the bounds, or say what it should have yielded."""
    asking, sent = strategy(problem, budget, rng), None
    if not hasattr(asking, "send"):
        raise TypeError(
            "method must be a generator function, strategy(problem, budget, rng), which yields "
            f"points; got a function that returns {type(asking).__name__}"
        )
    while True:
        try:
            asked = asking.send(sent)
        except StopIteration as end:
            return end.value
        sent = yield points_of(asked, problem)


def points_of(asked: Any, problem: Problem) -> Any:
    """Return points as arrays inside the bounds; leave other things as they are."""
    if isinstance(asked, Steps | Wait | Gradient | Along | Report):
        return asked
    n = problem.n_coords
    try:
        points = np.array(asked, np.float64)
    except (TypeError, ValueError):
        points = np.empty(0)
    if points.ndim not in (1, 2, 3) or points.shape[-1] != n or points.size == 0:
        raise TypeError(
            f"a strategy must yield points of {n} coordinates (an array of shape ({n},), (m, {n}) "
            f"or (k, m, {n})), Along, Gradient, Steps, Report or Wait; got "
            f"{type(asked).__name__} of shape {np.shape(asked)}"
        )
    if not np.isfinite(points).all():
        raise ValueError("a strategy yielded a point that is not finite")
    return problem.clipped(points)
