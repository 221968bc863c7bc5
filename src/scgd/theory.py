r"""The paper's conditions and bounds, as functions one can ask.

Convergence theorems ask something of the learning rate :math:`\gamma_t`, the mixing
:math:`\lambda_t` (through the smallest weight :math:`\beta_t \ge \lambda_t / p`) and the radius
:math:`h_t`. For schedules of a known form, which all behave like
:math:`t^{-a} (\log t)^{-b}`, the answer is exact; of any other callable nothing is said.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scgd.schedules import Constant, InverseLog, InverseTime, SqrtOf
from scgd.typing import Array, Floats

__all__ = [
    "Conditions",
    "Constants",
    "TheoryWarning",
    "bias_constant",
    "check",
    "gap_bound",
    "gap_order",
    "gap_rate",
    "gap_recursion",
    "known",
    "regret_bound",
    "regret_terms",
    "warn_if_violated",
]


class Tail(NamedTuple):
    r"""How a schedule behaves for large t: like :math:`t^{-a} (\log t)^{-b}`."""

    power: float
    log_power: float = 0.0

    def __mul__(self, other: Any) -> Tail:
        """Return the tail of a product of schedules, or of a power of one."""
        if isinstance(other, Tail):
            return Tail(self.power + other.power, self.log_power + other.log_power)
        return Tail(self.power * other, self.log_power * other)

    @property
    def diverges(self) -> bool:
        """Whether the sum over t is infinite."""
        return self.power < 1 or (self.power == 1 and self.log_power <= 1)


NOTHING = Tail(math.inf)
"""The tail of a schedule that is zero: it falls faster than any power of t."""


def tail(schedule: Any) -> Tail | None:
    """Return the tail of a number or a schedule of a known form, None of anything else.

    Examples
    --------
    >>> tail(InverseTime(power=0.75)), tail(0.1), tail(lambda t: 1 / t)
    (Tail(power=0.75, log_power=0.0), Tail(power=0.0, log_power=0.0), None)
    """
    if isinstance(schedule, Constant):
        return tail(schedule.value)
    if isinstance(schedule, float | int):
        return Tail(0.0) if schedule else NOTHING
    if isinstance(schedule, InverseTime):
        return Tail(schedule.power) if schedule.scale else NOTHING
    if isinstance(schedule, InverseLog):
        return Tail(0.0, 1.0)
    if isinstance(schedule, SqrtOf):
        inner = tail(schedule.schedule)
        return None if inner is None else inner * 0.5
    return None


@dataclass(frozen=True)
class Conditions:
    r"""Which conditions of the theorems hold: True, False, or None where nothing can be said.

    Attributes
    ----------
    robbins_monro
        :math:`\sum \gamma_t = \infty` and :math:`\sum \gamma_t^2 < \infty` (Theorems 1 and 2).
    extended_robbins_monro
        :math:`\sum \gamma_t \beta_t = \infty` and :math:`\sum \gamma_t^2 < \infty` (Theorem 3).
    radius
        :math:`h_t^2 = O(\gamma_t)` (Theorems 1 to 3).
    bounded_weights
        :math:`\beta_t \ge \beta > 0` (Theorem 3). The mixing 1/log t does not give it, although
        appendix B.2 says so.
    """

    robbins_monro: bool | None
    extended_robbins_monro: bool | None
    radius: bool | None
    bounded_weights: bool | None

    def violated(self) -> list[str]:
        """Return a sentence for each condition that does not hold."""
        return [REASONS[name] for name in REASONS if getattr(self, name) is False]


REASONS = {
    "robbins_monro": "the learning rate is not Robbins-Monro (its sum must be infinite, that of "
    "its squares finite: InverseTime with power in (1/2, 1])",
    "extended_robbins_monro": "learning rate times mixing must have an infinite sum",
    "radius": "the squared radius must be O(learning rate), as SqrtOf(learning_rate) is",
    "bounded_weights": "the mixing must stay above a positive number",
}


def check(learning_rate: Any, mixing: Any = 1.0, radius: Any = None) -> Conditions:
    """Tell which of the paper's conditions a triple of schedules satisfies, each apart.

    Parameters
    ----------
    learning_rate
        A number or a schedule.
    mixing
        Musketeer's mixing; 1 for uniform sampling.
    radius
        The radius of differences; None for exact derivatives.

    Examples
    --------
    >>> check(InverseTime(), mixing=InverseLog(), radius=SqrtOf(InverseTime()))
    Conditions(robbins_monro=True, extended_robbins_monro=True, radius=True, bounded_weights=False)
    """
    rate, size = tail(learning_rate), tail(radius)
    share = NOTHING if mixing is None else tail(mixing)
    squares = None if rate is None else not (rate * 2).diverges
    extended, bounded = None, None
    if share == NOTHING:
        extended = bounded = False
    elif share is not None:
        bounded = share == Tail(0.0)
        extended = None if rate is None else bool(squares and (rate * share).diverges)
    small = True if radius is None else None
    if rate is not None and size is not None:
        small = size * 2 >= rate
    monro = None if rate is None else bool(squares and rate.diverges)
    return Conditions(monro, extended, small, bounded)


def warn_if_violated(learning_rate: Any, mixing: Any, radius: Any) -> None:
    """Warn once of all that is wrong with schedules the user passed; None stands for not passed."""
    if learning_rate is None and mixing is None and radius is None:
        return
    found = check(
        learning_rate if learning_rate is not None else unknown,
        mixing if mixing is not None else 1.0,
        radius,
    )
    if sentences := found.violated():
        warnings.warn(
            f"convergence is not covered by the paper's theorems: {'; '.join(sentences)}",
            TheoryWarning,
            stacklevel=5,  # whoever called minimize or made an Optimizer
        )


class TheoryWarning(UserWarning):
    """The schedules passed are outside what the paper's theorems cover."""


