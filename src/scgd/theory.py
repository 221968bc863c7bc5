r"""Which conditions of the paper's theorems schedules satisfy.

Convergence theorems ask something of the learning rate :math:`\gamma_t`, the mixing
:math:`\lambda_t` (through the smallest weight :math:`\beta_t \ge \lambda_t / p`) and the radius
:math:`h_t`. For schedules of a known form, which all behave like
:math:`t^{-a} (\log t)^{-b}`, the answer is exact; of any other callable nothing is said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scgd.checks import number, reals
from scgd.schedules import Constant, InverseLog, InverseTime, SqrtOf

__all__ = ["Conditions", "check", "known"]


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
        """Return a sentence for each condition that does not hold.

        A learning rate that is not Robbins-Monro breaks the extended condition too; that is said
        once, as what it is.

        Examples
        --------
        >>> len(check(0.1, mixing=0.3).violated())
        1
        """
        broken = [name for name in REASONS if getattr(self, name) is False]
        if self.robbins_monro is False and "extended_robbins_monro" in broken:
            broken.remove("extended_robbins_monro")
        return [REASONS[name] for name in broken]


REASONS = {
    "robbins_monro": "the learning rate is not Robbins-Monro (its sum must be infinite, that of "
    "its squares finite: InverseTime with power in (1/2, 1])",
    "extended_robbins_monro": "learning rate times smallest weight (mixing, times the importance "
    "weights if there are any) must have an infinite sum",
    "radius": "the squared radius must be O(learning rate), as SqrtOf(learning_rate) is",
    "bounded_weights": "the mixing must stay above a positive number, and so must its product with "
    "the importance weights",
}


def check(
    learning_rate: Any, mixing: Any = 1.0, radius: Any = None, importance: Any = None
) -> Conditions:
    r"""Tell which of the paper's conditions schedules satisfy, each apart.

    Parameters
    ----------
    learning_rate
        A number or a schedule.
    mixing
        Musketeer's mixing; 1 for uniform sampling.
    radius
        The radius of differences; None for exact derivatives.
    importance
        The diagonal :math:`W_t` of the update
        :math:`\theta_{t+1} = \theta_t - \gamma_{t+1} W_t D(\zeta_{t+1}) g_t`. The theorems then
        speak of :math:`\beta_{t+1} = \min_k w_t^{(k)} d_t^{(k)}`. None is the identity;
        ``"inverse"`` and ``"relative"`` are :math:`1/d` and :math:`1/(p d)`, for which
        :math:`\beta` is constant; an array is fixed weights; a schedule is a factor common to all
        coordinates that changes with the phase. Of any other callable of the phase nothing is said.

    Examples
    --------
    >>> check(InverseTime(), mixing=InverseLog(), radius=SqrtOf(InverseTime()))
    Conditions(robbins_monro=True, extended_robbins_monro=True, radius=True, bounded_weights=False)
    >>> check(InverseTime(), mixing=InverseLog(), importance="inverse").bounded_weights
    True
    >>> check(InverseTime(), importance=InverseTime(power=0.5)).extended_robbins_monro
    False
    """
    learning_rate = checked(learning_rate, "learning_rate")
    mixing = None if mixing is None else checked(mixing, "mixing", 1.0)
    radius = None if radius is None else checked(radius, "radius")
    rate, size = tail(learning_rate), tail(radius)
    smallest = smallest_weight(mixing, importance)
    squares = None if rate is None else not (rate * 2).diverges
    extended, bounded = None, None
    if smallest == NOTHING:
        extended = bounded = False
    elif smallest is not None:
        bounded = smallest <= Tail(0.0)
        extended = None if rate is None else bool(squares and (rate * smallest).diverges)
    small = True if radius is None else None
    if rate is not None and size is not None:
        small = size * 2 >= rate
    monro = None if rate is None else bool(squares and rate.diverges)
    return Conditions(monro, extended, small, bounded)


def checked(value: Any, name: str, most: float = math.inf) -> Any:
    """Return a callable as it is, anything else as a number that is not negative."""
    return value if callable(value) else number(value, name, 0, most)


def smallest_weight(mixing: Any, importance: Any) -> Tail | None:
    """Return the tail of the smallest product of importance weight and probability, if known."""
    if isinstance(importance, str):
        if importance not in ("inverse", "relative"):
            raise ValueError(
                "importance must be None, 'inverse', 'relative', weights or a schedule, "
                f"got {importance!r}"
            )
        return Tail(0.0)
    share = NOTHING if mixing is None else tail(mixing)
    if importance is None or share is None or share == NOTHING:
        return share
    if callable(importance):
        factor = tail(importance)
        return None if factor is None else factor if factor == NOTHING else share * factor
    weights = reals(importance, "importance")
    fine = weights.ndim == 1 and weights.size > 0
    if not (fine and np.isfinite(weights).all() and (weights > 0).all()):
        raise ValueError(
            "importance weights must be positive and finite, one per coordinate, "
            f"got {importance!r}"
        )
    return share


def known(schedule: Any) -> bool:
    """Tell whether this is a schedule object (not a number) whose form the conditions can tell of.

    Parameters
    ----------
    schedule
        What the user passed.

    Examples
    --------
    >>> known(InverseTime()), known(0.1), known(lambda t: 1 / t)
    (True, False, False)
    """
    return not isinstance(schedule, float | int) and tail(schedule) is not None
