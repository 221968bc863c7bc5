"""``solve``: minimise the penalised empirical risk of a linear model and record the way there."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from scgd.estimators import FirstOrder
from scgd.linear.data import Problem, as_data, empty_data, frozen, transposed
from scgd.linear.losses import CORNERS, LOSSES, SQUARED
from scgd.linear.objective import Quadratic, objective, penalties, quadratic
from scgd.linear.smoothness import inverse_smoothness
from scgd.linear.walks import DIRECTIONS, MODES, Run, Timetable, block_of
from scgd.policies import Policy
from scgd.recipes import Recipe
from scgd.schedules import Constant, InverseTime, Schedule
from scgd.steps import SGD, StepRule
from scgd.typing import Array, Floats

__all__ = ["LinearResult", "as_problem", "solve"]

CHUNK = 200_000
SNAPSHOT_FLOATS = 4_000_000
PATHS = ("auto", "rows", "columns")
RECIPE = Recipe(
    "linear",
    estimator=FirstOrder(),
    step=SGD(),
    learning_rate=InverseTime(1.0, 10.0, per="pass"),
    radius=Constant(1e-3),
    relative_rate=False,
    relative_radius=False,
)


@dataclass
class LinearResult:
    """What :func:`solve` returns; with several seeds, arrays have one row per run.

    Attributes
    ----------
    coef, intercept
        The last iterate.
    history
        Arrays ``pass``, ``queries``, ``seconds`` and ``loss`` (the penalised objective on all the
        data). Seconds are those of the compiled loop, records excluded, spread evenly over steps.
    weights
        The sampling law learned.
    recipe
        What ran.
    """

    coef: Floats
    intercept: Any
    history: dict[str, Any]
    weights: Floats
    recipe: Recipe


def as_problem(
    X: Any,
    y: Any,
    *,
    loss: str = "squared",
    l2: float = 0.0,
    l1: float = 0.0,
    sample_weight: Any = None,
    epsilon: float | None = None,
) -> Problem:
    """Check the data of a linear problem and lay it out for compiled code.

    Examples
    --------
    >>> as_problem(np.eye(2), [1.0, -1.0], loss="logistic").targets
    array([ 1., -1.])
    """
    X = as_matrix(X)
    targets = np.ascontiguousarray(y, np.float64)
    if targets.shape != (X.shape[0],):
        raise ValueError(f"y must have one target for each of {X.shape[0]} rows, got {np.shape(y)}")
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {LOSSES}, got {loss!r}")
    check_targets(targets, loss)
    epsilon = CORNERS.get(loss, 0.0) if epsilon is None else epsilon
    for name, number in (("l2", l2), ("l1", l1), ("epsilon", epsilon)):
        if not (np.isfinite(number) and number >= 0):
            raise ValueError(f"{name} must be finite and not negative, got {number!r}")
    return Problem(
        rows=as_data(X),
        columns=empty_data(X.dtype),
        targets=frozen(targets),
        weights=frozen(as_weights(sample_weight, len(targets))),
        n_features=X.shape[1],
        loss=LOSSES.index(loss),
        epsilon=float(epsilon),
        l2=float(l2),
        l1=float(l1),
    )


def as_matrix(X: Any) -> Any:
    """Return a finite float matrix, dense or sparse, in its own precision where that is a float."""
    if not sparse.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must be a matrix with rows and columns, got shape {X.shape}")
    if X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
    entries = X.data if sparse.issparse(X) else X
    if not np.isfinite(entries.sum()) and not np.all(np.isfinite(entries)):
        raise ValueError("X has NaN or infinite entries; impute or drop them first")
    return X


def check_targets(targets: Floats, loss: str) -> None:
    """Refuse targets that a loss cannot read."""
    if not np.all(np.isfinite(targets)):
        raise ValueError("y has NaN or infinite targets; drop those rows first")
    signs = loss in ("logistic", "hinge", "squared-hinge")
    if signs and not np.all(np.abs(targets) == 1.0):
        raise ValueError(f"targets of the {loss} loss must be -1 or 1, got {targets[:5]}...")


def as_weights(sample_weight: Any, n_samples: int) -> Floats:
    """Return sample weights of mean one; empty when there are none."""
    if sample_weight is None:
        return np.empty(0)
    weights = np.ascontiguousarray(sample_weight, np.float64)
    if weights.shape != (n_samples,) or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError(f"sample_weight must be {n_samples} finite numbers >= 0")
    if weights.sum() == 0:
        raise ValueError("sample_weight is zero for all samples; give some a positive weight")
    return weights / weights.mean()


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
        full batches, by :math:`1/(10 + \\text{passes})` of it otherwise.
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
    recipe = RECIPE.override(
        policy=policy,
        estimator=estimator,
        step=step or SGD(),
        learning_rate=rate,
        radius=radius,
        importance=importance,
        block_size=block_size,
    )
    theta = first_iterate(start, problem.n_features + fit_intercept)
    check_method(problem, recipe, batch_size, n_passes)
    if wants_columns(problem, recipe, batch_size, shared_sample, path):
        problem = problem._replace(columns=transposed(as_matrix(X)))
    scale, scaled = np.empty(0), False
    if rate is None:
        scale, scaled, recipe = automatic(problem, recipe, learning_rate, batch_size, len(theta))
    seeds = [seed] if np.ndim(seed) == 0 else list(seed)  # type: ignore[call-overload,list-item]
    plan = Plan(
        problem,
        recipe,
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
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(jobs) as pool:
        outcomes = list(pool.map(lambda s: plan.run(s, record_loss), seeds))
    return plan.result(outcomes, alone=np.ndim(seed) == 0)


def wants_columns(
    problem: Problem, recipe: Recipe, batch_size: int | None, shared: bool, path: str
) -> bool:
    """Tell whether to walk by columns."""
    if path not in PATHS:
        raise ValueError(f"path must be one of {PATHS}, got {path!r}")
    along = MODES[type(recipe.estimator)] in DIRECTIONS
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
    problem: Problem, recipe: Recipe, rate: Any, batch_size: int | None, n_coords: int
) -> tuple[Floats, bool, Recipe]:
    """Return the scale of each coordinate's steps and the recipe with a rate relative to it."""
    if rate != "auto":
        raise ValueError(f"learning_rate must be 'auto', a number or a schedule, got {rate!r}")
    if MODES[type(recipe.estimator)] in DIRECTIONS:
        raise ValueError("learning_rate='auto' is for coordinate steps; give random directions one")
    scale = inverse_smoothness(problem, n_coords, np.empty(0)) / block_of(recipe, n_coords)
    schedule = Constant(1.0) if batch_size is None else InverseTime(1.0, 10.0, per="pass")
    return scale, True, replace(recipe, learning_rate=schedule)