def unknown(t: Array) -> Array:
    """Stand for a schedule of which nothing is known."""
    return t


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


def gap_bound(
    t: Array, constants: Constants, gamma: float, alpha: float, beta: float, gap: float
) -> Floats:
    r"""Return the bound of Theorem 4 on :math:`E f(\theta_t) - f^\star`.

    For :math:`\gamma_t = \gamma t^{-\alpha}`, :math:`h_t = \sqrt{\gamma_t}`, smallest weight
    ``beta`` and initial gap ``gap``.

    Examples
    --------
    >>> quadratic = Constants(1.0, 1.0, 1.0, 0.1)
    >>> bound = gap_bound(np.array([1e4, 1e5]), quadratic, gamma=3.0, alpha=1.0, beta=1.0, gap=1.0)
    >>> bool(9 < bound[0] / bound[1] < 11)
    True
    """
    t = np.asarray(t, np.float64)
    length, mu, growth = constants.smoothness, constants.convexity, constants.growth
    noise, c2 = constants.noise, constants.bias**2
    start = gap + (noise + 2 * c2) / (2 * growth)
    speed = mu * beta * gamma
    with np.errstate(over="ignore"):
        if alpha == 1:
            forget = 2 * np.exp(length * growth * gamma**2) * start * t**-speed
            stay = (noise * length / 2 + c2) * gamma**2 * phi(speed / 2 - 1, t) * t ** (-speed / 2)
            return np.asarray(forget + stay)
        forget = 2 * np.exp(2 * length * growth * gamma**2 * phi(1 - 2 * alpha, t))
        forget = forget * np.exp(-speed / 4 * t ** (1 - alpha)) * start
        return np.asarray(forget + gamma * (noise * length + 2 * c2) / (mu * beta) * t**-alpha)


def gap_recursion(
    n_steps: int, constants: Constants, gamma: float, alpha: float, beta: float, gap: float
) -> Floats:
    r"""Return the recursion that Theorem 4 is solved from, step by step, from t = 0.

    .. math:: \delta_t \le (1 - 2\mu\beta\gamma_t + L \mathcal L \gamma_t^2)\,\delta_{t-1}
              + \gamma_t^2 (\sigma^2 L + c^2)/2

    Examples
    --------
    >>> gap_recursion(1, Constants(1.0, 1.0, 1.0, 0.0), gamma=0.5, alpha=1.0, beta=1.0, gap=1.0)
    array([1.  , 0.25])
    """
    rates = gamma / np.arange(1, n_steps + 1) ** alpha
    shrink = 1 - 2 * constants.convexity * beta * rates
    shrink += constants.smoothness * constants.growth * rates**2
    add = rates**2 * (constants.noise * constants.smoothness + constants.bias**2) / 2
    out = np.empty(n_steps + 1)
    out[0] = gap
    for i in range(n_steps):
        out[i + 1] = max(shrink[i], 0.0) * out[i] + add[i]
    return out


