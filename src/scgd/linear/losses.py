r"""Losses of a margin: values, slopes and exact differences, as functions of an integer code.

A linear model predicts the margin :math:`z_i = x_i^\top \theta`; its loss at a sample depends on
:math:`z_i` and the target :math:`y_i` alone. ``difference`` gives :math:`\ell(z + d) - \ell(z)`
without the cancellation of two nearby values, so zeroth-order estimates keep their digits for any
radius.

=================  ==============================================  ==================
name               value                                           targets
=================  ==============================================  ==================
``squared``        :math:`\frac12 (z - y)^2`                       real
``logistic``       :math:`\log(1 + e^{-yz})`                       -1 or 1
``cross-entropy``  :math:`\log(1 + e^{z}) - yz`                    [0, 1]
``hinge``          :math:`\max(0, 1 - yz)`, rounded by a parabola  -1 or 1
                   of width :math:`\epsilon` at its corner
``squared-hinge``  :math:`\max(0, 1 - yz)^2`                       -1 or 1
``huber``          :math:`\frac12 r^2` if :math:`|r| \le \epsilon`, else   real
                   :math:`\epsilon |r| - \frac12 \epsilon^2`, with :math:`r = z - y`
=================  ==============================================  ==================
"""

from math import exp, expm1, log1p

from scgd.compiling import njit

LOSSES = ("squared", "logistic", "cross-entropy", "hinge", "squared-hinge", "huber")
SQUARED, LOGISTIC, CROSS_ENTROPY, HINGE, SQUARED_HINGE, HUBER = range(6)

CORNERS = {"huber": 1.35, "hinge": 0.0}
"""Default :math:`\\epsilon` of the losses that have one."""


def curvature(loss: int, epsilon: float) -> float:
    """Return the largest second derivative in the margin; infinite for the plain hinge.

    Examples
    --------
    >>> curvature(LOGISTIC, 0.0)
    0.25
    """
    if loss == HINGE:
        return 1.0 / epsilon if epsilon > 0 else float("inf")
    return {LOGISTIC: 0.25, CROSS_ENTROPY: 0.25, SQUARED_HINGE: 2.0}.get(loss, 1.0)


@njit(cache=True)
def softplus(a):  # type: ignore[no-untyped-def]
    """Return log(1 + exp(a)) without overflow."""
    return max(a, 0.0) + log1p(exp(-abs(a)))


@njit(cache=True)
def sigmoid(a):  # type: ignore[no-untyped-def]
    """Return 1 / (1 + exp(-a)) without overflow."""
    e = exp(-abs(a))
    return 1.0 / (1.0 + e) if a >= 0.0 else e / (1.0 + e)


@njit(cache=True)
def softplus_difference(a, d):  # type: ignore[no-untyped-def]
    """Return softplus(a + d) - softplus(a) = log(1 + sigmoid(a) (exp(d) - 1)), for either sign."""
    if d > 0.0:
        return d + log1p(sigmoid(-a) * expm1(-d))
    return log1p(sigmoid(a) * expm1(d))


@njit(cache=True, error_model="numpy")
def value(loss, z, y, epsilon):  # type: ignore[no-untyped-def]
    """Return the loss at margin ``z``."""
    if loss == SQUARED:
        return 0.5 * (z - y) * (z - y)
    if loss == LOGISTIC:
        return softplus(-y * z)
    if loss == CROSS_ENTROPY:
        return softplus(z) - y * z
    if loss == HUBER:
        r = abs(z - y)
        return 0.5 * r * r if r <= epsilon else epsilon * (r - 0.5 * epsilon)
    short = max(0.0, 1.0 - y * z)
    if loss == SQUARED_HINGE:
        return short * short
    return 0.5 * short * short / epsilon if short < epsilon else short - 0.5 * epsilon


@njit(cache=True, error_model="numpy")
def slope(loss, z, y, epsilon):  # type: ignore[no-untyped-def]
    """Return the derivative of the loss in its margin (a subgradient at the kink of the hinge)."""
    if loss == SQUARED:
        return z - y
    if loss == LOGISTIC:
        return -y * sigmoid(-y * z)
    if loss == CROSS_ENTROPY:
        return sigmoid(z) - y
    if loss == HUBER:
        return min(max(z - y, -epsilon), epsilon)
    short = max(0.0, 1.0 - y * z)
    if loss == SQUARED_HINGE:
        return -2.0 * y * short
    if short < epsilon:
        return -y * short / epsilon
    return -y if short > 0.0 else 0.0


@njit(cache=True, error_model="numpy")
def bend(loss, z, y, epsilon, reach):  # type: ignore[no-untyped-def]
    """Return the second derivative at ``z``; for piecewise parabolas, the largest within reach."""
    if loss == LOGISTIC or loss == CROSS_ENTROPY:
        s = sigmoid(z)
        return s * (1.0 - s)
    if loss == HUBER:
        return 1.0 if abs(z - y) - reach < epsilon else 0.0
    short = 1.0 - y * z
    if loss == SQUARED_HINGE:
        return 2.0 if short > -reach else 0.0
    if loss == HINGE:
        return 1.0 / epsilon if -reach < short < epsilon + reach else 0.0
    return 1.0


@njit(cache=True, error_model="numpy")
def difference(loss, z, d, y, epsilon):  # type: ignore[no-untyped-def]
    """Return the loss at margin ``z + d`` minus the loss at ``z``."""
    if loss == SQUARED:
        return d * (z - y + 0.5 * d)
    if loss == LOGISTIC:
        return softplus_difference(-y * z, -y * d)
    if loss == CROSS_ENTROPY:
        return softplus_difference(z, d) - y * d
    return value(loss, z + d, y, epsilon) - value(loss, z, y, epsilon)
