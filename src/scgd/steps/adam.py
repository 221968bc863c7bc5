"""Adam on the visited coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

from scgd.checks import number
from scgd.steps.rule import StepRule, check_decay, kernel

__all__ = ["Adam"]


@kernel
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


@dataclass(frozen=True)
class Adam(StepRule):
    r"""Adam on the visited coordinate, bias-corrected by its own number of visits.

    Parameters
    ----------
    beta1, beta2
        What the means of gradients and of their squares keep at a visit; in [0, 1).
    epsilon
        Added to the root.

    Examples
    --------
    >>> round(Adam.kernel(0, -4.0, 0.5, Adam().hyper, ([0.0], [0.0], [0.0], [0.0])), 12)
    -0.5
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 0.0
    n_slots: ClassVar[int] = 4
    kernel: ClassVar[Any] = staticmethod(adam_kernel)

    def __post_init__(self) -> None:
        check_decay("beta1", self.beta1)
        check_decay("beta2", self.beta2)
        number(self.epsilon, "epsilon", 0)

    @property
    def hyper(self) -> tuple[float, ...]:
        """The numbers its kernel reads."""
        return (float(self.beta1), float(self.beta2), float(self.epsilon))
