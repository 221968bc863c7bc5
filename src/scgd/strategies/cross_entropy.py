"""Work for a laboratory whose method must see values before it asks again."""

from __future__ import annotations

import numpy as np

from scgd.blas import one_thread
from scgd.problem import Problem
from scgd.typing import Floats

FEW = 8
"""Values below which nothing is known of the spread."""
PER_COORDINATE = 3
"""Values per coordinate from which a parabola (two unknowns each, and one) can be fitted."""


def cross_entropy(problem: Problem, points: Floats, values: Floats) -> tuple[Floats, Floats]:
    r"""Return where to look around the best of what was measured: a mean and standard deviations.

    Of the n values the best quarter counts, ranked, with weights
    :math:`w_i \propto \log(m + 1/2) - \log i`. Their weighted mean :math:`c` and, coordinate by
    coordinate, their weighted standard deviation :math:`s_k`, at least :math:`u_k / (2 \sqrt n)`
    where :math:`u_k` is the coordinate's scale, tell where to look: a cross-entropy step. With
    :math:`n \ge 3 p` values the better half of them (and 3 p at least) is fitted by

    .. math:: a + \sum_k g_k z_k + h_k z_k^2 / 2, \qquad z = (x - c) / u,

    with a little ridge, and :math:`c` goes to its minimum, at most :math:`2 s_k` along each
    coordinate. Fewer than 8 values tell of no spread: it is the best point, and the scale.

    Parameters
    ----------
    problem
        Bounds and scale.
    points, values
        What was measured; only read.

    Examples
    --------
    >>> problem = Problem.check(np.zeros(2), scale=1.0)
    >>> points = np.random.default_rng(0).standard_normal((40, 2))
    >>> values = ((points - 0.5) ** 2).sum(axis=1)
    >>> cross_entropy(problem, points, values)[0].round(3)
    array([0.5, 0.5])
    """
    n, unit = len(values), problem.unit
    if n < FEW:
        return (points[np.argmin(values)] if n else problem.x0), unit
    order = np.argsort(values, kind="stable")
    best = points[order[: max(4, n // 4)]]
    weights = np.log(len(best) + 0.5) - np.log(np.arange(1, len(best) + 1))
    weights /= weights.sum()
    mean: Floats = weights @ best
    spread = np.maximum(np.sqrt(weights @ (best - mean) ** 2), 0.5 / np.sqrt(n) * unit)
    if n >= PER_COORDINATE * mean.size:
        better = order[: max(PER_COORDINATE * mean.size, n // 2)]
        most = 2 * spread / unit
        mean = mean + unit * step_to_minimum(points[better], values[better], mean, unit, most)
    return problem.clipped(mean), spread


@one_thread()
def step_to_minimum(
    points: Floats, values: Floats, centre: Floats, unit: Floats, most: Floats, ridge: float = 1e-3
) -> Floats:
    """Return the step to the minimum of a parabola per coordinate, in units and no longer."""
    p, z = centre.size, (points - centre) / unit
    design = np.column_stack([np.ones(len(z)), z, z**2 / 2])
    normal = design.T @ design
    normal[range(1, 2 * p + 1), range(1, 2 * p + 1)] *= 1 + ridge
    size = float(np.abs(values).max()) or 1.0  # products must not overflow
    try:
        found = np.linalg.solve(normal, design.T @ ((values - values[0]) / size))[1:]
    except np.linalg.LinAlgError:  # points that share a coordinate tell nothing of it
        return np.zeros(p)
    slopes, bends = np.split(np.nan_to_num(found), 2)
    steep = np.abs(slopes) >= most * bends  # also where it bends down: as far as it may go
    step: Floats = np.sign(-slopes) * most
    step[~steep] = -slopes[~steep] / bends[~steep]
    return step
