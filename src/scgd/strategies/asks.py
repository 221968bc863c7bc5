"""What a strategy may yield, and what it is sent for it.

A strategy is a generator function ``strategy(problem, budget, rng)``. It yields points, it is sent
their values, and it returns what it found. It keeps its state in local variables and writes nothing
outside; what it composes it composes with ``yield from``.

=====================  ========================================================================
it yields              it is sent
=====================  ========================================================================
``x`` (1-d array)      the value, a float
``X`` (2-d)            one value per row; all rows share one sample
``X`` (3-d)            a matrix of values; each ``X[i]`` has a sample of its own
:class:`Along`         one value per entry; all share one sample
:class:`Gradient`      partial derivatives at some coordinates (where the user gave ``jac``)
:class:`Steps`         what a stage of SCGD saw, a :class:`Stage`
:class:`Report`        nothing; it tells people and the run how far it has come
:class:`Wait`          nothing, once there is budget again
=====================  ========================================================================

A failed evaluation has the value NaN. An array that was yielded must never be changed afterwards.
Points lie inside the bounds: ``problem.clipped`` brings them there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.typing import Floats, Ints

if TYPE_CHECKING:
    from scgd.problem import Problem
    from scgd.strategies.budget import Budget

__all__ = [
    "Along",
    "Gradient",
    "Outcome",
    "Report",
    "Stage",
    "Steps",
    "Strategy",
    "Wait",
    "point_of",
]

Asking = Generator[Any, Any, Any]
"""A generator that yields what the table above names."""
Strategy = Callable[["Problem", "Budget", np.random.Generator], Asking]


class Along:
    """Points that differ from x in one coordinate each: ``coords[j]`` is set to ``entries[j]``.

    Parameters
    ----------
    x
        What they have in common.
    coords, entries
        What distinguishes each; lists where it is one point, which are quicker.
    single
        Whether it is one point, whose value is wanted as a number.

    Examples
    --------
    >>> np.asarray(Along(np.zeros(3), np.array([2, 0]), np.array([5.0, 7.0])))
    array([[0., 0., 5.],
           [7., 0., 0.]])
    """

    __slots__ = ("coords", "entries", "single", "x")

    def __init__(
        self,
        x: Floats,
        coords: Ints | Sequence[int],
        entries: Floats | Sequence[float],
        *,
        single: bool = False,
    ) -> None:
        self.x, self.coords, self.entries, self.single = x, coords, entries, single

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.coords)

    @property
    def ndim(self) -> int:
        """As of a point, or of a matrix with one per row."""
        return 1 if self.single else 2

    def at(self, j: int) -> Floats:
        """Return the j-th point."""
        x = self.x.copy()
        x[self.coords[j]] = self.entries[j]
        return x

    def __array__(self, dtype: Any = None, copy: Any = None) -> Floats:
        """Return the points as rows, or the one point."""
        points = np.array([self.at(j) for j in range(len(self))])
        return points[0] if self.single else points


class Gradient:
    """The partial derivatives at x along some coordinates are wanted: one evaluation of jac.

    Parameters
    ----------
    x
        The point.
    coords
        The coordinates.
    """

    __slots__ = ("coords", "x")
    ndim = 2

    def __init__(self, x: Floats, coords: Ints) -> None:
        self.x, self.coords = x, coords

    def __len__(self) -> int:
        """Return the number of evaluations."""
        return 1


@dataclass(frozen=True)
class Steps:
    """Let SCGD take steps.

    Parameters
    ----------
    engine
        A :class:`scgd.descent.CoordinateDescent`.
    n_evals
        For so many evaluations; None: for the rest of the budget.
    base
        The value at its point, where it is known: what it sees lies above by the width of probes.
    spare
        What the rest of the budget leaves for others.
    """

    engine: Any
    n_evals: int | None = None
    base: float = float("nan")
    spare: int = 0


@dataclass(frozen=True)
class Stage:
    """What a stage of SCGD saw of itself.

    Attributes
    ----------
    x
        Where it ended.
    values
        What it observed last.
    fell
        Whether its last phases lie below its first ones by a standard error at least.
    enough
        Whether there were phases enough to tell.
    n_evals
        The evaluations it took.
    rose
        Whether its last phases lie above its first ones by a standard error at least.
    weights
        The sampling distribution learned, where there is one.
    """

    x: Floats
    values: Floats
    fell: bool
    enough: bool = True
    n_evals: int = 0
    rose: bool = False
    weights: Floats | None = None


@dataclass(frozen=True)
class Report:
    """What a strategy tells: fields that are None leave what was told before.

    Parameters
    ----------
    solver
        Who asks from here on, for the table of evaluations and ``result.members``.
    message
        What was found out and chosen, in a sentence.
    x, values
        A point that is recommended, and independent observations at it (they may be few).
    deterministic
        Whether f repeats itself: then the best point seen is the answer.
    relevance
        Each coordinate's share in the changes of f, and standard errors.
    scale
        The unit of each coordinate that steps go by.
    noise
        The standard deviation of one value, pooled over all repeats: a few values at x do not tell.
        NaN: nobody looked for noise, so the error of the best value seen is not known either.
    screening
        What a screening of all inputs has seen: arguments of :class:`scgd.Screening`.
    """

    solver: str | None = None
    message: str | None = None
    x: Floats | None = None
    values: Floats | Sequence[float] | None = None
    deterministic: bool | None = None
    relevance: tuple[Floats, Floats] | None = None
    scale: Floats | None = None
    noise: float | None = None
    screening: dict[str, Any] | None = None


@dataclass(frozen=True)
class Wait:
    """Nothing is left to do before the budget is extended."""


@dataclass(frozen=True)
class Outcome:
    """What the strategy of a run returns; None will do.

    Parameters
    ----------
    converged
        Whether it ended because nothing is left to gain.
    diverged
        Whether it gave up because values only rose.
    more
        Whatever else it found, by name.
    """

    converged: bool = False
    diverged: bool = False
    more: dict[str, Any] = field(default_factory=dict)


def point_of(points: Any, j: int) -> Floats:
    """Return a copy of the j-th point of what was asked.

    Parameters
    ----------
    points
        What a strategy yielded.
    j
        Which point of it, counted in order.
    """
    if isinstance(points, Along):
        return points.at(j)
    one: Floats = points if points.ndim == 1 else points.reshape(-1, points.shape[-1])[j]
    return one.copy()


def n_asked(asked: Any) -> int:
    """Return the evaluations that something yielded takes, at least."""
    if isinstance(asked, Steps):
        return asked.n_evals or 1
    return asked.size // asked.shape[-1] if isinstance(asked, np.ndarray) else len(asked)


def lowest(values: Any) -> tuple[int, float]:
    """Return which of the values sent for some points is the lowest, and the value.

    Failed evaluations do not count; where all failed, the value is NaN.
    """
    if isinstance(values, float):
        return 0, values
    k = int(np.argmin(np.where(values == values, values, np.inf)))
    return k, float(values.flat[k])
