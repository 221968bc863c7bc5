"""Step rules: how a gradient seen at a coordinate becomes a move of that coordinate.

A rule's arithmetic is one scalar kernel, written once and run as it is by the Python loop and,
compiled, by every other loop: ``kernel(k, grad, rate, hyper, slots)`` returns what is subtracted
from coordinate ``k``; ``hyper`` is a short array of numbers and ``slots[j][k]`` what the rule
remembers about coordinate ``k``. Moments advance only when their coordinate is touched: time stands
still for a coordinate that is not drawn, so moments are averages over a coordinate's own visits.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from scgd.compiling import njit
from scgd.typing import Floats

__all__ = ["RMS", "SGD", "STEPS", "Adam", "Momentum", "StepRule"]


def sgd_kernel(k: int, grad: float, rate: float, hyper: Any, slots: Any) -> float:
    """Move along the gradient (Eq. 3)."""
    return rate * grad


def momentum_kernel(k: int, grad: float, rate: float, hyper: Any, slots: Any) -> float:
    """Move along a velocity that forgets."""
    velocity: float = hyper[0] * slots[0][k] + grad
    slots[0][k] = velocity
    along: float = grad + hyper[0] * velocity if hyper[1] > 0.0 else velocity
    return rate * along


def rms_kernel(k: int, grad: float, rate: float, hyper: Any, slots: Any) -> float:
    """Divide by the root mean square of the gradients seen here."""
    squares, visits = slots[0], slots[1]
    n = visits[k] + 1.0
    weight = 1.0 / n
    if weight < hyper[0]:
        weight = hyper[0]
    square: float = squares[k]
    square += weight * (grad * grad - square)
    squares[k] = square
    visits[k] = n
    moved: float = rate * grad / (sqrt(square) + hyper[1]) if square > 0.0 else 0.0
    return moved


def adam_kernel(k: int, grad: float, rate: float, hyper: Any, slots: Any) -> float:
    """Adam with its bias correction counted in visits."""
    beta1, beta2 = hyper[0], hyper[1]
    mean: float = beta1 * slots[0][k] + (1.0 - beta1) * grad
    square: float = beta2 * slots[1][k] + (1.0 - beta2) * grad * grad
    power1: float = beta1 * (1.0 - slots[2][k])
    power2: float = beta2 * (1.0 - slots[3][k])
    slots[0][k] = mean
    slots[1][k] = square
    slots[2][k] = 1.0 - power1  # 1 - beta1^visits
    slots[3][k] = 1.0 - power2
    if square == 0.0:
        return 0.0
    moved: float = rate * (mean / (1.0 - power1)) / (sqrt(square / (1.0 - power2)) + hyper[2])
    return moved


class StepRule:
    """A description of an update rule; its memory is the ``slots`` array."""

    code: ClassVar[int]
    n_slots: ClassVar[int]
    kernel: ClassVar[Any]

    @property
    def hyper(self) -> tuple[float, ...]:
        """The numbers its kernel reads."""
        raise NotImplementedError


@dataclass(frozen=True)
class SGD(StepRule):
    r"""Plain stochastic gradient (Eq. 3).

    .. math:: \theta^{(k)} \leftarrow \theta^{(k)} - \gamma_t g^{(k)}

    Examples
    --------
    >>> SGD.kernel(0, 2.0, 0.1, (), None)
    0.2
    """

    code: ClassVar[int] = 0
    n_slots: ClassVar[int] = 0
    kernel: ClassVar[Any] = staticmethod(sgd_kernel)

    @property
    def hyper(self) -> tuple[float, ...]:
        """The numbers its kernel reads."""
        return (0.0,)


@dataclass(frozen=True)
class Momentum(StepRule):
    r"""Heavy ball on the visited coordinate.

    .. math:: v \leftarrow \beta v + g, \qquad \theta \leftarrow \theta - \gamma v

    Examples
    --------
    >>> Momentum(beta=0.5).hyper
    (0.5, 0.0)
    """

    beta: float = 0.9
    nesterov: bool = False
    code: ClassVar[int] = 1
    n_slots: ClassVar[int] = 1
    kernel: ClassVar[Any] = staticmethod(momentum_kernel)

    def __post_init__(self) -> None:
        check_decay("beta", self.beta)

    @property
    def hyper(self) -> tuple[float, ...]:
        """The numbers its kernel reads."""
        return (self.beta, float(self.nesterov))


@dataclass(frozen=True)
class RMS(StepRule):
    r"""Divide by the root mean square of the gradients seen at this coordinate.

    .. math:: \theta \leftarrow \theta - \gamma\, g / \sqrt{\overline{g^2}}

    The learning rate is then a length in units of x, whatever the scale of f. The mean is a plain
    average until ``1 / (1 - beta)`` visits and forgets exponentially from there on.

    Examples
    --------
    >>> RMS.kernel(0, -3.0, 0.1, RMS().hyper, np.zeros((2, 1)))
    np.float64(-0.1)
    """

    beta: float = 0.9
    epsilon: float = 0.0
    code: ClassVar[int] = 2
    n_slots: ClassVar[int] = 2
    kernel: ClassVar[Any] = staticmethod(rms_kernel)

    def __post_init__(self) -> None:
        check_decay("beta", self.beta)

    @property
    def hyper(self) -> tuple[float, ...]:
        """The numbers its kernel reads."""
        return (1.0 - self.beta, self.epsilon)


@dataclass(frozen=True)
class Adam(StepRule):
    r"""Adam on the visited coordinate, bias-corrected by its own number of visits.

    Examples
    --------
    >>> round(Adam.kernel(0, -3.0, 0.1, (0.9, 0.999, 0.0), np.zeros((4, 1))), 12)
    -0.1
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 0.0
    code: ClassVar[int] = 3
    n_slots: ClassVar[int] = 4
    kernel: ClassVar[Any] = staticmethod(adam_kernel)

    def __post_init__(self) -> None:
        check_decay("beta1", self.beta1)
        check_decay("beta2", self.beta2)

    @property
    def hyper(self) -> tuple[float, ...]:
        """The numbers its kernel reads."""
        return (self.beta1, self.beta2, self.epsilon)


