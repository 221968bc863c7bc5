r"""Minimise to a tolerance: full batches by columns, until no coordinate can gain much.

Every coordinate steps by its own :math:`1/L_k`, so nothing needs tuning; where the curvature of the
loss fades, by a safe Newton step. The stopping test sums what each coordinate could still gain
alone,

.. math:: \sum_k \frac{L_k}{2} (\theta_k - \theta_k^+)^2 \le \text{tol} \cdot f(0),

with :math:`\theta_k^+` the (prox) step of coordinate *k*; it costs one pass and is made at passes
that grow by a tenth. Dense data with an intercept is centred on the fly, without a copy: the
intercept then hardly interacts with the coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import njit

from scgd.linear.columns import (
    compute_margins,
    curved_sums,
    intercept_sum,
    partial_sum,
    safe_curvature,
)
from scgd.linear.data import Problem
from scgd.linear.losses import HINGE
from scgd.linear.objective import objective
from scgd.linear.rows import FIRST, soft_threshold
from scgd.linear.smoothness import first_reach, inverse_smoothness
from scgd.linear.solver import RECIPE
from scgd.linear.walks import Run, Timetable
from scgd.policies import Policy
from scgd.schedules import Constant
from scgd.typing import Floats

__all__ = ["Descent", "descend"]

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
    targets, weights, loss, epsilon = problem.targets, problem.weights, problem.loss, problem.epsilon
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


def descend(
    problem: Problem,
    start: Floats,
    policy: Policy,
    *,
    tol: float,
    max_passes: int,
    seed: int,
    report: Callable[[int, float], Any] | None = None,
) -> Descent:
    """Minimise a problem that has columns; the plain hinge by rounding it less and less.

    Parameters
    ----------
    problem, start, policy, seed
        As elsewhere; the intercept, if any, comes last in ``start``.
    tol, max_passes
        When to stop.
    report
        Called at each test with the passes made and the possible gain relative to f(0).
    """
    means = column_means(problem, len(start))
    theta = start.copy()
    if len(means) > 0:
        theta[-1] += means @ theta[:-1]
    if problem.loss == HINGE and problem.epsilon == 0.0:
        descent = descend_rounded(problem, theta, means, policy, tol, max_passes, seed, report)
    else:
        descent = descend_smooth(problem, theta, means, policy, tol, max_passes, seed, report)
    if len(means) > 0:
        descent.theta[-1] -= means @ descent.theta[:-1]
    if not np.all(np.isfinite(descent.theta)):
        raise FloatingPointError("the fit diverged; standardise the columns of X")
    return descent


def descend_rounded(
    problem: Problem,
    theta: Floats,
    means: Floats,
    policy: Policy,
    tol: float,
    max_passes: int,
    seed: int,
    report: Any,
) -> Descent:
    """Follow the minimum of the hinge rounded by narrower and narrower parabolas."""
    n_passes, descent = 0, None
    for epsilon in ROUNDINGS:
        left = max(1, (max_passes - n_passes) // 2 if epsilon != ROUNDINGS[-1] else max_passes)
        rounded = problem._replace(epsilon=epsilon)
        descent = descend_smooth(rounded, theta, means, policy, tol, left, seed, report)
        theta, n_passes = descent.theta, n_passes + descent.n_passes
    assert descent is not None
    return replace(descent, n_passes=n_passes)


def descend_smooth(
    problem: Problem,
    theta: Floats,
    means: Floats,
    policy: Policy,
    tol: float,
    max_passes: int,
    seed: int,
    report: Any,
) -> Descent:
    """Take passes until the stopping test is met."""
    n_coords = len(theta)
    scale = inverse_smoothness(problem, n_coords, means)
    reach = first_reach(problem, n_coords, means)
    recipe = replace(RECIPE, policy=policy, learning_rate=Constant(1.0))
    run = Run(problem, recipe, 0, True, theta, seed, scale, True, means, reach)
    table = Timetable(recipe, n_coords, max_passes * n_coords, 1)
    reference = float(objective(problem, np.zeros((1, n_coords)))[0])
    margins, done, gain = np.empty(len(problem.targets)), 0, np.inf
    while done < max_passes and not gain <= tol * reference:
        n_passes = min(max(1, done // 10), max_passes - done)
        for first in range(0, n_passes * n_coords, MOST_STEPS):
            n = min(MOST_STEPS, n_passes * n_coords - first)
            run.advance(table, done * n_coords + first, n, n, np.empty((0, n_coords)))
        done += n_passes
        gain = possible_gain(problem, run.walk.theta, means, run.walk.reach, scale, margins)
        if report is not None:
            report(done, gain / reference if reference > 0 else gain)
    return Descent(run.walk.theta, done, bool(gain <= tol * reference), run.weights)