def gap_order(constants: Constants, gamma: float, beta: float) -> float:
    r"""Return C such that :func:`gap_recursion` tends to C / t, for :math:`\gamma_t = \gamma / t`.

    .. math:: C = \frac{\gamma^2 (\sigma^2 L + c^2) / 2}{2\mu\beta\gamma - 1}

    Slower than 1 / t where :math:`2\mu\beta\gamma \le 1`: infinity.

    Examples
    --------
    >>> quadratic = Constants(1.0, 1.0, 1.0, 0.1)
    >>> gap_order(quadratic, gamma=3.0, beta=1.0)
    0.09
    >>> gaps = gap_recursion(10_000, quadratic, gamma=3.0, alpha=1.0, beta=1.0, gap=1.0)
    >>> round(float(10_000 * gaps[-1]), 3)
    0.09
    """
    excess = 2 * constants.convexity * beta * gamma - 1
    add = gamma**2 * (constants.noise * constants.smoothness + constants.bias**2) / 2
    return add / excess if excess > 0 else math.inf


def gap_rate(alpha: float, speed: float) -> float:
    r"""Return the power r of the rate :math:`O(t^{-r})` of Theorem 4.

    ``speed`` is :math:`\mu\beta\gamma`.

    Examples
    --------
    >>> gap_rate(1.0, speed=3.0), gap_rate(1.0, speed=1.0), gap_rate(0.5, speed=1.0)
    (1.0, 0.5, 0.5)
    """
    return min(1.0, speed / 2) if alpha == 1 else alpha


def bias_constant(
    smoothness: float, n_coords: int, estimator: str = "forward", norm: str = "sup"
) -> float:
    r"""Return c such that the bias of an estimate with radius h is at most c h.

    Differences at single coordinates have :math:`c = L/2` in the sup norm and :math:`\sqrt p\,L/2`
    in the Euclidean one (Proposition 1 states L/2 for the latter, which fails for
    :math:`f = \|x\|^2/2`); Gaussian smoothing has
    :math:`c = \tfrac L2 \sqrt{E\|U\|^6} = \tfrac L2 \sqrt{p(p+2)(p+4)}` in both.

    Examples
    --------
    >>> bias_constant(1.0, 100), bias_constant(1.0, 100, norm="euclidean")
    (0.5, 5.0)
    """
    if estimator == "gaussian":
        return float(smoothness / 2 * np.sqrt(n_coords * (n_coords + 2) * (n_coords + 4)))
    if estimator not in ("forward", "central"):
        raise ValueError(f"estimator must be 'forward', 'central' or 'gaussian', got {estimator!r}")
    if norm not in ("sup", "euclidean"):
        raise ValueError(f"norm must be 'sup' or 'euclidean', got {norm!r}")
    return float(smoothness / 2 * (np.sqrt(n_coords) if norm == "euclidean" else 1.0))


def regret_terms(gradients: Array, weights: Array) -> Floats:
    r"""Return :math:`\sum_k |\partial_k f(\theta_t)|^2 / d_t^{(k)}`, one per row (appendix B.3).

    Examples
    --------
    >>> regret_terms(np.array([[3.0, 1.0]]), np.array([[0.5, 0.5]]))
    array([20.])
    >>> regret_terms(np.array([[3.0, 1.0]]), np.array([[0.75, 0.25]]))
    array([16.])
    """
    return np.asarray(np.sum(np.square(gradients) / weights, axis=-1))


def regret_bound(terms: Array, gamma: float, distance: float) -> float:
    r"""Return the bound of appendix B.3 on the gap of the average of T iterates.

    .. math:: \frac{\|\theta^\star\|^2}{2\gamma T}
              + \frac{\gamma}{2T} \sum_t \sum_k \frac{|\partial_k f(\theta_t)|^2}{d_t^{(k)}}

    Examples
    --------
    >>> regret_bound(np.array([2.0, 4.0]), gamma=0.5, distance=1.0)
    1.25
    """
    n = len(terms)
    return float(distance**2 / (2 * gamma * n) + gamma / (2 * n) * np.sum(terms))


def known(schedule: Any) -> bool:
    """Tell whether this is a schedule object (not a number) whose form the conditions can judge.

    Examples
    --------
    >>> known(InverseTime()), known(0.1), known(lambda t: 1 / t)
    (True, False, False)
    """
    return not isinstance(schedule, float | int) and tail(schedule) is not None
