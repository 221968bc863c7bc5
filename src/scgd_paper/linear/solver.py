"""``solve``: minimise the penalised empirical risk of a linear model and record the way there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast

import numpy as np

from scgd.blas import one_thread
from scgd.checks import choice, flag, natural, number, reals, shown, whole
from scgd.estimators import FirstOrder
from scgd.linear.data import transposed
from scgd.linear.inputs import as_matrix
from scgd.linear.losses import HINGE, LOSSES
from scgd.method import SCGD
from scgd.policies import Policy
from scgd.schedules import Constant, InverseTime, Linear, Schedule
from scgd.steps import SGD, StepRule
from scgd.typing import Array, Floats
from scgd_paper.linear.inputs import Problem, as_flag, as_problem
from scgd_paper.linear.plan import LinearResult, Plan
from scgd_paper.linear.smoothness import inverse_smoothness
from scgd_paper.linear.walks import DIRECTIONS, MODES, block_of

__all__ = ["solve"]

PATHS = ("auto", "rows", "columns")
DEFAULT = SCGD(
    name="linear",
    estimator=FirstOrder(),
    step=SGD(),
    learning_rate=InverseTime(1.0, 10.0, per="pass"),
    radius=Constant(1e-3),
)


def solve(
    X: Any,
    y: Any,
    *,
    loss: str = "squared",
    l2: float = 0.0,
    l1: float = 0.0,
    sample_weight: Any = None,
    fit_intercept: bool = False,
    epsilon: float | None = None,
    policy: str | Policy | None = None,
    estimator: Any = None,
    step: str | StepRule | None = None,
    learning_rate: float | Schedule | str = "auto",
    radius: float | Schedule | None = None,
    importance: str | Sequence[float] | Array | None = None,
    block_size: int | None = None,
    batch_size: int | None = 1,
    path: str = "auto",
    shared_sample: bool = True,
    n_passes: float = 100.0,
    record_every: float | None = 1.0,
    record_loss: str | None = None,
    start: Any = None,
    seed: int | Sequence[int] = 0,
    n_jobs: int | None = None,
) -> LinearResult:
    r"""Minimise a linear model's penalised risk with coordinate sampling.

    .. math:: f(\theta) = \frac1n \sum_i \ell(x_i^\top \theta, y_i)
              + \frac{\lambda_2}{2} \|\theta\|_2^2 + \lambda_1 \|\theta\|_1

    Parameters
    ----------
    X, y
        Data, dense or sparse, float64 or float32; targets (-1 and 1 for classifiers' losses).
    loss, epsilon
        A name of :data:`scgd.linear.LOSSES`; ``epsilon`` is where the Huber loss bends, or the
        width over which the hinge is rounded (default 1.35 and 0).
    l2, l1
        Penalties :math:`\lambda_2` (with the 1/2) and :math:`\lambda_1` (by its prox).
    sample_weight
        One weight per sample; the risk is their weighted mean.
    fit_intercept
        Add a last coordinate with a column of ones and no penalty.
    policy, estimator, step, importance, block_size
        Parts of the method, by name or object, as in :func:`scgd.minimize`. The estimator is
        ``"first-order"`` (default), ``"forward"``, ``"central"``, ``"sphere"``, ``"gaussian"`` or
        ``"spsa"``; ``policy="full"`` takes all coordinates in every step.
    learning_rate, radius
        Numbers or schedules, per step or per pass as they say. The rate ``"auto"`` steps by a
        multiple of :math:`1/L_k`, the inverse smoothness along each coordinate: by all of it with
        full batches, by :math:`1/(10 + \\text{passes})` of it otherwise (the rounded hinge by a
        share that falls from 1 to 0 in a straight line).
    batch_size
        Samples per step, drawn with replacement; ``None`` for all of them.
    path
        ``"rows"`` computes the margins of each mini-batch, ``"columns"`` keeps those of all the
        samples; ``"auto"`` takes whichever reads less per step.
    shared_sample
        Whether the coordinates of a step share its samples; ``False`` draws ``batch_size`` for each
        coordinate, as the authors' full-gradient baseline does.
    n_passes
        A pass is as many partial derivatives or differences as there are coordinates: p steps of
        one coordinate or along a direction, one step of all coordinates.
    record_every
        Passes between records of the objective on all the data (``None``: first and last only).
    record_loss
        Record another loss than the one that is minimised.
    start
        First iterate (default: zeros), the intercept last.
    seed
        One seed, one trajectory; a sequence of seeds gives as many runs, on all cores, each as if
        alone.
    n_jobs
        Threads for several runs (default: all cores).

    Returns
    -------
    LinearResult
        ``coef``, ``intercept``, ``history``, ``weights``.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> result = solve(X, X @ [1.0, 0.0, -2.0], learning_rate=0.1, n_passes=200)
    >>> result.coef.round(3) + 0.0
    array([ 1.,  0., -2.])
    """
    problem = as_problem(
        X, y, loss=loss, l2=l2, l1=l1, sample_weight=sample_weight, epsilon=epsilon
    )
    rate = None if isinstance(learning_rate, str) else learning_rate
    parts = {
        "policy": policy, "estimator": estimator, "step": step, "learning_rate": rate,
        "radius": radius, "importance": importance, "block_size": block_size,
    }  # fmt: skip
    given = {name: value for name, value in parts.items() if value is not None}
    method = replace(DEFAULT, **given)
    flag(shared_sample, "shared_sample")
    if record_loss is not None:
        choice(record_loss, "record_loss", LOSSES)
    theta = first_iterate(start, problem.n_features + as_flag(fit_intercept, "fit_intercept"))
    check_method(problem, method, batch_size, n_passes)
    check_sizes(method, len(theta), record_every, n_jobs)
    if wants_columns(problem, method, batch_size, shared_sample, path):
        problem = problem._replace(columns=transposed(as_matrix(X)))
    scale, scaled = np.empty(0), False
    if rate is None:
        scale, scaled, method = automatic(problem, method, learning_rate, batch_size, len(theta))
    if not (natural(seed) or isinstance(seed, np.random.SeedSequence)) or np.size(seed) == 0:
        raise ValueError(f"seed must be a whole number >= 0 or a list of them, got {shown(seed)}")
    seeds: list[Any] = [seed] if np.ndim(seed) == 0 else list(cast(Any, seed))
    plan = Plan(
        problem,
        method,
        batch_size or 0,
        shared_sample,
        theta,
        n_passes,
        record_every,
        scale,
        scaled,
    )
    plan.use_gram(record_loss)
    jobs = min(len(seeds), n_jobs or os.cpu_count() or 1)
    # One BLAS thread: runs are what is spread over cores, and their bits must not depend on it.
    with one_thread():
        if jobs == 1:
            outcomes = [plan.run(s, record_loss) for s in seeds]
        else:
            with ThreadPoolExecutor(jobs) as pool:
                outcomes = list(pool.map(lambda s: plan.run(s, record_loss), seeds))
    return plan.result(outcomes, alone=np.ndim(seed) == 0)


def wants_columns(
    problem: Problem, method: SCGD, batch_size: int | None, shared: bool, path: str
) -> bool:
    """Tell whether to walk by columns."""
    choice(path, "path", PATHS)
    along = MODES[type(method.estimator)] in DIRECTIONS
    if path == "columns" and (along or not shared):
        raise ValueError("path='columns' needs coordinate steps whose coordinates share a sample")
    if path == "rows" and batch_size is None:
        raise ValueError(
            "full batches (batch_size=None) run by columns; give a batch_size for rows"
        )
    if along or not shared:
        return False
    reads_less = batch_size is None or batch_size * problem.n_features > len(problem.targets)
    return reads_less if path == "auto" else path == "columns"


def automatic(
    problem: Problem, method: SCGD, rate: Any, batch_size: int | None, n_coords: int
) -> tuple[Floats, bool, SCGD]:
    """Return the scale of each coordinate's steps and the method with a rate relative to it."""
    if rate != "auto":
        raise ValueError(f"learning_rate must be 'auto', a number or a schedule, got {rate!r}")
    if MODES[type(method.estimator)] in DIRECTIONS:
        raise ValueError("learning_rate='auto' is for coordinate steps; give random directions one")
    scale = inverse_smoothness(problem, n_coords) / block_of(method, n_coords)
    schedule: Schedule = Constant(1.0)
    if batch_size is not None:
        # Slopes of the rounded hinge are bounded and seldom change: long steps do no harm.
        schedule = Linear() if problem.loss == HINGE else InverseTime(1.0, 10.0, per="pass")
    return scale, True, replace(method, learning_rate=schedule)


def first_iterate(start: Any, n_coords: int) -> Floats:
    """Return the first iterate as a new array."""
    if start is None:
        return np.zeros(n_coords)
    theta = reals(start, "start", f"be {n_coords} finite numbers")
    if theta.shape != (n_coords,) or not np.all(np.isfinite(theta)):
        raise ValueError(f"start must be {n_coords} finite numbers, got shape {theta.shape}")
    return theta


def check_method(problem: Problem, method: SCGD, batch_size: int | None, n_passes: float) -> None:
    """Refuse combinations that do not exist."""
    if type(method.estimator) not in MODES:
        raise ValueError(f"linear models have no estimator {method.estimator!r}")
    if method.policy.needs_gradient or method.policy.paced:
        raise ValueError(f"{type(method.policy).__name__} needs scgd.minimize")
    if problem.l1 > 0 and not isinstance(method.step, SGD):
        raise ValueError("the prox of l1 needs step='sgd'; other rules have no single step size")
    if batch_size is not None:
        whole(batch_size, "batch_size", 1, "be None or a whole number >= 1")
    if batch_size is None and MODES[type(method.estimator)] in DIRECTIONS:
        raise ValueError("random directions need a batch_size; full batches run by columns")
    number(n_passes, "n_passes", 0, 1e12, ends="(]", wanted="be positive and finite")


def check_sizes(
    method: SCGD, n_coords: int, record_every: float | None, n_jobs: int | None
) -> None:
    """Refuse weights that are not one per coordinate, and counts that count nothing."""
    weights = method.importance
    if callable(weights):
        raise ValueError("importance by phase is for scgd.minimize; solve takes fixed weights")
    if not isinstance(weights, str | None) and len(weights) != n_coords:
        raise ValueError(f"importance must be {n_coords} weights, got {len(weights)}")
    if record_every is not None:
        number(record_every, "record_every", 0, ends="(]", wanted="be None or positive")
    if n_jobs is not None:
        whole(n_jobs, "n_jobs", 1, "be None (all cores) or a whole number >= 1")
