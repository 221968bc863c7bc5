"""The front door for black boxes: ``minimize(fun, x0, ...)`` in SciPy's habits.

``minimize`` adds no arithmetic. It builds an :class:`~scgd.optimizer.Optimizer`, has its probes
evaluated, and looks after budget, time, target, callback, progress and checkpoint.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.asynchronous import Events, Flights
from scgd.checkpoint import Checkpoint
from scgd.estimators import Estimator, FirstOrder
from scgd.explore import Scout, explorer
from scgd.optimizer import MONITOR, Optimizer
from scgd.policies import Musketeer, Policy
from scgd.problem import Sample, as_scalar
from scgd.progress import Progress
from scgd.recipes import Recipe, as_recipe
from scgd.result import Status
from scgd.schedules import Schedule
from scgd.states import restore
from scgd.steps import SGD, StepRule
from scgd.theory import known, warn_if_violated
from scgd.workers import Evaluator, evaluator
from scgd.workers.tasks import Job

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

__all__ = ["minimize"]

DEFAULT_BUDGET = 200
"""Evaluations per coordinate when nothing limits the run."""
ROUND, MAX_ROUND = 0.02, 100_000
"""Seconds and steps between two looks at clock, checkpoint and progress."""


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    method: str | Recipe = "auto",
    jac: Callable[..., Any] | None = None,
    sample: Sample = None,
    batch_size: int = 1,
    policy: str | Policy | None = None,
    estimator: str | Estimator | None = None,
    step: str | StepRule | None = None,
    learning_rate: float | Schedule | None = None,
    radius: float | Schedule | None = None,
    scale: Any = None,
    block_size: int | None = None,
    importance: Any = None,
    bounds: Any = None,
    max_evals: int | None = None,
    max_time: float | None = None,
    target: float | None = None,
    on_nonfinite: str = "raise",
    seed: int | None = None,
    workers: Any = 1,
    timeout: float | None = None,
    asynchronous: int | Events | None = None,
    vectorized: bool = False,
    callback: Callable[[OptimizeResult], Any] | None = None,
    progress: bool = False,
    checkpoint: str | Checkpoint | None = None,
) -> OptimizeResult:
    r"""Minimise a function of many variables, noisy or not, from its values alone.

    Parameters
    ----------
    fun
        ``fun(x, *args)``, or ``fun(x, rows, *args)`` with ``sample=n``, or ``fun(x, xi, *args)``
        with ``sample=callable``. ``x`` is a read-only view of a buffer that changes: copy it to
        keep it. A function compiled by ``numba.njit`` runs in one compiled loop.
    x0
        Where to start; never changed.
    args
        Further arguments of ``fun`` and ``jac``.
    method
        A :class:`~scgd.recipes.Recipe` or the name of one in ``scgd.RECIPES``.
    jac
        ``jac(x, coords, ...)`` returns the partial derivatives at ``coords``; differences are then
        not needed and each call counts as one evaluation.
    sample
        ``n``: every step draws ``batch_size`` row numbers below n, the same for all its
        evaluations, and hands them to ``fun`` as an integer array. A callable: every step makes
        ``xi = sample(rng)``, a value that does not change when it is used (not the generator
        itself). Without it the noise, if any, is nobody's to control.
    policy, estimator, step, learning_rate, radius, block_size, importance
        Replace parts of the recipe, by name or object; see :class:`~scgd.recipes.Recipe`. A
        learning rate or radius given here is absolute.
    scale
        Typical size of each coordinate, the unit of a recipe's own learning rate and radius; by
        default from the bounds, x0 or a short search.
    bounds
        ``scipy.optimize.Bounds`` or pairs (low, high); kept at all times.
    max_evals
        Hard budget of evaluations (default: 200 per coordinate, at least 1,000, if neither
        ``max_time`` nor ``target`` is given).
    max_time
        Seconds after which no new step is started.
    target
        Stop when the mean of the last observations (of a phase, and 20 at least) is at or below
        this; the exact value where ``auto`` found f deterministic.
    on_nonfinite
        ``"raise"`` FloatingPointError on NaN or infinity, or ``"skip"`` such steps and count them.
    seed
        One seed, one trajectory, for any number of workers.
    workers
        1, a number of local processes (-1: all cores), a ``concurrent.futures.Executor``, a
        ``distributed.Client``, or a map-like callable.
    timeout
        Seconds that an evaluation by a worker may take; then it is given to another one (and a
        process that hangs is replaced), the second time it ends the run with TimeoutError, or
        counts as NaN with ``on_nonfinite="skip"``.
    asynchronous
        Keep so many evaluations under way instead of waiting for the slowest of every step: steps
        are asked at the point reached so far and used when they arrive. ``result.events`` is the
        order of arrival; handed in again (with any workers) it gives the same trajectory.
    vectorized
        ``fun`` takes a matrix with one point per row and returns as many values.
    callback
        Called once per phase with the result so far; raising StopIteration stops the run.
    progress
        Show a live bar.
    checkpoint
        A file (or :class:`~scgd.checkpoint.Checkpoint`) that is written now and then and at the
        end. The same call resumes it bit for bit; with a larger ``max_evals`` it goes on, as a new
        decay leg where a schedule decays over the budget; a finished run is read back at once.

    Returns
    -------
    OptimizeResult
        ``x``: the recommended point, which is the last iterate (the average of all for recipes that
        say so), not the luckiest observation. ``fun``: mean of the last phase's observations, with
        standard error ``fun_error``. ``nfev``: evaluations accepted; ``nfev_repeated``: values that
        came a second time because of a fault, and were dropped. ``nit``, ``n_skipped``,
        ``success``, ``status``, ``message``; ``weights``: the sampling law learned, which tells
        what coordinates matter; ``history``; ``scale``; ``recipe``: what ran.

        ======  =========================================  =======
        status  meaning                                    success
        ======  =========================================  =======
        0       target reached                             True
        1       budget used                                True unless fun is above the target
        2       time limit reached                         True unless fun is above the target
        3       callback raised StopIteration              True
        4       interrupted by Ctrl-C                      False
        5       the budget is too small for one step       False
        ======  =========================================  =======

    Examples
    --------
    >>> def fun(x):
    ...     return float(np.sum((x - 1) ** 2))
    >>> result = minimize(fun, np.zeros(5), max_evals=2000, seed=0)
    >>> bool(np.all(abs(result.x - 1) < 0.05))
    True
    """
    if not callable(fun):
        raise TypeError(f"fun must be callable, got {type(fun).__name__}")
    recipe = as_recipe(method).override(
        policy=policy,
        estimator=estimator,
        step=step,
        learning_rate=learning_rate,
        radius=radius,
        block_size=block_size,
        importance=importance,
    )
    if isinstance(recipe.step, SGD):
        warn_if_violated(
            learning_rate if known(learning_rate) else None,
            passed_mixing(policy),
            radius if known(radius) else None,
        )
    if jac is not None and estimator is None:
        recipe = recipe.first_order()
    if isinstance(recipe.estimator, FirstOrder) and jac is None:
        raise ValueError("estimator 'first-order' needs jac=, a function of (x, coords)")
    limits = Limits(max_time, target)
    if max_evals is None and max_time is None and target is None:
        max_evals = max(1000, DEFAULT_BUDGET * np.size(x0))
    opt = Optimizer(
        x0,
        recipe,
        sample=sample,
        batch_size=batch_size,
        bounds=bounds,
        max_evals=max_evals,
        scale=scale,
        seed=seed,
        on_nonfinite=on_nonfinite,
    )
    if isinstance(recipe.estimator, FirstOrder):
        opt.reserve = MONITOR if opt.max_evals is None else min(MONITOR, opt.max_evals // 10)
    args = args if isinstance(args, tuple) else (args,)
    flights = None if asynchronous is None else Flights(opt, asynchronous)
    saved = Saved(checkpoint, opt, seed, flights)
    job = Job(fun, jac, args, opt.sampling)
    skip = on_nonfinite == "skip"
    evaluate = evaluator(workers, job, vectorized=vectorized, timeout=timeout, skip=skip)
    try:
        with Progress(opt, progress) as bar:
            run(opt, evaluate, limits, saved, callback, bar, flights)
    finally:
        evaluate.close()
    result = opt.result()
    result.nfev_repeated = evaluate.n_repeated
    if flights is not None:
        result.events = flights.events
    if target is not None and result.status in (Status.BUDGET, Status.TIME):
        result.success = bool(result.fun <= target)
    return result


def passed_mixing(policy: Any) -> Any:
    """Return a mixing schedule of a known form that is the user's own and not the default."""
    mixing = getattr(policy, "mixing", None) if isinstance(policy, Musketeer) else None
    return mixing if known(mixing) and mixing != Musketeer().mixing else None


