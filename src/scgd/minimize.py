"""Black boxes: ``minimize(fun, x0, ...)`` in SciPy's habits.

``minimize`` adds no arithmetic. It builds a :class:`~scgd.run.run.Run`, has its questions answered,
and looks after time, target, callback, progress and checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.checkpoint import Checkpoint
from scgd.checks import function
from scgd.constraints import Measured
from scgd.driving import Driver
from scgd.method import SCGD
from scgd.methods import Method
from scgd.options import Failures, Reporting, Rows, Workers
from scgd.outcomes import called
from scgd.run.build import build
from scgd.samples import Sample
from scgd.spaces import InSpace, Space
from scgd.strategies.asks import Strategy
from scgd.strategies.budget import TOL
from scgd.workers.tasks import Job

if TYPE_CHECKING:
    from scgd.results import Result

DEFAULT_BUDGET = 200
"""Evaluations per coordinate when nothing limits the run: a plan that SCGD finishes in seconds."""


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    method: str | SCGD | Method | Strategy = "auto",
    jac: Callable[..., Any] | None = None,
    sample: Sample | Rows = None,
    bounds: Any = None,
    constraints: Any = (),
    scale: Any = None,
    noise: float | None = None,
    known: Any = (),
    max_evals: int | None = None,
    max_time: float | None = None,
    target: float | None = None,
    tol: float = TOL,
    max_stall: int | None = None,
    maximize: bool = False,
    failures: str | type[Exception] | tuple[type[Exception], ...] | Failures = "raise",
    seed: Any = None,
    workers: Any = 1,
    reporting: Any = None,
    checkpoint: str | Checkpoint | None = None,
) -> Result:
    r"""Minimise a function of many variables, noisy or not, from its values alone.

    Parameters
    ----------
    fun
        ``fun(x, *args)``, or ``fun(x, rows, *args)`` with ``sample=n``, or ``fun(x, xi, *args)``
        with ``sample=callable``. ``x`` is a read-only array whose numbers change from call to
        call: copy it to keep it. Nothing that is written to it changes the run. A function
        compiled by ``numba.njit`` runs in one compiled loop.
    x0
        Where to start; never changed. Or a :class:`~scgd.Space` of named parameters: ``fun`` is
        then called with a dict of values, ``fun(params)``, and starts at the defaults.
    args
        Further arguments of ``fun`` and ``jac``.
    method
        ``"auto"`` or another name of ``scgd.METHODS``; :class:`scgd.SCGD` with parts of your
        choice; or a generator function of your own, ``strategy(problem, budget, rng)``, which
        yields points and is sent their values (:mod:`scgd.strategies.asks`).
    jac
        ``jac(x, coords, ...)`` returns the partial derivatives at ``coords``; each call counts as
        one evaluation. ``"auto"`` uses it in quasi-Newton steps where f is deterministic, and in
        the steps of ``"musketeer"`` under noise.
    sample
        Common random numbers. ``n`` (or :class:`~scgd.options.Rows` with a batch size): every step
        draws row numbers below n, the same for all its evaluations, and hands them to ``fun`` as
        an integer array. A callable: every step makes ``xi = sample(rng)``, a value that does not
        change when it is used (not the generator itself).
    bounds
        ``scipy.optimize.Bounds`` or pairs (low, high); kept at all times.
    constraints
        ``scipy.optimize.LinearConstraint``, ``NonlinearConstraint`` or a list of them. Linear ones
        hold at every evaluation (the points asked for are projected); others hold at the answer,
        or the message says by how much not, by an augmented Lagrangian around the method. Each
        evaluation of ``fun`` evaluates the nonlinear ones once, beside one call at the start, and
        only ``fun`` is counted. Not with ``jac`` or ``vectorized``.
    scale
        Typical size of each coordinate, the unit of relative learning rates and radii; by
        default from the bounds, x0 or a short search.
    noise
        The standard deviation of the noise of ``fun`` where you know it; believed, so nothing is
        spent on measuring it. 0: ``fun`` is deterministic.
    known
        Measurements that were made before, as pairs (x, value); they cost nothing. The search
        starts at the best of them instead of x0, and where ``auto`` finds f deterministic nothing
        worse than the best of them is returned.
    max_evals
        Hard budget of evaluations (default: 200 per coordinate, at least 1,000, if neither
        ``max_time`` nor ``target`` is given; for a Space 15 per coordinate, at least 150).
    max_time
        Seconds after which no new evaluation is started.
    target
        Stop when values at the recommended point are at or below this (above it with
        ``maximize``), a standard error included; the exact value where f is deterministic.
    tol
        For deterministic functions: stop when the decrease predicted for the next five evaluations
        per coordinate is below ``tol * (f(x0) - best)`` and restarts bring no more. 0 never stops
        early; nor does a run that is short of its ``target``, up to ``max_evals`` or ``max_time``.
    max_stall
        Under noise: stop after so many evaluations without a significant gain (two standard
        errors, at the comparisons that a strategy makes; for SCGD, so many whose last values do
        not lie below their first); by default never.
    maximize
        Look for the largest value. Target, ``fun``, history, callback and messages speak of the
        values as ``fun`` returns them.
    failures
        What becomes of evaluations without a finite value: ``"raise"``, ``"skip"``, ``"worst"``,
        exceptions that count as failures, or :class:`~scgd.options.Failures` for both.
    seed
        A whole number or a ``SeedSequence``: one seed, one trajectory, for any number of workers.
    workers
        1, a number of local processes (-1: all cores), an Executor, a ``distributed.Client``, a
        map-like callable, or :class:`~scgd.options.Workers` with timeout, asynchronous evaluation
        or a vectorized function.
    reporting
        True: a live bar; a function: called once per phase with the result so far, StopIteration
        stops the run; a path: a CSV log; or :class:`~scgd.options.Reporting`.
    checkpoint
        A file (or :class:`~scgd.checkpoint.Checkpoint`) that is written now and then and at the
        end. The same call resumes it bit for bit; with a larger ``max_evals`` it goes on, as a new
        decay stage where a schedule decays over the budget; a finished run is read back at once. On
        Ctrl-C or SIGTERM the step in hand is finished (a slow function is interrupted at once) and
        the run is saved; a second signal ends without saving.

    Returns
    -------
    Result
        ``x``: the recommended point. Where f is deterministic that is the best point seen, and
        ``fun`` its value. Under noise the best candidates are re-evaluated before the end, and
        ``fun`` is the mean of such values at ``x``, with standard error ``fun_error``. ``nfev``:
        evaluations accepted; ``n_failed``: those of them that had no finite value;
        ``nfev_repeated``: values that came a second time because of a fault, and were dropped.
        ``nit``, ``success``, ``status``, ``message``; ``weights``: the sampling distribution
        learned (None where nothing was); ``relevance``: what share each coordinate has in the
        changes of f, with standard errors ``relevance_error`` (NaN where it was seen at one place),
        or None where nothing can be said (shares are those of what the run saw: a coordinate that
        began near its best value shows little, one with a wild value much); ``members``: the
        solvers, with evaluations;
        ``farthest``: how far from x0 a point was asked, in any coordinate, in units of its scale;
        ``history``: against ``nfev`` the mean observed value ``fun`` and, where they are known, the
        value ``incumbent`` of the best point and its ``error``; ``scale``; ``method``: what ran,
        solver by solver; ``params``: the parameters at ``x``, where ``x0`` is a Space;
        ``evaluations``: a table of number, member, value and seconds (the first 100,000, loops
        compiled by numba left out; with ``record`` or ``log`` all of them, with points).
        ``result.plot()`` draws it all: see :class:`~scgd.results.Result`.

        ======  =========================================  =======
        status  meaning                                    success
        ======  =========================================  =======
        0       target reached                             True
        1       budget exhausted                           True unless short of the target
        2       time limit reached                         True unless short of the target
        3       callback raised StopIteration              True
        4       interrupted by Ctrl-C                      False
        5       the budget is too small for one step       False
        6       not ended (a callback's, an Optimizer's)   False
        7       no evaluation had a finite value           False
        8       nothing was left to do                     True
        9       converged                                  True unless fun is above the target
        10      diverged                                   False
        ======  =========================================  =======

        Whatever the status, a run that ends with nothing better than x0, or above f(x0) beyond its
        error, is no success, and the message names remedies. ``max_evals=1`` evaluates x0.

    Examples
    --------
    >>> def fun(x):
    ...     return float(np.sum((x - 1) ** 2))
    >>> result = minimize(fun, np.zeros(5), max_evals=2000, seed=0)
    >>> bool(np.all(abs(result.x - 1) < 0.05))
    True
    """
    function(fun, "fun")
    if jac is not None:
        function(jac, "jac")
    workers, failures = Workers.of(workers), Failures.of(failures)
    if isinstance(x0, Space):
        x0.problem(bounds=bounds, scale=scale, jac=jac, vectorized=workers.vectorized)
        fun = InSpace(x0, fun)
    if max_evals is None and max_time is None and target is None:
        max_evals = max(1000, DEFAULT_BUDGET * np.size(x0))
        if isinstance(x0, Space):
            max_evals = max(150, 15 * x0.n_coords)
    if target is not None and (max_evals is not None or max_time is not None):
        tol = 0.0  # short of the target something is left to gain
    run = build(
        x0, method, sample=sample, bounds=bounds, scale=scale, noise=noise, max_evals=max_evals,
        seed=seed, failures=failures, tol=tol, max_stall=max_stall, maximize=maximize,
        known=known, constraints=constraints, first_order=jac is not None,
    )  # fmt: skip
    if maximize or failures.catch:
        shape = "values" if workers.vectorized else "value"
        fun = called(fun, maximize=maximize, catch=failures.catch, shape=shape)
        if jac is not None:
            jac = called(jac, maximize=maximize, catch=failures.catch, shape="partials")
    if run.merit is not None:
        if jac is not None or workers.vectorized:
            raise ValueError("constraints do not go with jac or vectorized; drop those")
        fun = Measured(fun, run.merit.constraints, failures.catch)
    driver = Driver(
        run, Job(fun, jac, args if isinstance(args, tuple) else (args,), run.samples),
        workers=workers, failures=failures, reporting=Reporting.of(reporting), max_time=max_time,
        target=target, checkpoint=checkpoint,
    )  # fmt: skip
    return driver.result()
