r"""Minimise to a tolerance: full batches by columns, until no coordinate can gain much.

Every coordinate steps by its own :math:`1/L_k`, so nothing needs tuning; where the curvature of the
loss fades, by a safe Newton step. The stopping test sums what each coordinate could still gain
alone,

.. math:: \sum_k \frac{L_k}{2} (\theta_k - \theta_k^+)^2 \le \text{tol} \cdot f_0,

with :math:`\theta_k^+` the (prox) step of coordinate *k* and :math:`f_0` the loss of the best
constant; it costs one pass and is made at passes that grow by a tenth. Dense data with an intercept
is centred on the fly, without a copy: the intercept then hardly interacts with the coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scgd.compiling import njit
from scgd.linear.columns import (
    compute_margins,
    curved_sums,
    intercept_sum,
    partial_sum,
    safe_curvature,
)
from scgd.linear.data import Problem
from scgd.linear.losses import HINGE, HUBER, SQUARED
from scgd.linear.objective import objective
from scgd.linear.rows import FIRST, soft_threshold
from scgd.linear.smoothness import first_reach, inverse_smoothness
from scgd.linear.solver import RECIPE
from scgd.linear.walks import Run, Timetable
from scgd.policies import Policy
from scgd.schedules import Constant
from scgd.typing import Floats

__all__ = ["Descent", "descend"]

Report = Callable[[int, float, Floats], bool]
MOST_STEPS = 200_000
ROUNDINGS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)


@dataclass
class Descent:
    """Where a descent ended.

    Attributes
    ----------
    theta
        The iterate, the intercept last.
    n_passes
        Passes made.
    converged
        Whether the stopping test was met.
    weights
        The sampling law learned.
    """

    theta: Floats
    n_passes: int
    converged: bool
    weights: Floats


@njit(cache=True, error_model="numpy", nogil=True)
def possible_gain(problem, theta, means, reach, scale, margins):
    """Return what the coordinates could still gain, each alone."""
    dense, indptr, indices, values = problem.columns
    targets, weights, loss, epsilon = (
        problem.targets,
        problem.weights,
        problem.loss,
        problem.epsilon,
    )
    compute_margins(problem, theta, means, margins)
    total, n_samples = 0.0, len(margins)
    for k in range(len(theta)):
        unit, inside = scale[k], k < problem.n_features
        mean = means[k] if len(means) > 0 and inside else 0.0
        l2, l1 = (problem.l2, problem.l1) if inside else (0.0, 0.0)
        if len(reach) > 0:
            slope, curve = curved_sums(
                dense, indptr, indices, values, targets, weights,
                loss, epsilon, k, mean, reach[k], margins,
            )  # fmt: skip
            slope = slope / n_samples + l2 * theta[k]
            curve = safe_curvature(loss, abs(slope) + l1, curve / n_samples + l2, reach[k])
            unit = max(unit, 1.0 / curve if curve > 0.0 else 0.0)
        elif inside:
            slope = partial_sum(
                dense, indptr, indices, values, targets, weights,
                FIRST, loss, epsilon, k, mean, 1.0, margins,
            ) / n_samples + l2 * theta[k]  # fmt: skip
        else:
            slope = intercept_sum(targets, weights, FIRST, loss, epsilon, 1.0, margins) / n_samples
        if unit > 0.0:
            move = theta[k] - soft_threshold(theta[k] - unit * slope, unit * l1)
            total += 0.5 * move * move / unit
    return total


def column_means(problem: Problem, n_coords: int) -> Floats:
    """Return the weighted means of dense columns where there is an intercept, else nothing."""
    dense = problem.columns.dense
    if len(dense) == 0 or n_coords == problem.n_features:
        return np.empty(0)
    weights = problem.weights if len(problem.weights) > 0 else np.ones(dense.shape[1])
    return np.asarray(dense @ weights / weights.sum(), np.float64)


def null_model(problem: Problem, n_coords: int) -> Floats:
    """Return zero coefficients with the intercept that fits real targets best, up to the loss."""
    theta = np.zeros(n_coords)
    if n_coords > problem.n_features and problem.loss in (SQUARED, HUBER):
        weights = problem.weights if len(problem.weights) > 0 else None
        theta[-1] = np.average(problem.targets, weights=weights)
    return theta


def descend(
    problem: Problem,
    start: Floats | None,
    policy: Policy,
    *,
    tol: float,
    max_passes: int,
    seed: Any,
    fit_intercept: bool = True,
    report: Report | None = None,
) -> Descent:
    """Minimise a problem that has columns; the plain hinge by rounding it less and less.

    Parameters
    ----------
    problem, policy, seed
        As elsewhere.
    start
        First iterate, the intercept last (default: the best constant).
    tol, max_passes
        When to stop.
    fit_intercept
        Whether there is one.
    report
        Called at each test with the passes made, the possible gain relative to the best constant
        and the iterate; returning True stops.
    """
    n_coords = problem.n_features + fit_intercept
    null = null_model(problem, n_coords)
    theta = null.copy() if start is None else start.copy()
    means = column_means(problem, n_coords)
    if len(means) > 0:
        theta[-1] += means @ theta[:-1]
    task = Task(problem, null, means, policy, tol, max_passes, seed, report)
    if problem.loss == HINGE and problem.epsilon == 0.0:
        descent = descend_rounded(task, theta)
    else:
        descent = descend_smooth(task, theta)
    if not np.all(np.isfinite(descent.theta)):
        raise FloatingPointError(
            "the fit diverged; standardise the columns of X, for instance with StandardScaler"
        )
    return replace(descent, theta=uncentred(descent.theta, means))


@dataclass(frozen=True)
class Task:
    """What stays the same during a descent."""

    problem: Problem
    null: Floats
    means: Floats
    policy: Policy
    tol: float
    max_passes: int
    seed: Any
    report: Report | None


def uncentred(theta: Floats, means: Floats) -> Floats:
    """Return the iterate with the intercept of the columns as they are."""
    theta = theta.copy()
    if len(means) > 0:
        theta[-1] -= means @ theta[:-1]
    return theta


def descend_rounded(task: Task, theta: Floats) -> Descent:
    """Follow the minimum of the hinge rounded by narrower and narrower parabolas."""
    n_passes = 0
    for epsilon in ROUNDINGS:
        left = task.max_passes - n_passes
        most = left if epsilon == ROUNDINGS[-1] else max(1, left // 2)
        rounded = task.problem._replace(epsilon=epsilon)
        descent = descend_smooth(replace(task, problem=rounded, max_passes=max(1, most)), theta)
        theta, n_passes = descent.theta, n_passes + descent.n_passes
    return replace(descent, n_passes=n_passes)


def descend_smooth(task: Task, theta: Floats) -> Descent:
    """Take passes until the stopping test is met."""
    problem, means, n_coords = task.problem, task.means, len(theta)
    scale = inverse_smoothness(problem, n_coords, means)
    reach = first_reach(problem, n_coords, means)
    recipe = replace(RECIPE, policy=task.policy, learning_rate=Constant(1.0))
    run = Run(problem, recipe, 0, True, theta, task.seed, scale, True, means, reach)
    table = Timetable(recipe, n_coords, task.max_passes * n_coords, 1)
    reference = float(objective(problem, task.null[None])[0])
    margins, done = np.empty(len(problem.targets)), 0
    while True:
        gain = possible_gain(problem, run.walk.theta, means, run.walk.reach, scale, margins)
        converged = bool(gain <= task.tol * reference)
        if task.report is not None and done > 0:
            relative = gain / reference if reference > 0 else gain
            converged = task.report(done, relative, uncentred(run.walk.theta, means)) or converged
        if done == task.max_passes or (converged and done > 0):
            return Descent(run.walk.theta, done, converged, run.weights)
        n_passes = min(max(1, done // 10), task.max_passes - done)
        for first in range(0, n_passes * n_coords, MOST_STEPS):
            n = min(MOST_STEPS, n_passes * n_coords - first)
            run.advance(table, done * n_coords + first, n, n, np.empty((0, n_coords)))
        done += n_passes
