"""Heavy-ball and Nesterov steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from scgd.checks import flag
from scgd.steps.rule import StepRule, check_decay, kernel

__all__ = ["Momentum"]


@kernel
def momentum_kernel(k: int, grad: float, rate: float, hyper: Any, slots: Any) -> float:
    """Move along a velocity that forgets."""
    velocity: float = hyper[0] * slots[0][k] + grad
    slots[0][k] = velocity
    along: float = grad + hyper[0] * velocity if hyper[1] > 0.0 else velocity
    return rate * along


@dataclass(frozen=True)
class Momentum(StepRule):
    r"""Heavy ball on the visited coordinate.

    .. math:: v \leftarrow \beta v + g, \qquad \theta \leftarrow \theta - \gamma v

    Parameters
    ----------
    beta
        What the velocity keeps at a visit; in [0, 1).
    nesterov
        Move along :math:`g + \beta v` instead of :math:`v`.

    Examples
    --------
    >>> Momentum(beta=0.5).hyper
    (0.5, 0.0)
    """

    beta: float = 0.9
    nesterov: bool = False
    n_slots: ClassVar[int] = 1
    kernel: ClassVar[Any] = staticmethod(momentum_kernel)

    def __post_init__(self) -> None:
        check_decay("beta", self.beta)
        flag(self.nesterov, "nesterov")

    @property
    def hyper(self) -> tuple[float, ...]:
        """The numbers its kernel reads."""
        return (float(self.beta), float(self.nesterov))
