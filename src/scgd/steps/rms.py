"""Steps divided by the root mean square of the gradients seen at a coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

from scgd.checks import number
from scgd.steps.rule import StepRule, check_decay, kernel

__all__ = ["RMS"]


@kernel
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


@dataclass(frozen=True)
class RMS(StepRule):
    r"""Divide by the root mean square of the gradients seen at this coordinate.

    .. math:: \theta \leftarrow \theta - \gamma\, g / \sqrt{\overline{g^2}}

    The learning rate is then a length in units of x, whatever the scale of f. The mean is a plain
    average until ``1 / (1 - beta)`` visits and forgets exponentially from there on.

    Parameters
    ----------
    beta
        How much of the mean a new square leaves, once that many visits were made; in [0, 1).
    epsilon
        Added to the root.

    Examples
    --------
    >>> RMS.kernel(0, -4.0, 0.5, RMS().hyper, ([0.0], [0.0]))
    -0.5
    """

    beta: float = 0.9
    epsilon: float = 0.0
    n_slots: ClassVar[int] = 2
    kernel: ClassVar[Any] = staticmethod(rms_kernel)

    def __post_init__(self) -> None:
        check_decay("beta", self.beta)
        number(self.epsilon, "epsilon", 0)

    @property
    def hyper(self) -> tuple[float, ...]:
        """The numbers its kernel reads."""
        return (1.0 - float(self.beta), float(self.epsilon))
