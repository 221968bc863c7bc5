"""Schedules: a quantity that changes with time, as a frozen, printable function of an index.

A schedule maps an array of indices to an array of values. What the index counts is named by the
schedule's ``per`` field: ``"step"`` (coordinate steps, from 1 as in the paper's gamma_t) or
``"pass"`` (completed passes, ``step // n_coords``, as in the published experiments). Any callable
that maps an array of step numbers to values works wherever a schedule does, and a plain number is a
constant. Schedules that end with the budget (``Linear``) also need the total number of steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from scgd.checks import as_number, choice, number, reals, registry, settle, shown, whole
from scgd.typing import Array, Floats

Schedule = Callable[[Array], Any]
Per = Literal["step", "pass"]


@dataclass(frozen=True)
class Constant:
    """The same value at every index.

    Parameters
    ----------
    value
        The value, not negative.

    Examples
    --------
    >>> Constant(0.5)(np.array([1, 2, 3]))
    array([0.5, 0.5, 0.5])
    """

    value: float

    def __post_init__(self) -> None:
        settle(self, value=number(self.value, "value", 0))

    def __call__(self, t: Array) -> Floats:
        """Return the value for every index in ``t``."""
        return np.full(np.shape(t), self.value, dtype=np.float64)


@dataclass(frozen=True)
class InverseTime:
    r"""Decay like a power of time.

    .. math:: \gamma_t = \text{scale} / (t + \text{offset})^{\text{power}}

    Parameters
    ----------
    scale, offset, power
        The paper's :math:`\gamma`, :math:`k_0` and :math:`\alpha`.
    per
        What *t* counts: coordinate steps (from 1) or completed passes (from 0).

    Examples
    --------
    >>> InverseTime(scale=6.0, offset=1.0)(np.array([1, 2]))
    array([3., 2.])
    """

    scale: float = 1.0
    offset: float = 0.0
    power: float = 1.0
    per: Per = "step"

    def __post_init__(self) -> None:
        scale, offset = number(self.scale, "scale", 0), number(self.offset, "offset", 0)
        settle(self, scale=scale, offset=offset, power=number(self.power, "power"))
        choice(self.per, "per", ("step", "pass"))

    def __call__(self, t: Array) -> Floats:
        """Return the value for every index in ``t``."""
        return np.asarray(self.scale / (np.asarray(t, np.float64) + self.offset) ** self.power)


@dataclass(frozen=True)
class InverseLog:
    r"""Decay like a logarithm, :math:`\min(1, 1 / \log(n + \text{offset}))`.

    The paper writes :math:`\lambda_n = 1/\log n`, which is undefined at 1; the offset is named.

    Parameters
    ----------
    offset
        Added to n; the value is 1 as long as the logarithm is below 1.

    Examples
    --------
    >>> InverseLog(offset=3.0)(np.array([1])).round(4)
    array([0.7213])
    """

    offset: float = 3.0

    def __post_init__(self) -> None:
        settle(self, offset=number(self.offset, "offset", 0))

    def __call__(self, n: Array) -> Floats:
        """Return the value for every index in ``n``."""
        logs = np.log(np.asarray(n, np.float64) + self.offset)
        return 1.0 / np.maximum(logs, 1.0)


@dataclass(frozen=True)
class Linear:
    r"""Fall in a straight line to ``end`` over a budget, :math:`s (1 - t/N)^{\text{power}}`.

    Parameters
    ----------
    scale
        The value at the start.
    end
        The fraction of ``scale`` that remains at the end.
    power
        The exponent of the remaining fraction of the budget.
    start, total
        First and last step of the decay. ``total=None`` is filled in from the budget when a run
        starts; a run that is continued with a larger budget starts a new stage there.

    Examples
    --------
    >>> Linear(scale=2.0, total=4)(np.array([0, 1, 2, 3]))
    array([2. , 1.5, 1. , 0.5])
    """

    scale: float = 1.0
    end: float = 0.0
    power: float = 1.0
    start: int = 0
    total: int | None = None

    def __post_init__(self) -> None:
        settle(self, scale=number(self.scale, "scale", 0), end=number(self.end, "end", 0, 1))
        settle(self, power=number(self.power, "power", 0), start=whole(self.start, "start"))
        if self.total is not None:
            settle(self, total=whole(self.total, "total"))

    def __call__(self, t: Array) -> Floats:
        """Return the value for every index in ``t``."""
        if self.total is None:
            raise ValueError("Linear has no total; give total=, or max_evals= to the run")
        done = (np.asarray(t, np.float64) - self.start) / max(1, self.total - self.start)
        left = np.clip(1.0 - done, 0.0, 1.0) ** self.power
        return np.asarray(self.scale * np.maximum(left, self.end))


@dataclass(frozen=True)
class SqrtOf:
    r"""The square root of another schedule: :math:`h_t = \sqrt{\gamma_t}` (Theorem 4).

    Parameters
    ----------
    schedule
        The other schedule, or a number.

    Examples
    --------
    >>> SqrtOf(InverseTime(scale=1.0))(np.array([4]))
    array([0.5])
    """

    schedule: Schedule

    def __post_init__(self) -> None:
        if not callable(self.schedule):
            settle(self, schedule=Constant(number(self.schedule, "schedule", 0)))

    def __call__(self, t: Array) -> Floats:
        """Return the value for every index in ``t``."""
        return np.asarray(np.sqrt(np.asarray(self.schedule(t), np.float64)))


SCHEDULES: dict[str, type] = registry(
    ("constant", Constant),
    ("inverse-time", InverseTime),
    ("inverse-log", InverseLog),
    ("linear", Linear),
    ("sqrt-of", SqrtOf),
)


@dataclass(frozen=True)
class Relative:
    """A learning rate or radius in units of the typical ``scale`` of each coordinate.

    Parameters
    ----------
    schedule
        A schedule or a number.

    Examples
    --------
    >>> Relative(0.1)(np.array([1, 2]))
    array([0.1, 0.1])
    """

    schedule: float | Schedule

    def __post_init__(self) -> None:
        settle(self, schedule=as_schedule(self.schedule, "schedule"))

    def __call__(self, t: Array) -> Any:
        """Return the values of the schedule."""
        return absolute(self)(t)


def absolute(schedule: Schedule) -> Schedule:
    """Return a schedule without its unit."""
    return (
        as_schedule(schedule.schedule, "schedule") if isinstance(schedule, Relative) else schedule
    )


def as_schedule(value: float | Schedule, name: str) -> Schedule:
    """Turn a positive number into a constant schedule; leave callables as they are.

    Examples
    --------
    >>> as_schedule(0.1, "learning_rate")
    Constant(value=0.1)
    """
    if callable(value):
        return value
    if as_number(value) is None:
        raise TypeError(f"{name} must be a number or a callable of t, got {shown(value)}")
    return Constant(number(value, name, 0, ends="(]"))


def values_at(schedule: Schedule, indices: Array, name: str) -> Floats:
    """Return one value per index; a callable may answer an array of indices with one number.

    Examples
    --------
    >>> values_at(lambda n: 0.2, np.arange(3), "mixing")
    array([0.2, 0.2, 0.2])
    """
    values = reals(schedule(indices), name, f"return numbers from {schedule!r}")
    if values.ndim > 0 and values.shape != indices.shape:
        raise ValueError(
            f"{name} must return one number, or one per index: got shape {values.shape} for "
            f"{indices.size} indices from {schedule!r}"
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must be finite, got {values!r} from {schedule!r}")
    return np.broadcast_to(values, indices.shape)
