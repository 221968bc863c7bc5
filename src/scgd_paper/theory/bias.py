r"""How far an estimate is from the gradient, in the mean (Proposition 1)."""

from __future__ import annotations

import math

import numpy as np

from scgd.checks import choice, count, flag, number

__all__ = ["bias_constant"]

ESTIMATORS = ("forward", "central", "gaussian", "sphere")


def bias_constant(
    smoothness: float,
    n_coords: int,
    estimator: str = "forward",
    norm: str = "sup",
    *,
    sharp: bool = False,
) -> float:
    r"""Return c such that the bias of an estimate with radius h is at most c h.

    Proposition 1 has :math:`c = \tfrac L2 \sqrt{\int \|x\|^6 \nu(dx)}` for directions x of law
    :math:`\nu` with second moments :math:`I_p`:

    - differences at single coordinates: :math:`c = L/2` in the sup norm and :math:`\sqrt p\,L/2` in
      the Euclidean one (the paper states L/2 for the latter, which fails for
      :math:`f = \|x\|^2/2`);
    - Gaussian smoothing: :math:`c = \tfrac L2 \sqrt{p(p+2)(p+4)}`, in both norms;
    - directions U uniform on the unit sphere, with the estimate
      :math:`\tfrac ph [f(\theta + h U) - f(\theta)] U`: here :math:`x = \sqrt p\,U` and the radius
      is :math:`h/\sqrt p`, so :math:`c = p L/2`, in both norms.

    Parameters
    ----------
    smoothness, n_coords
        L and p.
    estimator
        ``"forward"``, ``"central"``, ``"gaussian"`` or ``"sphere"`` (with the factor p).
    norm
        ``"sup"`` or ``"euclidean"``.
    sharp
        For smoothing, the constant from the smoothed function instead, which is far smaller:
        the mean estimate is the mean of :math:`\nabla f(\theta + h V)` with V Gaussian, or uniform
        in the unit ball, so :math:`c = L\,E\|V\|`. That is :math:`L\,p/(p+1)` for the sphere and at
        most :math:`L\sqrt p` for the Gaussian. Both are attained at p = 1.

    Examples
    --------
    >>> bias_constant(1.0, 100), bias_constant(1.0, 100, norm="euclidean")
    (0.5, 5.0)
    >>> bias_constant(1.0, 9, "sphere"), bias_constant(1.0, 9, "sphere", sharp=True)
    (4.5, 0.9)
    """
    choice(estimator, "estimator", ESTIMATORS)
    choice(norm, "norm", ("sup", "euclidean"))
    flag(sharp, "sharp")
    smoothness, n_coords = number(smoothness, "smoothness", 0), count(n_coords, "n_coords")
    if estimator in ("gaussian", "sphere"):
        return float(
            smoothness * (mean_length if sharp else half_sixth_moment)(estimator, n_coords)
        )
    return float(smoothness / 2 * (np.sqrt(n_coords) if norm == "euclidean" else 1.0))


def half_sixth_moment(estimator: str, p: int) -> float:
    """Return half the root of the sixth moment of the directions, for radius h."""
    return p / 2 if estimator == "sphere" else math.sqrt(p * (p + 2) * (p + 4)) / 2


def mean_length(estimator: str, p: int) -> float:
    """Return the mean length of a point of the unit ball, or of a Gaussian vector."""
    if estimator == "sphere":
        return p / (p + 1)
    return math.sqrt(2) * math.exp(math.lgamma((p + 1) / 2) - math.lgamma(p / 2))
