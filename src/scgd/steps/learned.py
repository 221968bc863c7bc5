"""Step lengths learned from the agreement of gradients."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt
from typing import Any, ClassVar

from scgd.checks import number
from scgd.steps.rule import LONGEST, StepRule, check_decay, kernel
from scgd.typing import Floats

__all__ = ["Learned"]

PROGRESS = 3  # the place of the used part of the budget among the shared numbers


@kernel
def learned_kernel(k: int, grad: float, rate: float, hyper: Any, slots: Any) -> float:
    """Lengthen the step while gradients agree with their mean, shorten it when they do not."""
    means, squares, visits, logs, shared = slots[0], slots[1], slots[2], slots[3], slots[4]
    n, mean, square = visits[k] + 1.0, means[k], squares[k]
    largest = square if square > grad * grad else grad * grad
    if n > 1.0 and largest > 0.0:
        agreement = grad * mean / largest
        logs[k] = min(max(logs[k] + hyper[1] * agreement, hyper[3]), hyper[4])
        shared[0] = min(max(shared[0] + hyper[2] * agreement, hyper[3]), hyper[4])
    weight = max(1.0 / n, hyper[0])
    square += weight * (grad * grad - square)
    means[k] = mean + weight * (grad - mean)
    squares[k] = square
    visits[k] = n
    shared[2] += 1.0
    size = rate * sqrt(square)  # in the units of f, which all coordinates share
    shared[1] += max(1.0 / shared[2], 0.002) * (size - shared[1])
    if size == 0.0:
        return 0.0
    # The divisor turns from the geometric mean of own and typical size to the own size alone.
    own = 0.5 + 0.5 * shared[PROGRESS]
    divisor = size**own * shared[1] ** (1.0 - own)
    moved: float = rate * exp(shared[0] + logs[k]) * (rate * grad / divisor)
    return moved


@dataclass(frozen=True)
class Learned(StepRule):
    r"""Learn the step length of every coordinate from the agreement of its gradients.

    A hypergradient: where a gradient points the way of the mean of earlier ones, the step was too
    short; where they disagree it was too long or drowned in noise,

    .. math::
        \log a_k \leftarrow \log a_k + \kappa\,\frac{g\,\overline{g}}{\max(\overline{g^2}, g^2)},
        \qquad \theta^{(k)} \leftarrow \theta^{(k)} - \gamma_t\, a_k\, g / \sqrt{\overline{g^2}} .

    A second factor, common to all coordinates, learns slowly from all of them. At the start of a
    run half of the division is by the typical size of all gradients, so that steep coordinates move
    farther.

    Parameters
    ----------
    beta
        How slowly the averages forget, per visit.
    gain, shared_gain
        :math:`\kappa` of a coordinate's own factor and of the common one.
    shortest, longest
        Limits of the factors' logarithms.

    Examples
    --------
    >>> from scgd.steps import make_slots
    >>> slots = make_slots(Learned(), 1)
    >>> [round(float(Learned.kernel(0, 1.0, 0.1, Learned().hyper, slots)), 4) for _ in range(3)]
    [0.1, 0.1225, 0.1501]
    """

    beta: float = 0.9
    gain: float = 0.2
    shared_gain: float = 0.003
    shortest: float = -5.0
    longest: float = 3.0
    n_slots: ClassVar[int] = 5
    n_shared: ClassVar[int] = 4
    kernel: ClassVar[Any] = staticmethod(learned_kernel)

    def __post_init__(self) -> None:
        check_decay("beta", self.beta)
        number(self.gain, "gain", 0)
        number(self.shared_gain, "shared_gain", 0)
        longest = number(self.longest, "longest", -LONGEST, LONGEST)
        number(self.shortest, "shortest", -LONGEST, longest)

    @property
    def hyper(self) -> tuple[float, ...]:
        """The numbers its kernel reads."""
        gains = float(self.gain), float(self.shared_gain)
        return (1.0 - float(self.beta), *gains, float(self.shortest), float(self.longest))

    def pace(self, slots: Floats, progress: float) -> None:
        """Divide by the coordinate's own size more and more as the budget is used."""
        slots[-1][PROGRESS] = progress
