r"""The bound of Theorem 4 on the gap, the recursion it comes from and what that tends to."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from scgd.checks import number, reals, settle, whole
from scgd.typing import Array, Floats

__all__ = ["Constants", "gap_bound", "gap_order", "gap_rate", "gap_recursion"]


def phi(power: float, t: Array) -> Floats:
    r"""Return :math:`\varphi_a(t) = (t^a - 1)/a`, and :math:`\log t` for a = 0.

    Examples
    --------
    >>> float(phi(2.0, np.array(3.0)))
    4.0
    """
    t = np.asarray(t, np.float64)
    return np.asarray(np.log(t) if power == 0 else (t**power - 1) / power)


@dataclass(frozen=True)
class Constants:
    r"""The constants of a problem that the bounds speak of.

    Attributes
    ----------
    smoothness
        :math:`L`, the Lipschitz constant of the gradient.
    convexity
        :math:`\mu` of the Polyak-Łojasiewicz inequality.
    growth, noise
        :math:`\mathcal L` and :math:`\sigma^2` of the growth condition
        :math:`E\|g\|^2 \le 2 \mathcal L (f - f^\star) + \sigma^2`.
    bias
        :math:`c`, see :func:`bias_constant`; 0 for exact derivatives.
    """

    smoothness: float
    convexity: float
    growth: float
    noise: float
    bias: float = 0.0

    def __post_init__(self) -> None:
        number(self.smoothness, "smoothness", 0)
        for name in ("convexity", "growth", "noise", "bias"):
            number(getattr(self, name), name, 0)
        for name in self.__dataclass_fields__:
            settle(self, **{name: float(getattr(self, name))})

    @property
    def floor(self) -> float:
        r"""What a step adds to the gap, over :math:`\gamma_t^2`: :math:`(\sigma^2 L + c^2)/2`."""
        return (self.noise * self.smoothness + self.bias**2) / 2

    @property
    def descent(self) -> float:
        r"""How fast the gap falls: :math:`2\mu`; :math:`\mu` where half of it pays for bias."""
        return (1.0 if self.bias else 2.0) * self.convexity


def gap_bound(
    t: Array, constants: Constants, gamma: float, alpha: float, beta: float, gap: float
) -> Floats:
    r"""Return the bound of Theorem 4 on :math:`E f(\theta_t) - f^\star`.

    For :math:`\gamma_t = \gamma t^{-\alpha}` with :math:`0 \le \alpha \le 1`,
    :math:`h_t = \sqrt{\gamma_t}`, smallest weight ``beta`` and initial gap ``gap``. For
    :math:`\alpha < 1` it is

    .. math:: 2 e^{2 L \mathcal L \gamma^2 \varphi_{1-2\alpha}(t) - \mu\beta\gamma t^{1-\alpha}/4}
              \Bigl(\delta_0 + \frac{\sigma^2 + 2c^2}{2\mathcal L}\Bigr)
              + \frac{\gamma(\sigma^2 L + 2c^2)}{\mu\beta}\, t^{-\alpha} .

    The theorem divides by :math:`\mathcal L`. Where that is 0 (bounded second moments, a case the
    paper names), the first factor and bracket become what they bound in the proof:
    :math:`\delta_0 + (\sigma^2 L/2 + c^2)\,\gamma^2 (1 + \varphi_{1-2\alpha}(t))`, the noise of all
    steps so far; and the second term is at least the noise of the last step.

    Parameters
    ----------
    t
        Steps, counted from 1.
    constants
        Those of the problem.
    gamma, alpha
        The rate :math:`\gamma t^{-\alpha}`.
    beta
        The smallest weight a coordinate ever has.
    gap
        :math:`\delta_0 = f(\theta_0) - f^\star`.

    Examples
    --------
    >>> quadratic = Constants(1.0, 1.0, 1.0, 0.1)
    >>> bound = gap_bound(np.array([1e4, 1e5]), quadratic, gamma=3.0, alpha=1.0, beta=1.0, gap=1.0)
    >>> bool(9 < bound[0] / bound[1] < 11)
    True
    """
    t = reals(t, "t")
    gamma, alpha, beta = check_schedule(t, constants, gamma, alpha, beta)
    gap = number(gap, "gap", 0)
    speed = constants.convexity * beta * gamma
    c2, noisy = constants.bias**2, constants.noise * constants.smoothness
    with np.errstate(over="ignore"):
        if alpha == 1:
            decay = -speed * np.log(t)
            stay = (noisy / 2 + c2) * gamma**2 * phi(speed / 2 - 1, t) * t ** (-speed / 2)
        else:
            decay = -speed / 4 * t ** (1 - alpha)
            stay = gamma * (noisy + 2 * c2) / (constants.convexity * beta) * t**-alpha
        if constants.growth == 0:  # a step so long that it overshoots leaves its own noise
            stay = np.maximum(stay, constants.floor * gamma**2 * t ** (-2 * alpha))
        return np.asarray(forgotten(t, constants, gamma, alpha, gap, decay) + stay)


def forgotten(
    t: Floats, constants: Constants, gamma: float, alpha: float, gap: float, decay: Floats
) -> Floats:
    """Return the bound's first term: the start and early noise, forgotten like exp(decay)."""
    growth, c2 = constants.growth, constants.bias**2
    so_far = phi(1 - 2 * alpha, t)
    if growth == 0:
        noise = (constants.noise * constants.smoothness / 2 + c2) * gamma**2
        return np.asarray(2 * np.exp(decay) * (gap + noise * (1 + so_far)))
    # One exponent, not two factors: either of those alone may leave the finite numbers.
    rise = constants.smoothness * growth * gamma**2 * (1.0 if alpha == 1 else 2 * so_far)
    return np.asarray(2 * np.exp(rise + decay) * (gap + (constants.noise + 2 * c2) / (2 * growth)))


