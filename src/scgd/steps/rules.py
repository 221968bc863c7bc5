"""What a step rule is, and the built-in ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from math import exp, sqrt
from typing import Any, ClassVar, TypeVar

import numpy as np

from scgd.calling import join_ours
from scgd.checks import flag, number
from scgd.compiling import register_jitable
from scgd.typing import Floats

LONGEST = 300.0
"""The largest logarithm of a learned factor: two of them together are still a finite number."""
COMMON = 0.002
"""The weight of a visit in averages over all coordinates: 500 visits, many times those of one."""
CERTAIN = 20.0
"""Visits before which a mean is not shrunk: its share of noise is not known to a fifth."""
Function = TypeVar("Function", bound=Callable[..., float])


def kernel(function: Function) -> Function:
    """Let compiled code call a function of this package, which stays the plain Python it is."""
    register_jitable(function, error_model="numpy")
    return function


class StepRule:
    """A description of an update rule; its memory is the ``slots`` array.

    A subclass is a frozen dataclass with a ``kernel``, the number of its slots, and ``hyper``.
    """

    kernel: ClassVar[Any]
    """``staticmethod(f)`` of a plain function ``f(k, grad, rate, hyper, slots)`` that returns what
    is subtracted from coordinate k. It runs as it is in Python and compiled by numba elsewhere."""
    n_slots: ClassVar[int] = 0
    """Numbers that are remembered per coordinate: ``slots[j][k]``, zero at first."""
    n_shared: ClassVar[int] = 0
    """Numbers that all coordinates share, at the head of the last slot."""

    def __init_subclass__(cls) -> None:
        """Have a signal that comes inside the kernel wait until its slots are whole."""
        super().__init_subclass__()
        if "kernel" in vars(cls):
            join_ours(cls.kernel)

    @property
    def hyper(self) -> tuple[float, ...]:
        """The numbers its kernel reads: by default the fields, in their order."""
        names: list[str] = [field.name for field in fields(self)] if is_dataclass(self) else []
        return tuple(float(getattr(self, name)) for name in names) or (0.0,)

    def pace(self, slots: Floats, progress: float) -> None:
        """Learn, before a phase, which part of the budget is used (here: nothing)."""

    @property
    def paced(self) -> bool:
        """Whether this rule listens to :meth:`pace`, which not every engine can call."""
        return type(self).pace is not StepRule.pace


def check_decay(name: str, value: float) -> None:
    """Refuse a decay outside [0, 1)."""
    number(value, name, 0, 1, ends="[)")


def make_slots(rule: StepRule, n_coords: int) -> Floats:
    """Return the zeroed memory of a rule."""
    return np.zeros((rule.n_slots, max(n_coords, rule.n_shared)))


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

    kernel: ClassVar[Any] = staticmethod(sgd_kernel)


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


@kernel
def rms_kernel(k: int, grad: float, rate: float, hyper: Any, slots: Any) -> float:
    """Divide by the root mean square of the gradients seen here."""
    squares, visits = slots[0], slots[1]
    n = visits[k] + 1.0
    weight, forget = 1.0 / n, 1.0 - hyper[0]
    if weight < forget:
        weight = forget
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
    weight = max(1.0 / n, 1.0 - hyper[0])
    square += weight * (grad * grad - square)
    means[k] = mean + weight * (grad - mean)
    squares[k] = square
    visits[k] = n
    shared[2] += 1.0
    size = rate * sqrt(square)  # in the units of f, which all coordinates share
    shared[1] += max(1.0 / shared[2], COMMON) * (size - shared[1])
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

    def pace(self, slots: Floats, progress: float) -> None:
        """Divide by the coordinate's own size more and more as the budget is used."""
        slots[-1][PROGRESS] = progress


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
    forget = 1.0 - hyper[0]
    mean += max(1.0 / n, forget) * (grad - mean)
    square += max(1.0 / n, 1.0 - hyper[1]) * (grad * grad - square)
    means[k], squares[k], visits[k] = mean, square, n
    if square == 0.0 or mean == 0.0:
        return 0.0
    shrunk = 1.0
    if n >= CERTAIN:  # an average that forgets a share w per visit is one over 2 / w - 1 values
        shrunk = 1.0 - hyper[2] * square / (mean * mean * min(n, 2.0 / forget - 1.0))
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
