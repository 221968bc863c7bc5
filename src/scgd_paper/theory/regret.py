r"""The regret of the average iterate under importance weights (appendix B.3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.checks import number, reals, shown
from scgd.typing import Array, Floats

__all__ = ["regret_bound", "regret_terms"]


def regret_terms(gradients: Array, weights: Array, variance: Array | float = 0.0) -> Floats:
    r"""Return :math:`\sum_k E|g_t^{(k)}|^2 / d_t^{(k)}`, one per row.

    With :math:`E|g^{(k)}|^2 = |\partial_k f(\theta_t)|^2 + \mathrm{Var}\,g^{(k)}`. The proposition
    prints :math:`|\partial_k f|^2` alone, which is no bound where the gradient is noisy: its proof
    takes the expectation of :math:`\|D_t^{-1} D(\zeta_{t+1}) g_t\|^2`, which is the term here.

    Parameters
    ----------
    gradients, weights
        :math:`\partial_k f(\theta_t)` and :math:`d_t^{(k)}`, coordinates along the last axis.
    variance
        The variance of the estimate, per coordinate or common to all; 0 gives what is printed.

    Examples
    --------
    >>> regret_terms(np.array([[3.0, 1.0]]), np.array([[0.5, 0.5]]))
    array([20.])
    >>> regret_terms(np.array([[3.0, 1.0]]), np.array([[0.75, 0.25]]))
    array([16.])
    >>> regret_terms(np.array([[3.0, 1.0]]), np.array([[0.5, 0.5]]), variance=1.0)
    array([24.])
    """
    slopes, shares = finite(gradients, "gradients"), finite(weights, "weights")
    spread = finite(variance, "variance")
    if slopes.ndim == 0 or slopes.size == 0:
        raise ValueError(f"gradients must have coordinates, got shape {slopes.shape}")
    for name, array in (("weights", shares), ("variance", spread)):
        if not fits(array.shape, slopes.shape):
            raise ValueError(
                f"{name} must have the shape of gradients, {slopes.shape}, got {array.shape}"
            )
    if np.any(shares <= 0):
        raise ValueError("weights must be above zero: no bound holds where a weight is zero")
    if np.any(spread < 0):
        raise ValueError(f"variance must not be negative, got {shown(variance)}")
    with np.errstate(over="ignore"):
        return np.asarray(np.sum((np.square(slopes) + spread) / shares, axis=-1))


def finite(value: Any, name: str) -> Floats:
    """Return finite numbers of whatever shape."""
    found = reals(value, name)
    if not np.all(np.isfinite(found)):
        raise ValueError(f"{name} must be finite, got {shown(value)}")
    return found


def fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether an array of a shape can stand for one of another."""
    try:
        return np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


def regret_bound(terms: Array, gamma: float, distance: float) -> float:
    r"""Return the bound of appendix B.3 on the gap of the average of T iterates.

    .. math:: \frac{\|\theta_1 - \theta^\star\|^2}{2\gamma T}
              + \frac{\gamma}{2T} \sum_t \sum_k \frac{E|g_t^{(k)}|^2}{d_t^{(k)}}

    It holds for convex f, unbiased estimates and steps
    :math:`\gamma D_t^{-1} D(\zeta_{t+1}) g_t`; ``terms`` are those of :func:`regret_terms`, with
    the variance of the estimate in them.

    Parameters
    ----------
    terms
        One per step, from :func:`regret_terms`.
    gamma
        The constant rate.
    distance
        :math:`\|\theta_1 - \theta^\star\|`.

    Examples
    --------
    >>> regret_bound(np.array([2.0, 4.0]), gamma=0.5, distance=1.0)
    1.25
    """
    terms = reals(terms, "terms")
    n = terms.size
    if n == 0:
        raise ValueError("terms must hold at least one step, got none")
    if terms.ndim != 1 or not np.all(np.isfinite(terms)):
        raise ValueError(f"terms must be finite numbers, one per step, got shape {terms.shape}")
    gamma = number(gamma, "gamma", 0, ends="(]", wanted="be above zero")
    distance = np.float64(number(distance, "distance", 0))
    with np.errstate(over="ignore"):
        return float(distance**2 / (2 * gamma * n) + gamma / (2 * n) * np.sum(terms))
