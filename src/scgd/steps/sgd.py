"""Plain stochastic gradient steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from scgd.steps.rule import StepRule, kernel

__all__ = ["SGD"]


@kernel
def sgd_kernel(k: int, grad: float, rate: float, hyper: Any, slots: Any) -> float:
    """Move along the gradient (Eq. 3)."""
    return rate * grad


@dataclass(frozen=True)
class SGD(StepRule):
    r"""Plain stochastic gradient (Eq. 3).

    .. math:: \theta^{(k)} \leftarrow \theta^{(k)} - \gamma_t g^{(k)}

    Examples
    --------
    >>> SGD.kernel(0, 2.0, 0.1, (), None)
    0.2
    """

    n_slots: ClassVar[int] = 0
    kernel: ClassVar[Any] = staticmethod(sgd_kernel)

    @property
    def hyper(self) -> tuple[float, ...]:
        """The numbers its kernel reads."""
        return (0.0,)