class Limits:
    """What ends a run besides its budget."""

    def __init__(self, max_time: float | None, target: float | None) -> None:
        if max_time is not None and not max_time > 0:
            raise ValueError(f"max_time must be a positive number of seconds, got {max_time!r}")
        if target is not None and np.isnan(target):
            raise ValueError("target must be a number, got nan")
        self.target = target
        self.deadline = None if max_time is None else time.monotonic() + max_time

    def check(self, opt: Optimizer) -> Status:
        """Return why the run must end now, or that it goes on."""
        if self.target is not None and opt.level <= self.target:
            return Status.TARGET
        if self.deadline is not None and time.monotonic() > self.deadline:
            return Status.TIME
        return Status.RUNNING


class Saved:
    """The run's checkpoint, or nothing at all."""

    def __init__(
        self, checkpoint: Any, opt: Optimizer, seed: int | None, flights: Flights | None
    ) -> None:
        self.opt = opt
        self.flights = flights
        self.file = checkpoint
        if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
            self.file = Checkpoint(checkpoint)
        self.identity = {
            "n_coords": opt.n_coords,
            "x0": opt.problem.x0.tolist() if opt.n_coords <= 64 else float(opt.problem.x0.sum()),
            "recipe": repr(opt.recipe),
            "sample": repr(opt.sampling.sample) if isinstance(opt.sampling.sample, int) else None,
            "batch_size": opt.sampling.batch_size,
            "on_nonfinite": opt.on_nonfinite,
            "seed": None if seed is None else str(opt.entropy),
            "asynchronous": 0 if flights is None else flights.limit,
        }
        if self.file is not None:
            self.resume()

    def resume(self) -> None:
        """Take up the saved run, if there is one; a larger budget starts a new leg."""
        wanted = self.opt.max_evals
        state = self.file.load(self.identity)
        if state is None:
            return
        if self.flights is not None:
            self.flights.resume(state)
            return
        restore(self.opt, state)
        if wanted != self.opt.max_evals:
            self.opt.extend(wanted)

    def save(self, *, force: bool = False) -> None:
        """Write the checkpoint when it is due."""
        if self.file is not None and (force or self.file.due()):
            identity = {**self.identity, "seed": str(self.opt.entropy)}
            run = self.opt if self.flights is None else self.flights
            self.file.save(identity, run.state_dict())


