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
from scgd.constraints import Measured
from scgd.driving import Events, Limits, drive
from scgd.estimators import Estimator
from scgd.outcomes import called, check_catch
from scgd.plans import TOL, Method, ran_of
from scgd.policies import Policy
from scgd.run.build import build, choose_method
from scgd.run.recording import recorded
from scgd.run.saving import Saved
from scgd.samples import Sample
from scgd.schedules import Schedule
from scgd.spaces import InSpace, Space
from scgd.steps import StepRule
from scgd.workers import evaluator
from scgd.workers.tasks import Job

if TYPE_CHECKING:
    from scgd.results import Result

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
    noise: float | None = None,
    block_size: int | None = None,
    importance: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    max_evals: int | None = None,
    max_time: float | None = None,
    target: float | None = None,
    tol: float = TOL,
    patience: int | None = None,
    maximize: bool = False,
    on_nonfinite: str = "raise",
    catch: type[Exception] | tuple[type[Exception], ...] = (),
    earlier: Any = (),
    seed: Any = None,
    workers: Any = 1,
    timeout: float | None = None,
    asynchronous: int | Events | None = None,
    vectorized: bool = False,
    callback: Callable[[Result], Any] | None = None,
    progress: bool = False,
    checkpoint: str | Checkpoint | None = None,
    record: bool = False,
    log: Any = None,
) -> Result:
    r"""Minimise a function of many variables, noisy or not, from its values alone.

    Parameters
    ----------
    fun
        ``fun(x, *args)``, or ``fun(x, rows, *args)`` with ``sample=n``, or ``fun(x, xi, *args)``
        with ``sample=callable``. ``x`` is a read-only view of a buffer that changes: copy it to
        keep it. A function compiled by ``numba.njit`` runs in one compiled loop.
    x0
        Where to start; never changed. Or a :class:`~scgd.Space` of named parameters: ``fun`` is
        then called with a dict of values, ``fun(params)``, and starts at the defaults.
    args
        Further arguments of ``fun`` and ``jac``.
    method
        The name of a row of ``scgd.METHODS``, or a :class:`~scgd.recipes.Recipe`.
    jac
        ``jac(x, coords, ...)`` returns the partial derivatives at ``coords``; differences are then
        not needed and each call counts as one evaluation. ``auto`` uses it in quasi-Newton steps
        where f repeats itself, and in the steps of ``"musketeer"`` under noise.
    sample, batch_size
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
    noise
        The standard deviation of the noise of ``fun`` where you know it; believed, so nothing is
        spent on measuring it. 0: ``fun`` repeats itself.
    bounds
        ``scipy.optimize.Bounds`` or pairs (low, high); kept at all times.
    constraints
        ``scipy.optimize.LinearConstraint``, ``NonlinearConstraint`` or a list of them. Linear ones
        hold at every evaluation (the points asked for are projected); others hold at the answer,
        or the message says by how much not, by an augmented Lagrangian around the method. Each
        evaluation of ``fun`` evaluates the nonlinear ones once, beside one call at the start, and
        only ``fun`` is counted. Not with ``jac`` or ``vectorized``.
    max_evals
        Hard budget of evaluations (default: 200 per coordinate, at least 1,000, if neither
        ``max_time`` nor ``target`` is given; for a Space 15 per coordinate, at least 150).
    max_time
        Seconds after which no new evaluation is started.
    target
        Stop when the mean of the last observations (of a phase, and 20 at least) is at or below
        this (above it with ``maximize``); the exact value where ``auto`` found f deterministic.
    tol
        Where f repeats itself: stop when the decrease predicted for the next five evaluations per
        coordinate is below ``tol * (f(x0) - best)`` and restarts bring no more: two of them came
        back to the best value, or many ended above it. 0 never stops early. Heeded by ``auto``,
        ``race``, ``descent``, ``parabola`` and ``bfgs``.
    patience
        Under noise: stop after so many evaluations without a significant gain (two standard
        errors, at the comparisons that ``auto`` makes; for recipes, so many whose last values do
        not lie below their first); by default never.
    maximize
        Look for the largest value. Target, ``fun``, history, callback and messages speak of the
        values as ``fun`` returns them.
    on_nonfinite
        What becomes of NaN and infinite values: ``"raise"`` FloatingPointError; ``"skip"`` them,
        so that only the value is lost; or have them count as the ``"worst"`` finite value seen
        so far, so that searches move away from there (until one has been seen they are skipped;
        steps are then not taken in compiled loops). Where a search looks farther than anybody has
        before, such a value tells that this was too far and is not raised (minus infinity is, or
        infinity with ``maximize``). All are counted in ``n_failed``.
    catch
        Exceptions of ``fun`` and ``jac`` that count as a failed value, under any
        ``on_nonfinite``: ``catch=(RuntimeError,)``. With ``TimeoutError`` among them an
        evaluation that exceeds ``timeout`` twice is one. All values of a call of a vectorized
        ``fun`` that raises are lost; have it return NaN for the points that fail.
    earlier
        Measurements that were made before, as pairs (x, value); they cost nothing. The search
        starts at the best of them instead of x0, and where ``auto`` finds f deterministic nothing
        worse than the best of them is returned.
    seed
        A whole number or a ``SeedSequence``: one seed, one trajectory, for any number of workers.
    workers
        1, a number of local processes (-1: all cores), a ``concurrent.futures.Executor``, a
        ``distributed.Client``, or a map-like callable.
    timeout
        Seconds that an evaluation by a worker may take; then it is given to another one (and a
        process that hangs is replaced), the second time it ends the run with TimeoutError, or
        counts as failed with ``catch=TimeoutError`` or an ``on_nonfinite`` other than ``"raise"``.
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
    record
        Keep all evaluations with their points in ``result.evaluations``, as coordinates changed.
        Every step is then taken by itself: the trajectory is the same, but some 50 to 100 us per
        evaluation are added to those of plain recipes.
    log
        A CSV file that gets a row per evaluation while the run goes on, with the point: a column
        per coordinate, beyond 100 one column ``changes`` with what differs from the row before.
        With ``checkpoint`` the same call goes on with it, and no number is there twice.

    Returns
    -------
    Result
        ``x``: the recommended point. Where f repeats itself that is the best point seen, and
        ``fun`` its value. Under noise it is the last iterate (the average of all for recipes that
        say so), never the luckiest observation, and ``fun`` the mean of the last phase's
        observations, with standard error ``fun_error``. ``nfev``: evaluations accepted;
        ``n_failed``: those of them that had no finite value; ``nfev_repeated``: values that came a
        second time because of a fault, and were dropped. ``nit``, ``success``,
        ``status``, ``message``; ``weights``: the sampling law learned (None where nothing was);
        ``relevance``: what share each coordinate has in the changes of f, with standard errors
        ``relevance_error`` over the places where that was seen (NaN for one place, infinite for
        none), or None where nothing can be said; ``members``: what ran, with evaluations;
        ``farthest``: how far from x0 a point was asked, in any coordinate, in
        units of its scale; ``history``; ``scale``; ``recipe``: the recipe that ran, or what a plan
        ran, member by member; ``params``: the parameters at ``x``, where ``x0`` is a Space;
        ``evaluations``: a table of number, member, value and seconds (the first 100,000, loops
        compiled by numba left out; with ``record`` or
        ``log`` all of them, with points). ``result.plot()`` draws it all: see
        :class:`~scgd.results.Result`.

        ======  =========================================  =======
        status  meaning                                    success
        ======  =========================================  =======
        0       target reached                             True
        1       budget used                                True unless short of the target
        2       time limit reached                         True unless short of the target
        3       callback raised StopIteration              True
        4       interrupted by Ctrl-C                      False
        5       the budget is too small for one step       False
        7       no evaluation had a finite value           False
        8       nothing was left to do                     True
        9       nothing was left to gain                   True unless fun is above the target
        ======  =========================================  =======

        Whatever the status, a run that ends (1, 2, 8, 9) with nothing better than x0 is no success,
        and the message names remedies. Where f repeats itself better is a value below f(x0), else
        another point, which comparisons did not find worse. ``max_evals=1`` evaluates x0.

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
    for name, switch in (("vectorized", vectorized), ("progress", progress), ("record", record)):
        flag(switch, name)
    parts = {
        "policy": policy, "estimator": estimator, "step": step, "learning_rate": learning_rate,
        "radius": radius, "block_size": block_size, "importance": importance,
    }  # fmt: skip
    if isinstance(x0, Space):
        x0.problem(bounds=bounds, scale=scale, jac=jac, vectorized=vectorized)
        fun = InSpace(x0, fun)
    chosen = choose_method(method, jac, parts)
    caught = check_catch(catch)
    limits = Limits(max_time, target, maximize=maximize is True)
    if max_evals is None and max_time is None and target is None:
        max_evals = max(1000, DEFAULT_BUDGET * np.size(x0))
        if isinstance(x0, Space):
            max_evals = max(150, 15 * x0.n_coords)
    built = build(
        x0, chosen, sample=sample, batch_size=batch_size, bounds=bounds, scale=scale, noise=noise,
        max_evals=max_evals, seed=seed, on_nonfinite=on_nonfinite, tol=tol, patience=patience,
        maximize=maximize, earlier=earlier, constraints=constraints, asks=True,
        first_order=jac is not None,
    )  # fmt: skip
    args = args if isinstance(args, tuple) else (args,)
    flights = Events.check(asynchronous, built.run, vectorized=vectorized)
    identity = partial(built.identity, args, 0 if flights is None else flights.limit)
    saved = Saved(checkpoint, built.run, built.seed, identity)
    inward = partial(called, maximize=maximize, catch=caught)
    jac = None if jac is None else inward(jac, shape="partials")
    fun = inward(fun, shape="values" if vectorized else "value")
    if built.constraints is not None:
        if jac is not None or vectorized:
            raise ValueError("constraints do not go with jac or vectorized; drop those")
        fun = Measured(fun, built.constraints, caught)
    job = Job(fun, jac, args, built.samples)
    skip = on_nonfinite != "raise" or issubclass(TimeoutError, caught)
    saved.hold()
    try:
        built.run.record = recorded(built.run, built.problem, record, log, saved.resume())
        saved.recall()
        evaluate = evaluator(workers, job, vectorized=vectorized, timeout=timeout, skip=skip)
        try:
            drive(built.run, evaluate, limits, saved, callback, flights, progress=progress)
        finally:
            evaluate.close()
            built.run.record.close()
    finally:
        saved.release()
    result = built.run.result()
    result.recipe = ran_of(chosen, built.run.plan)
    result.nfev_repeated = evaluate.n_repeated
    if flights is not None:
        result.events = Events(flights.limit, np.array(built.run.order, np.int64))
    return limits.judged(result)