def first_iterate(start: Any, n_coords: int) -> Floats:
    """Return the first iterate as a new array."""
    if start is None:
        return np.zeros(n_coords)
    theta = np.array(start, np.float64)
    if theta.shape != (n_coords,) or not np.all(np.isfinite(theta)):
        raise ValueError(f"start must be {n_coords} finite numbers, got shape {theta.shape}")
    return theta


def check_method(problem: Problem, recipe: Recipe, batch_size: int | None, n_passes: float) -> None:
    """Refuse combinations that do not exist."""
    if type(recipe.estimator) not in MODES:
        raise ValueError(f"linear models have no estimator {recipe.estimator!r}")
    if recipe.policy.needs_gradient or recipe.policy.paced:
        raise ValueError(f"{type(recipe.policy).__name__} needs scgd.minimize")
    if problem.l1 > 0 and not isinstance(recipe.step, SGD):
        raise ValueError("the prox of l1 needs step='sgd'; other rules have no single step size")
    if batch_size is not None and (int(batch_size) != batch_size or batch_size < 1):
        raise ValueError(f"batch_size must be None or a whole number >= 1, got {batch_size!r}")
    if batch_size is None and MODES[type(recipe.estimator)] in DIRECTIONS:
        raise ValueError("random directions need a batch_size; full batches run by columns")
    if not (np.isfinite(n_passes) and n_passes > 0):
        raise ValueError(f"n_passes must be positive and finite, got {n_passes!r}")