def run(
    opt: Optimizer,
    evaluate: Evaluator,
    limits: Limits,
    saved: Saved,
    callback: Callable[[OptimizeResult], Any] | None,
    bar: Progress,
    flights: Flights | None = None,
) -> None:
    """Take steps until something ends the run."""
    if flights is None:
        by_phase = callback is not None or limits.target is not None
        advance = stepper(opt, evaluate, stop_at_phase=by_phase)
    else:
        advance = flights.pilot(evaluate)
    reports = opt.n_reports
    opt.status = limits.check(opt)
    try:
        while opt.status is Status.RUNNING and not (flights or opt).done:
            advance()
            if opt.n_reports != reports:
                reports = opt.n_reports
                bar.update()
                if callback is not None:
                    callback(opt.result())
            saved.save()
            opt.status = limits.check(opt)
        monitor(opt, evaluate)
    except StopIteration:
        opt.status = Status.CALLBACK
    except KeyboardInterrupt:
        opt.status = Status.INTERRUPTED
    finally:
        saved.save(force=True)


def stepper(opt: Optimizer, evaluate: Evaluator, *, stop_at_phase: bool) -> Callable[[], None]:
    """Return the fastest way to make progress with these parts.

    A fast loop is given as many steps at a time as take about ``ROUND`` seconds, so that clocks are
    looked at often enough and cost nothing.
    """
    inline = type(evaluate) is Evaluator and not evaluate.vectorized
    scout = Scout(opt, evaluate.fun, evaluate.args, evaluate.evaluate)
    loop = sampler = None
    n_steps = 1

    def advance() -> None:
        nonlocal n_steps, loop, sampler
        if inline and sampler is not opt.sampler:  # a plan has changed the recipe
            loop, sampler = explorer(opt, evaluate.fun, evaluate.args), opt.sampler
        if inline and opt.stage is not None:
            scout.explore(ROUND)
            return
        if loop is None or opt.stage is not None:
            probes = opt.ask()
            opt.tell(probes.ids, evaluate.evaluate(probes, opt.theta))
            return
        started = time.perf_counter()
        with deferred_interrupt(n_steps > 1):
            loop.run(n_steps, stop_at_phase=stop_at_phase)
        fast = time.perf_counter() - started < ROUND
        n_steps = min(2 * n_steps, MAX_ROUND) if fast else max(1, n_steps // 2)

    return advance


@contextmanager
def deferred_interrupt(wanted: bool) -> Iterator[None]:
    """Hold back Ctrl-C for the milliseconds of a round of fast steps; none is cut in two."""
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: caught.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if caught:
        raise KeyboardInterrupt


def monitor(opt: Optimizer, evaluate: Evaluator) -> None:
    """Evaluate fun with fresh samples where a first-order run ended, from the reserved budget."""
    for i in range(opt.reserve):
        probes = opt.here(i)
        seen = as_scalar(evaluate.evaluate(probes, opt.theta)[0])
        opt.last_phase = np.append(opt.last_phase[np.isfinite(opt.last_phase)], seen)
        opt.nfev += 1
    opt.reserve = 0
