"""Steps along the mean gradient, shrunk by what noise explains."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt
from typing import Any, ClassVar

from scgd.checks import number
from scgd.steps.rule import LONGEST, StepRule, check_decay, kernel

__all__ = ["Wiener"]


@kernel
def wiener_kernel(k: int, grad: float, rate: float, hyper: Any, slots: Any) -> float:
    """Move along the mean gradient, shrunk by the share of it that noise explains."""
    means, squares, visits, shared = slots[0], slots[1], slots[2], slots[3]
    n = visits[k] + 1.0
    mean, square = means[k], squares[k]
    largest = square if square > grad * grad else grad * grad
    if n > 1.0 and largest > 0.0:
        agreement = grad * mean / largest
        shared[0] = min(max(shared[0] + hyper[3] * agreement, -hyper[4]), hyper[4])
    mean += max(1.0 / n, hyper[0]) * (grad - mean)
    square += max(1.0 / n, hyper[1]) * (grad * grad - square)
    means[k], squares[k], visits[k] = mean, square, n
    if square == 0.0 or mean == 0.0:
        return 0.0
    shrunk = 1.0
    if n >= 20.0:
        shrunk = 1.0 - hyper[2] * square / (mean * mean * min(n, 2.0 / hyper[0] - 1.0))
        if shrunk <= 0.0:
            return 0.0
    moved: float = rate * exp(shared[0]) * shrunk * mean / sqrt(square)
    return moved


@dataclass(frozen=True)
class Wiener(StepRule):
    r"""Move along the mean gradient, shrunk like a Wiener filter by what noise explains of it.

    .. math:: \theta \leftarrow \theta - \gamma\, \max\Bigl(0,
        1 - \frac{s\,\overline{g^2}}{n\, \overline{g}^2}\Bigr)
        \frac{\overline{g}}{\sqrt{\overline{g^2}}}

    with n the effective number of gradients in the mean. Coordinates whose mean is no larger than
    chance stand still, which is what joint directions need when few coordinates matter. A factor
    common to all coordinates is learned as in :class:`Learned`: it grows while gradients agree with
    the mean of earlier ones.

    Parameters
    ----------
    beta, beta2
        How slowly the means of g and of its square forget.
    shrinkage
        The factor s; 0 moves along the plain mean.
    shared_gain, longest
        How fast the common factor learns, and the limit of its logarithm.

    Examples
    --------
    >>> from scgd.steps import make_slots
    >>> round(float(Wiener.kernel(0, -4.0, 0.5, Wiener().hyper, make_slots(Wiener(), 1))), 12)
    -0.5
    """

    beta: float = 0.98
    beta2: float = 0.99
    shrinkage: float = 1.0
    shared_gain: float = 0.01
    longest: float = 8.0
    n_slots: ClassVar[int] = 4
    n_shared: ClassVar[int] = 1
    kernel: ClassVar[Any] = staticmethod(wiener_kernel)

    def __post_init__(self) -> None:
        check_decay("beta", self.beta)
        check_decay("beta2", self.beta2)
        number(self.shrinkage, "shrinkage", 0)
        number(self.shared_gain, "shared_gain", 0)
        number(self.longest, "longest", 0, LONGEST)

    @property
    def hyper(self) -> tuple[float, ...]:
        """The numbers its kernel reads."""
        rest = float(self.shrinkage), float(self.shared_gain), float(self.longest)
        return (1.0 - float(self.beta), 1.0 - float(self.beta2), *rest)
