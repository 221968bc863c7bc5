"""The front door for black boxes: ``minimize(fun, x0, ...)`` in SciPy's habits.

``minimize`` adds no arithmetic. It builds a :class:`~scgd.run.run.Run`, has its questions answered,
and looks after time, target, callback, progress and checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.checkpoint import Checkpoint
from scgd.checks import flag, function
from scgd.driving import Events, Limits, drive
from scgd.estimators import Estimator
from scgd.plans import Method
from scgd.policies import Policy
from scgd.run.build import build, choose_method
from scgd.run.saving import Saved
from scgd.samples import Sample
from scgd.schedules import Schedule
from scgd.steps import StepRule
from scgd.workers import evaluator
from scgd.workers.tasks import Job

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

__all__ = ["minimize"]

DEFAULT_BUDGET = 200
"""Evaluations per coordinate when nothing limits the run."""


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    method: str | Method = "auto",
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
    seed: Any = None,
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
        The name of a row of ``scgd.METHODS``, or a :class:`~scgd.recipes.Recipe`.
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
        learning rate or radius given here is absolute. Beside a method that chooses its parts
        itself (``"auto"``) they replace those of ``"musketeer"``.
    scale
        Typical size of each coordinate, the unit of a recipe's own learning rate and radius; by
        default from the bounds, x0 or a short search.
    bounds
        ``scipy.optimize.Bounds`` or pairs (low, high); kept at all times.
    max_evals
        Hard budget of evaluations (default: 200 per coordinate, at least 1,000, if neither
        ``max_time`` nor ``target`` is given).
    max_time
        Seconds after which no new evaluation is started.
    target
        Stop when the mean of the last observations (of a phase, and 20 at least) is at or below
        this; the exact value where ``auto`` found f deterministic.
    on_nonfinite
        ``"raise"`` FloatingPointError on NaN or infinity, or ``"skip"`` such values and count them.
        Where a search looks farther than anybody has before, such a value tells that this was too
        far and is only counted (minus infinity is always refused).
    seed
        A whole number or a ``SeedSequence``: one seed, one trajectory, for any number of workers.
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
        decay leg where a schedule decays over the budget; a finished run is read back at once. On
        Ctrl-C or SIGTERM the step in hand is finished (a slow function is interrupted at once) and
        the run is saved; a second signal ends without saving.

    Returns
    -------
    OptimizeResult
        ``x``: the recommended point, which is the last iterate (the average of all for recipes that
        say so), not the luckiest observation. ``fun``: mean of the last phase's observations, with
        standard error ``fun_error``. ``nfev``: evaluations accepted; ``n_failed``: those of them
        that had no finite value; ``nfev_repeated``: values that came a second time because of a
        fault, and were dropped. ``nit``, ``success``, ``status``, ``message``; ``weights``: the
        sampling law learned, which tells what coordinates matter; ``history``; ``scale``;
        ``recipe``: what ran.

        ======  =========================================  =======
        status  meaning                                    success
        ======  =========================================  =======
        0       target reached                             True
        1       budget used                                True unless fun is above the target
        2       time limit reached                         True unless fun is above the target
        3       callback raised StopIteration              True
        4       interrupted by Ctrl-C                      False
        5       the budget is too small for one step       False
        7       no evaluation had a finite value           False
        8       nothing was left to do                     True
        ======  =========================================  =======

    Examples
    --------
    >>> def fun(x):
    ...     return float(np.sum((x - 1) ** 2))
    >>> result = minimize(fun, np.zeros(5), max_evals=2000, seed=0)
    >>> bool(np.all(abs(result.x - 1) < 0.05))
    True
    """
    function(fun, "fun")
    for name, given in (("jac", jac), ("callback", callback)):
        if given is not None:
            function(given, name)
    flag(progress, "progress")
    parts = {
        "policy": policy, "estimator": estimator, "step": step, "learning_rate": learning_rate,
        "radius": radius, "block_size": block_size, "importance": importance,
    }  # fmt: skip
    chosen = choose_method(method, jac, parts)
    limits = Limits(max_time, target)
    if max_evals is None and max_time is None and target is None:
        max_evals = max(1000, DEFAULT_BUDGET * np.size(x0))
    built = build(
        x0, chosen, sample=sample, batch_size=batch_size, bounds=bounds, scale=scale,
        max_evals=max_evals, seed=seed, on_nonfinite=on_nonfinite,
    )  # fmt: skip
    args = args if isinstance(args, tuple) else (args,)
    flights = Events.check(asynchronous, built.run, vectorized=vectorized)
    identity = partial(built.identity, args, 0 if flights is None else flights.limit)
    saved = Saved(checkpoint, built.run, built.seed, identity)
    saved.hold()
    saved.resume()
    job = Job(fun, jac, args, built.samples)
    evaluate = evaluator(
        workers, job, vectorized=vectorized, timeout=timeout, skip=on_nonfinite == "skip"
    )
    try:
        drive(built.run, evaluate, limits, saved, callback, flights, progress=progress)
    finally:
        evaluate.close()
        saved.release()
    result = built.run.result()
    result.recipe = chosen
    result.nfev_repeated = evaluate.n_repeated
    if flights is not None:
        result.events = Events(flights.limit, np.array(built.run.order, np.int64))
    return limits.judged(result)