def check_schedule(
    t: Floats, constants: Constants, gamma: float, alpha: float, beta: float
) -> tuple[float, float, float]:
    """Return gamma, alpha and beta as numbers; refuse what the theorem does not speak of."""
    if not isinstance(constants, Constants):
        raise TypeError(f"constants must be Constants(...), got {type(constants).__name__}")
    alpha = number(alpha, "alpha", 0, 1, wanted="be between 0 and 1")
    gamma = number(gamma, "gamma", 0, ends="(]", wanted="be above zero")
    beta = number(beta, "beta", 0, 1, ends="(]", wanted="be above 0 and at most 1")
    if not np.all(t >= 1):
        raise ValueError(f"t counts steps from 1, got {float(np.min(t)):g}")
    return np.float64(gamma), alpha, beta  # whose square may be infinite


def gap_recursion(
    n_steps: int, constants: Constants, gamma: float, alpha: float, beta: float, gap: float
) -> Floats:
    r"""Return the recursion that Theorem 4 is solved from, step by step, from t = 0.

    .. math:: \delta_t \le (1 - b\mu\beta\gamma_t + L \mathcal L \gamma_t^2)\,\delta_{t-1}
              + \gamma_t^2 (\sigma^2 L + c^2)/2

    with b = 2 for unbiased estimates (c = 0) and b = 1 for biased ones. The paper prints 2 for
    both, which fails without any noise: for :math:`f = \|x\|^2/2` on two coordinates and a constant
    rate, forward differences stop at a gap of :math:`\gamma/4`, and b = 2 gives :math:`\gamma/8`.
    Half the decrease pays for the bias, since
    :math:`2\langle a, b\rangle \ge \|a\|^2 - \|a - b\|^2`. The bound of the theorem has room for
    that.

    Parameters
    ----------
    n_steps
        How many steps.
    constants, gamma, alpha, beta, gap
        As for :func:`gap_bound`.

    Examples
    --------
    >>> gap_recursion(1, Constants(1.0, 1.0, 1.0, 0.0), gamma=0.5, alpha=1.0, beta=1.0, gap=1.0)
    array([1.  , 0.25])
    """
    gamma, alpha, beta = check_schedule(np.ones(1), constants, gamma, alpha, beta)
    n_steps, gap = whole(n_steps, "n_steps"), number(gap, "gap", 0)
    rates = gamma / np.arange(1, n_steps + 1) ** alpha
    shrink = 1 - constants.descent * beta * rates
    shrink += constants.smoothness * constants.growth * rates**2
    add = rates**2 * constants.floor
    out = np.empty(n_steps + 1)
    out[0] = gap
    for i in range(n_steps):
        out[i + 1] = max(shrink[i], 0.0) * out[i] + add[i]
    return out


def gap_order(constants: Constants, gamma: float, beta: float, alpha: float = 1.0) -> float:
    r"""Return C such that :func:`gap_recursion` tends to :math:`C t^{-\alpha}`.

    .. math:: C = \frac{\gamma^2 (\sigma^2 L + c^2) / 2}{b\mu\beta\gamma - [\alpha = 1]}

    for :math:`\gamma_t = \gamma t^{-\alpha}` with :math:`0 < \alpha \le 1` and b as there; infinity
    where the recursion falls more slowly than that (:math:`\alpha = 1` and
    :math:`b\mu\beta\gamma \le 1`).

    Parameters
    ----------
    constants, gamma, beta, alpha
        As for :func:`gap_bound`.

    Examples
    --------
    >>> quadratic = Constants(1.0, 1.0, 1.0, 0.1)
    >>> gap_order(quadratic, gamma=3.0, beta=1.0)
    0.09
    >>> gaps = gap_recursion(10_000, quadratic, gamma=3.0, alpha=1.0, beta=1.0, gap=1.0)
    >>> round(float(10_000 * gaps[-1]), 3)
    0.09
    """
    number(alpha, "alpha", 0, 1, ends="(]", wanted="be above 0 and at most 1")
    gamma, alpha, beta = map(float, check_schedule(np.ones(1), constants, gamma, alpha, beta))
    excess = constants.descent * beta * gamma - (alpha == 1)
    return gamma * gamma * constants.floor / excess if excess > 0 else math.inf


def gap_rate(alpha: float, speed: float) -> float:
    r"""Return the power r of the rate :math:`O(t^{-r})` of Theorem 4.

    Parameters
    ----------
    alpha
        Power of the rate :math:`\gamma t^{-\alpha}`.
    speed
        :math:`\mu\beta\gamma`.

    Examples
    --------
    >>> gap_rate(1.0, speed=3.0), gap_rate(1.0, speed=1.0), gap_rate(0.5, speed=1.0)
    (1.0, 0.5, 0.5)
    """
    alpha = number(alpha, "alpha", 0, 1, wanted="be between 0 and 1")
    speed = number(speed, "speed", 0, ends="(]")
    return min(1.0, speed / 2) if alpha == 1 else alpha