class Plan:
    """What the runs of one call share: the timetable, the records, the result's shape."""

    def __init__(
        self,
        problem: Problem,
        recipe: Recipe,
        batch: int,
        shared: bool,
        start: Floats,
        n_passes: float,
        record_every: float | None,
        scale: Floats,
        scaled: bool,
    ) -> None:
        n_coords = len(start)
        block = block_of(recipe, n_coords)
        self.problem, self.recipe, self.start = problem, recipe, start
        self.batch, self.shared = int(batch), bool(shared)
        self.form: Quadratic | None = None
        self.n_steps = max(1, round(n_passes * n_coords / block))
        every = n_passes if record_every is None else record_every
        self.stride = min(self.n_steps, max(1, round(every * n_coords / block)))
        self.n_records = self.n_steps // self.stride
        self.table = Timetable(recipe, n_coords, self.n_steps, block)
        weights = recipe.importance
        self.scale, self.scaled = scale, scaled
        if not isinstance(weights, str | None):
            self.scale = np.array(weights) * (scale if len(scale) > 0 else 1.0)
        n_evals = recipe.estimator.n_evals(block) if shared else 2 * block
        steps = np.arange(self.n_records + 1) * self.stride
        self.passes, self.queries = steps * block / n_coords, steps * n_evals

    def run(self, seed: Any, record_loss: str | None) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the last iterate, the weights, the losses and the seconds of one run."""
        run = Run(
            self.problem, self.recipe, self.batch, self.shared, self.start, seed,
            self.scale, self.scaled,
        )  # fmt: skip
        at_once = max(1, min(SNAPSHOT_FLOATS // len(self.start), CHUNK // self.stride))
        losses, seconds = [self.losses(self.start[None], record_loss)], [np.zeros(1)]
        for first in range(0, self.n_records, at_once):
            n = min(at_once, self.n_records - first)
            snapshots = np.empty((n, len(self.start)))
            began = time.perf_counter()
            self.advance(run, first * self.stride, n * self.stride, snapshots)
            spent = time.perf_counter() - began
            self.check(run.walk.theta)
            seconds.append(seconds[-1][-1] + spent * np.arange(1, n + 1) / n)
            losses.append(self.losses(snapshots, record_loss))
        left = self.n_steps - self.n_records * self.stride
        if left:
            self.advance(run, self.n_records * self.stride, left, np.empty((0, len(self.start))))
        self.check(run.walk.theta)
        return run.walk.theta, run.weights, np.concatenate(losses), np.concatenate(seconds)

    def advance(self, run: Run, first: int, n: int, snapshots: Floats) -> None:
        """Advance a run in chunks that end with records, or between them if those are far apart."""
        if len(snapshots) > 1 or n <= CHUNK:
            run.advance(self.table, first, n, self.stride, snapshots)
            return
        for done in range(0, n, CHUNK):
            run.advance(self.table, first + done, min(CHUNK, n - done), n, snapshots[:0])
        snapshots[:] = run.walk.theta

    def losses(self, thetas: Floats, record_loss: str | None) -> Floats:
        """Return the recorded objective at each row of ``thetas``."""
        problem = self.problem
        if record_loss is not None:
            problem = problem._replace(loss=LOSSES.index(record_loss))
        if self.form is not None:
            return self.form(thetas) + penalties(problem, thetas)
        return objective(problem, thetas)

    def use_gram(self, record_loss: str | None) -> None:
        """Record squared losses through the Gram matrix where many are recorded."""
        loss = self.problem.loss if record_loss is None else LOSSES.index(record_loss)
        dense, plain = self.problem.rows.dense.size > 0, len(self.start) == self.problem.n_features
        if loss == SQUARED and dense and plain and 4 * self.n_records > len(self.start):
            self.form = quadratic(self.problem)

    def check(self, theta: Floats) -> None:
        """Refuse to return a run that diverged."""
        if not np.all(np.isfinite(theta)):
            raise FloatingPointError(
                f"the run diverged with learning_rate={self.recipe.learning_rate!r}; "
                "lower it, standardise the columns of X or use another step rule"
            )

    def result(self, outcomes: list[Any], *, alone: bool) -> LinearResult:
        """Stack the outcomes of the runs."""
        theta, weights, losses, seconds = (
            part[0] if alone else np.stack(part) for part in zip(*outcomes, strict=True)
        )
        n_features = self.problem.n_features
        has_intercept = len(self.start) > n_features
        intercept = theta[..., n_features] if has_intercept else np.zeros(theta.shape[:-1])
        history = {
            "pass": self.passes,
            "queries": self.queries,
            "seconds": seconds,
            "loss": losses,
        }
        if alone:
            intercept = float(intercept)
        return LinearResult(theta[..., :n_features], intercept, history, weights, self.recipe)
