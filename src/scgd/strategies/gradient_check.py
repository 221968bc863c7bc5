"""Is it the gradient? What jac promises along its own direction is compared with f, once."""

from __future__ import annotations

import warnings

import numpy as np

from scgd.problem import Problem
from scgd.strategies.asks import Asking, Gradient
from scgd.strategies.budget import Budget
from scgd.typing import Floats, Ints

STEP = float(np.finfo(float).eps ** (1 / 3))
"""Where the errors of a central difference, by rounding and by curvature, are about equal."""
SHARE = 0.5
"""Part of a change by which the other one may differ: kinks and curvature differ by less."""
MOST = 1000
"""Coordinates that are looked at: a wrong sign shows in any of them."""
SAMPLES = 16
"""Samples of a noisy gradient: the error of their mean is a quarter of one's, known to a fifth."""


def check_gradient(
    problem: Problem, x: Floats, budget: Budget, coords: Ints | None = None
) -> Asking:
    r"""Compare partial derivatives at x with a difference of f, along their own direction.

    With :math:`d` the direction of the gradient in units of the problem, f should change by
    :math:`g^T (x_+ - x_-)` between :math:`x_\pm = x \pm h d`. A change of the other sign is an
    error, another size a warning. Nothing is said where rounding or a failed evaluation hide the
    change, nor where a longer step agrees. It costs one gradient and two evaluations, at most
    four, and is left out where that is more than a tenth of what is left.

    Where each value has a sample of its own, so has each gradient: means over ``SAMPLES`` of both
    are compared, beyond four of their standard errors. The direction comes from another sample,
    so neither mean is chosen.

    Parameters
    ----------
    problem
        Its unit and its bounds.
    x
        The point.
    budget
        What is left.
    coords
        The coordinates to look at (default: the first ``MOST``).
    """
    n = SAMPLES if problem.sampled else 1
    if budget.left < 10 * 5 * n:
        return
    coords = np.arange(min(x.size, MOST)) if coords is None else coords[:MOST]
    gradient = yield Gradient(x, coords)
    direction = np.zeros(x.size)
    direction[coords] = gradient * problem.unit[coords]
    most = float(np.abs(direction).max(initial=0.0))
    if not 0 < most < np.inf:
        return
    direction /= most  # squares do not overflow
    direction *= problem.unit / float(np.linalg.norm(direction))
    gradients = np.asarray(gradient)[None]
    if problem.sampled:
        gradients = np.empty((n, len(coords)))
        for row in gradients:
            row[:] = yield Gradient(x, coords)
    for h in (STEP, 100 * STEP):
        up, down = problem.clipped(x + h * direction), problem.clipped(x - h * direction)
        values = yield np.broadcast_to(np.stack([up, down]), (n, 2, x.size))
        values = np.reshape(values, (n, 2))
        changes, slopes = values[:, 0] - values[:, 1], gradients @ (up - down)[coords]
        promised, seen = float(slopes.mean()), float(changes.mean())
        spread = np.hypot(slopes.std(ddof=min(1, n - 1)), changes.std(ddof=min(1, n - 1)))
        hidden = 4.0 * (float(spread) / n**0.5 + float(np.spacing(float(np.abs(values).max()))))
        size = max(abs(promised), abs(seen))
        if not size > hidden or abs(promised - seen) <= SHARE * size + hidden:
            return
    told = f"along its own direction jac promises a change of {promised:.3g}, fun has {seen:.3g}"
    if promised * seen < 0 and abs(seen) > SHARE * abs(promised):
        raise ValueError(f"jac has the wrong sign: {told}; return the gradient of fun")
    warnings.warn(f"jac is not the gradient of fun: {told}", RuntimeWarning, stacklevel=2)
