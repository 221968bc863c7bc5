"""Is it the gradient? What jac promises along its own direction is compared with f, once."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from typing import Any

import numpy as np

from scgd.problem import Problem
from scgd.typing import Floats, Ints

__all__ = ["check_gradient"]

STEP = float(np.finfo(float).eps ** (1 / 3))
"""Where the errors of a central difference, by rounding and by curvature, are about equal."""
SHARE = 0.5
"""Part of a change by which the other one may differ: kinks and curvature differ by less."""


def check_gradient(
    problem: Problem, x: Floats, coords: Ints, gradient: Floats, noise: float = 0.0
) -> Generator[Any, Any, None]:
    r"""Compare partial derivatives at x with a difference of f; two evaluations, at most four.

    With :math:`d` the direction of the gradient in units of the problem, f should change by
    :math:`g^T (x_+ - x_-)` between :math:`x_\pm = x \pm h d`. A change of the other sign is an
    error, another size a warning. Nothing is said where noise, rounding or a failed evaluation
    hide the change, nor where a longer step agrees.

    Parameters
    ----------
    problem
        Its unit and its bounds.
    x, coords, gradient
        The point, and the partial derivatives along some coordinates.
    noise
        The standard deviation of a value, where the two do not share a sample.
    """
    direction = np.zeros(x.size)
    direction[coords] = gradient * problem.unit[coords]
    most = float(np.abs(direction).max(initial=0.0))
    if not 0 < most < np.inf:
        return
    direction /= most  # squares do not overflow
    direction *= problem.unit / float(np.linalg.norm(direction))
    for h in (STEP, 100 * STEP):
        up, down = problem.clipped(x + h * direction), problem.clipped(x - h * direction)
        high, low = yield np.stack([up, down])
        promised, seen = float(gradient @ (up - down)[coords]), float(high - low)
        hidden = 4.0 * (noise + float(np.spacing(max(abs(high), abs(low)))))
        size = max(abs(promised), abs(seen))
        if not size > hidden or abs(promised - seen) <= SHARE * size + hidden:
            return
    told = f"along its own direction jac promises a change of {promised:.3g}, fun has {seen:.3g}"
    if promised * seen < 0 and abs(seen) > SHARE * abs(promised):
        raise ValueError(f"jac has the wrong sign: {told}; return the gradient of fun")
    warnings.warn(f"jac is not the gradient of fun: {told}", RuntimeWarning, stacklevel=2)
