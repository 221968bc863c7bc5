"""From a user's arguments to a run; ``minimize`` and ``Optimizer`` both come through here."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from scgd.checks import count, flag, natural, shown, whole
from scgd.constraints import Constraints, Merit, by_feasibility, constrained
from scgd.history import History
from scgd.method import SCGD
from scgd.methods import METHODS, Method, Named, as_method
from scgd.options import Failures, Rows
from scgd.problem import Known, Problem, check_noise
from scgd.run.interpreter import Interpreter
from scgd.run.ledger import Best, Ledger
from scgd.run.run import Run
from scgd.samples import NO_SAMPLES, Samples
from scgd.spaces import Space
from scgd.strategies.asks import Along, Asking, Gradient, Report, Steps, Strategy, Wait
from scgd.strategies.budget import TOL, Budget
from scgd.strategies.fixed_method import run_method
from scgd.strategies.incumbent import with_incumbent
from scgd.strategies.screening import Screen
from scgd.trials import check_known
from scgd.typing import Array

USES_NOISE = ("auto",)
SAMPLES = 1
"""Which child of the seed samples draw from; strategies draw from the first."""


class Seed:
    """The seed of a run.

    Parameters
    ----------
    seed
        None, a whole number, a sequence of them, or a ``SeedSequence`` (which is not advanced).

    Examples
    --------
    >>> Seed(7).text
    '7 []'
    """

    def __init__(self, seed: Any = None) -> None:
        self.given = seed is not None
        if not isinstance(seed, np.random.SeedSequence):
            if seed is not None and not natural(seed):
                raise ValueError(
                    f"seed must be None, a whole number >= 0 or a SeedSequence, got {shown(seed)}"
                )
            seed = np.random.SeedSequence(seed)
        self.root = seed

    @property
    def text(self) -> str:
        """What a checkpoint keeps."""
        entropy = json.dumps(self.root.entropy, default=lambda n: np.asarray(n).tolist())
        return f"{entropy} {json.dumps(list(self.root.spawn_key))}"

    def child(self, *key: int) -> np.random.SeedSequence:
        """Return a sequence of our own, by key and not by spawn(), which would count elsewhere."""
        return np.random.SeedSequence(self.root.entropy, spawn_key=(*self.root.spawn_key, *key))

    @property
    def sample_key(self) -> Array:
        """The key of the samples."""
        return self.child(SAMPLES).generate_state(2, np.uint64)

    def take_up(self, text: str) -> None:
        """Become the seed of a saved run."""
        entropy, end = json.JSONDecoder().raw_decode(text)
        self.root = np.random.SeedSequence(entropy, spawn_key=tuple(json.loads(text[end:])))


def build(
    x0: Any,
    method: Any,
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
) -> Run:
    """Check the arguments and make a run of them."""
    method, root = as_method(method, exact=first_order), Seed(seed)
    noise = None if noise is None else check_noise(noise)
    if isinstance(x0, Space):
        problem = replace(x0.problem(bounds=bounds, scale=scale), noise=noise)
        check_discrete(x0, method)
    else:
        problem = Problem.check(x0, bounds, scale, noise)
    measured, merit, samples = Known(), None, NO_SAMPLES
    sign = -1.0 if flag(maximize, "maximize") else 1.0
    if not isinstance(known, tuple) or known:
        measured = check_known(known, problem, sign)
        if len(measured):  # the best place that is known is where to start
            problem = replace(problem, x0=measured.points[np.argmin(measured.values)].copy())
    if not isinstance(constraints, tuple) or constraints:
        given = Constraints.check(constraints, problem)
        if given is not None:
            merit, problem = Merit(given, problem.n_coords), given.free(problem)
    if sample is not None:
        drawn, size = (sample.n, sample.batch_size) if isinstance(sample, Rows) else (sample, 1)
        samples = Samples.check(drawn, size, root.sample_key)
    problem = replace(problem, sampled=sample is not None, has_gradient=first_order, known=measured)
    if noise is not None:
        refuse_noise(problem, method)
    budget = None if max_evals is None else whole(max_evals, "max_evals", 1)
    best = None if problem.sampled else Best(np.zeros(problem.x0.size))
    ledger = Ledger(Failures.of(failures).nonfinite, best, sign)
    interpreter = Interpreter(
        strategy_of(method, merit, problem), problem, samples, root, budget, History(),
        tol=tol if tol is TOL else check_tol(tol),
        max_stall=None if max_stall is None else count(max_stall, "max_stall"),
        width=0 if merit is None else merit.size,
    )  # fmt: skip
    run = Run(interpreter, ledger, method, root, budget, merit)
    for x, value in zip(measured.points, measured.values, strict=True):
        run.know(x, value)
    return run


def strategy_of(method: Method, merit: Merit | None, problem: Problem) -> Strategy:
    """Return the strategy of a method, which re-evaluates its best candidates at the end.

    A screening recommends no point.
    """
    strategy = run_method(method) if isinstance(method, SCGD) else method.strategy
    if not isinstance(strategy, Screen):
        if isinstance(method, Named) and METHODS.get(method.name) is not method:
            strategy = partial(checked, strategy)
        strategy = partial(with_incumbent, strategy)
    if merit is not None:
        continuous = problem.space is None or problem.space.continuous
        strategy = (constrained if continuous else by_feasibility)(strategy, merit)
    return strategy


def refuse_noise(problem: Problem, method: Method) -> None:
    """Refuse a known noise level where nothing uses it."""
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