STEPS: dict[str, type] = {"sgd": SGD, "momentum": Momentum, "rms": RMS, "adam": Adam}


def check_decay(name: str, value: float) -> None:
    """Refuse a decay outside [0, 1)."""
    if not 0 <= value < 1:
        raise ValueError(f"{name} must lie in [0, 1), got {value!r}")


def make_slots(rule: StepRule, n_coords: int) -> Floats:
    """Return the zeroed memory of a rule."""
    return np.zeros((rule.n_slots, n_coords))


compiled_sgd = njit(cache=True, inline="always")(sgd_kernel)
compiled_momentum = njit(cache=True)(momentum_kernel)
compiled_rms = njit(cache=True)(rms_kernel)
compiled_adam = njit(cache=True)(adam_kernel)


@njit(cache=True)
def move(code, k, grad, rate, hyper, slots):  # type: ignore[no-untyped-def]
    """Dispatch to the kernel with this code: what is subtracted from coordinate ``k``."""
    if code == 0:
        return compiled_sgd(k, grad, rate, hyper, slots)
    if code == 1:
        return compiled_momentum(k, grad, rate, hyper, slots)
    if code == 2:
        return compiled_rms(k, grad, rate, hyper, slots)
    return compiled_adam(k, grad, rate, hyper, slots)


@njit(cache=True)
def apply_block(code, coords, grads, rates, hyper, slots, theta, lower, upper):  # type: ignore[no-untyped-def]
    """Move the drawn coordinates of ``theta`` one after the other; duplicates add up."""
    for i in range(len(coords)):
        k = coords[i]
        moved = theta[k] - move(code, k, grads[i], rates[i], hyper, slots)
        theta[k] = min(max(moved, lower[k]), upper[k]) if len(lower) > 0 else moved
