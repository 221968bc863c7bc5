r"""Losses of all samples at once, for solvers that look at whole vectors of margins.

``terms`` gives values, slopes and curvatures with one exponential per sample; ``conjugate`` gives
:math:`\ell^*(r) = \sup_z rz - \ell(z)` where it is finite, for certificates. The formulas are those
of :mod:`scgd.linear.losses`, which a test pins them to.
"""

from __future__ import annotations

import numpy as np

from scgd.linear.losses import CROSS_ENTROPY, HINGE, HUBER, LOGISTIC, SQUARED, SQUARED_HINGE
from scgd.typing import Floats


def terms(loss: int, z: Floats, y: Floats, epsilon: float) -> tuple[Floats, Floats, Floats]:
    """Return the losses at margins ``z``, their slopes and their curvatures.

    Examples
    --------
    >>> [float(part[0]) for part in terms(SQUARED, np.array([3.0]), np.array([1.0]), 0.0)]
    [2.0, 2.0, 1.0]
    """
    if loss == SQUARED:
        r = z - y
        return 0.5 * r * r, r, np.ones_like(r)
    if loss in (LOGISTIC, CROSS_ENTROPY):
        return logistic_terms(loss, z, y)
    if loss == HUBER:
        r = z - y
        clipped = np.clip(r, -epsilon, epsilon)
        return np.asarray(clipped * (r - 0.5 * clipped)), clipped, np.where(r == clipped, 1.0, 0.0)
    short = np.maximum(1.0 - y * z, 0.0)
    if loss == SQUARED_HINGE:
        return short * short, -2.0 * y * short, np.where(short > 0.0, 2.0, 0.0)
    if epsilon == 0.0:
        return short, -y * (short > 0.0), np.zeros_like(short)
    near = np.minimum(short, epsilon)
    bend = ((short > 0.0) & (short < epsilon)) / epsilon
    return near * (short - 0.5 * near) / epsilon, -y * near / epsilon, bend


def logistic_terms(loss: int, z: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the terms of log(1 + exp(a)), with a = -yz or, less yz, a = z."""
    a = -y * z if loss == LOGISTIC else z
    q = np.exp(-np.abs(a))
    whole = 1.0 + q
    up = np.where(a > 0.0, 1.0, q) / whole  # sigmoid(a)
    value = np.log(whole) + np.maximum(a, 0.0)
    if loss == LOGISTIC:
        return value, -y * up, q / (whole * whole)
    return value - y * z, up - y, q / (whole * whole)


def conjugate(loss: int, r: Floats, y: Floats, epsilon: float) -> Floats:
    """Return the conjugate losses at slopes ``r``, which must be slopes a loss can have."""
    if loss in (SQUARED, HUBER):
        return np.asarray(r * (0.5 * r + y))
    if loss == CROSS_ENTROPY:
        return -entropy(np.clip(y + r, 0.0, 1.0))
    a = -y * r
    if loss == LOGISTIC:
        return -entropy(np.clip(a, 0.0, 1.0))
    bend = {SQUARED_HINGE: 0.5, HINGE: epsilon}[loss]
    return np.asarray(a * (0.5 * bend * a - 1.0))


def entropy(a: Floats) -> Floats:
    """Return -a log a - (1 - a) log(1 - a)."""
    out, least = np.zeros_like(a), np.finfo(float).tiny
    for part in (a, 1.0 - a):
        out -= part * np.log(np.maximum(part, least))
    return out
