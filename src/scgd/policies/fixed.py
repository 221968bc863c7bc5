"""Sampling with given weights that never change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # whose rooms load when they are used

from scgd.checks import number, reals
from scgd.policies.base import LawPolicy
from scgd.policies.frozen import FixedLaw, fixed_law
from scgd.typing import Array, Floats

__all__ = ["FixedWeights", "coordinate_smoothness"]


@dataclass(frozen=True)
class FixedWeights(LawPolicy):
    """Draw coordinate *k* with a given probability, proportional to ``values[k]``.

    Parameters
    ----------
    values
        Non-negative numbers, one per coordinate, at least one of them positive. The coordinate
        smoothness of a linear loss (:func:`coordinate_smoothness`) is a classical choice.

    Examples
    --------
    >>> policy = FixedWeights((1.0, 3.0))
    >>> policy.weights(policy.init(2))
    array([0.25, 0.75])
    """

    values: tuple[float, ...] | Sequence[float]

    def __post_init__(self) -> None:
        weights = reals(self.values, "values", "be a list of finite numbers, one per coordinate")
        if weights.ndim != 1 or weights.size == 0 or not np.all(np.isfinite(weights)):
            raise ValueError(
                "FixedWeights values must be a list of finite numbers, one per coordinate"
            )
        if np.any(weights < 0) or weights.sum() == 0:
            raise ValueError(
                "FixedWeights values must be non-negative with a positive sum; "
                "a coordinate of weight 0 is never drawn"
            )
        object.__setattr__(self, "values", tuple(weights.tolist()))

    def init(self, n_coords: int, replace: bool = True) -> FixedLaw:
        """Return a fresh state."""
        if len(self.values) != n_coords:
            raise ValueError(
                f"FixedWeights has {len(self.values)} values for {n_coords} coordinates"
            )
        return fixed_law(np.asarray(self.values, np.float64))


def coordinate_smoothness(X: Array, *, curvature: float = 1.0, l2: float = 0.0) -> Floats:
    r"""Coordinate smoothness of a linear loss, :math:`L_k = c\, \|X_{:,k}\|^2 / n + \lambda`.

    Parameters
    ----------
    X
        Data of shape (n_samples, n_coords), dense or sparse.
    curvature
        Largest second derivative of the loss in its margin: 1 for squared, 1/4 for logistic.
    l2
        Coefficient of the penalty :math:`(\lambda/2)\|\theta\|^2`.

    Examples
    --------
    >>> coordinate_smoothness(np.array([[1.0, 2.0], [1.0, 0.0]]))
    array([1., 2.])
    """
    curvature, l2 = number(curvature, "curvature", 0), number(l2, "l2", 0)
    given: Any = X if scipy.sparse.issparse(X) else reals(X, "X")
    if given.ndim != 2 or min(given.shape) == 0:
        raise ValueError(f"X must have samples and coordinates, got shape {given.shape}")
    squares = given.multiply(given) if scipy.sparse.issparse(X) else np.square(given)
    means = np.asarray(squares.mean(axis=0), np.float64).ravel()
    if not np.all(np.isfinite(means)):
        raise ValueError("X must be finite, and so must its squares")
    return curvature * means + l2
