"""Work for a laboratory whose method must see values before it asks again."""

from __future__ import annotations

import numpy as np

from scgd.problem import Problem
from scgd.typing import Floats

__all__ = ["propose"]

FEW = 8
"""Values below which nothing is known of the spread."""
PER_COORDINATE = 3
"""Values per coordinate from which a parabola (two unknowns each, and one) can be fitted."""


def propose(
    problem: Problem, points: Floats, values: Floats, rng: np.random.Generator, n_proposed: int = 0
) -> Floats:
    r"""Return one point around the best of everything that was measured, whoever asked for it.

    Of the n values the best quarter counts, ranked, with weights
    :math:`w_i \propto \log(m + 1/2) - \log i`. Their weighted mean :math:`c` and, coordinate by
    coordinate, their weighted standard deviation :math:`s_k`, at least :math:`u_k / (2 \sqrt n)`
    where :math:`u_k` is the coordinate's scale, tell where to look: a cross-entropy step. With
    :math:`n \ge 3 p` values the better half of them (and 3 p at least) is fitted by

    .. math:: a + \sum_k g_k z_k + h_k z_k^2 / 2, \qquad z = (x - c) / u,

    with a little ridge, and :math:`c` goes to its minimum, at most :math:`2 s_k` along each
    coordinate. Points are drawn from the normal distribution around c with standard deviations s;
    every fifth is c itself. Over a search space, and where bounds are finite and the model is
    cheap, a Gaussian process proposes instead
    (:func:`~scgd.strategies.gaussian_process.propose_by_model`).

    Parameters
    ----------
    problem
        Bounds, scale and space.
    points, values
        What was measured; only read.
    rng
        Where the point comes from.
    n_proposed
        How many points were proposed before.

    Examples
    --------
    >>> problem = Problem.check(np.zeros(2), scale=1.0)
    >>> points = np.random.default_rng(0).standard_normal((40, 2))
    >>> values = ((points - 0.5) ** 2).sum(axis=1)
    >>> propose(problem, points, values, np.random.default_rng(1)).round(3)
    array([0.5, 0.5])
    """
    from scgd.strategies.gaussian_process import models, propose_by_model

    if models(problem, len(values)) and len(values):
        return propose_by_model(problem, points, values, rng)
    centre, spread = cross_entropy(problem, points, values)
    if len(values) < FEW or n_proposed % 5:
        centre = centre + spread * rng.standard_normal(centre.size)
    return problem.clipped(centre)


def cross_entropy(problem: Problem, points: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviations of the distribution to draw from."""
    n, unit = len(values), problem.unit
    if n < FEW:
        return (points[np.argmin(values)] if n else problem.x0), unit
    best = points[np.argsort(values, kind="stable")[: max(4, n // 4)]]
    weights = np.log(len(best) + 0.5) - np.log(np.arange(1, len(best) + 1))
    weights /= weights.sum()
    mean: Floats = weights @ best
    spread = np.maximum(np.sqrt(weights @ (best - mean) ** 2), 0.5 / np.sqrt(n) * unit)
    if n >= PER_COORDINATE * mean.size:
        mean = mean + unit * step_to_minimum(points, values, mean, unit, 2 * spread / unit)
    return problem.clipped(mean), spread


def step_to_minimum(
    points: Floats, values: Floats, centre: Floats, unit: Floats, most: Floats, ridge: float = 1e-3
) -> Floats:
    """Return the step to the minimum of a parabola per coordinate, in units and no longer."""
    p, n = centre.size, max(PER_COORDINATE * centre.size, len(values) // 2)
    better = np.argsort(values, kind="stable")[:n]
    z, seen = (points[better] - centre) / unit, values[better]
    design = np.column_stack([np.ones(len(z)), z, z**2 / 2])
    normal = design.T @ design
    normal[range(1, 2 * p + 1), range(1, 2 * p + 1)] *= 1 + ridge
    size = float(np.abs(seen).max()) or 1.0  # products must not overflow
    try:
        found = np.linalg.solve(normal, design.T @ ((seen - seen[0]) / size))[1:]
    except np.linalg.LinAlgError:  # points that share a coordinate tell nothing of it
        return np.zeros(p)
    slopes, bends = np.split(found, 2)
    downhill = np.where(bends > 0, -slopes / np.maximum(bends, 1e-300), -np.sign(slopes) * most)
    step: Floats = np.clip(np.nan_to_num(downhill), -most, most)
    return step
