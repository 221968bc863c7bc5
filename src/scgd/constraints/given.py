"""The argument ``constraints=``: SciPy's constraints, checked, and measured beside f."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scgd.calling import calls_user
from scgd.constraints.linear import Polyhedron
from scgd.outcomes import CAUGHT
from scgd.problem import Problem, as_scalar
from scgd.spaces import InSpace, Space
from scgd.typing import Array, Floats

WANTED = (
    "constraints must be a scipy.optimize.LinearConstraint, a NonlinearConstraint or a list of them"
)


@dataclass(frozen=True)
class Row:
    """One nonlinear constraint: ``low <= fun(x) <= high``."""

    fun: Callable[[Floats], Any]
    low: Floats
    high: Floats

    @property
    def equal(self) -> Array:
        """Which of its values have a goal."""
        same: Array = self.low == self.high
        return same

    def residuals(self, x: Floats) -> Floats:
        """Return what must be zero (first) and what must not be positive."""
        values = np.atleast_1d(np.asarray(self.fun(x), np.float64))
        if values.shape != self.low.shape:
            raise ValueError(
                f"a constraint returned {values.shape} numbers, and {self.low.shape} before"
            )
        inside = ~self.equal
        above, below = values - self.high, self.low - values
        parts = (
            above[self.equal], above[inside & np.isfinite(self.high)],
            below[inside & np.isfinite(self.low)],
        )  # fmt: skip
        return np.concatenate(parts)

    @property
    def kinds(self) -> Array:
        """Which of the residuals must be zero."""
        inside = ~self.equal
        n = int(np.sum(inside & np.isfinite(self.high)) + np.sum(inside & np.isfinite(self.low)))
        return np.concatenate([np.ones(int(self.equal.sum()), np.bool_), np.zeros(n, np.bool_)])


@dataclass(frozen=True)
class Constraints:
    """What a point must fulfil.

    Attributes
    ----------
    polyhedron
        Linear constraints with the bounds; None where there are none of the former.
    rows
        The nonlinear ones.
    """

    polyhedron: Polyhedron | None
    rows: tuple[Row, ...]

    @property
    def equal(self) -> Array:
        """Which residuals must be zero."""
        return np.concatenate([np.empty(0, np.bool_), *(row.kinds for row in self.rows)])

    def inside(self, z: Floats) -> Floats:
        """Return the point that is evaluated where a search asks for z."""
        return z if self.polyhedron is None else self.polyhedron(z)

    @calls_user
    def residuals(self, x: Floats) -> Floats:
        """Return the residuals of the nonlinear constraints."""
        return np.concatenate([np.empty(0), *(row.residuals(x) for row in self.rows)])

    def free(self, problem: Problem) -> Problem:
        """Return the problem as a search sees it: linear constraints take its bounds over."""
        if self.polyhedron is None:
            return problem
        return replace(
            problem, x0=self.polyhedron.check(problem.x0), lower=np.empty(0), upper=np.empty(0)
        )

    @property
    def text(self) -> str:
        """What they are, for the identity of a run."""
        names = [] if self.polyhedron is None else [f"{len(self.polyhedron.rows)} linear"]
        return ", ".join([*names, *(f"{len(row.low)} nonlinear" for row in self.rows)])

    @classmethod
    def check(cls, given: Any, problem: Problem) -> Constraints | None:
        """Check the argument; None where there are none. Calls each nonlinear one at x0."""
        items = list(given) if isinstance(given, list | tuple) else [given]
        if given is None or not items:
            return None
        if problem.space is not None and any(map(is_linear, items)):
            raise ValueError(
                "a LinearConstraint has no columns over a Space; give a NonlinearConstraint whose "
                "function takes the parameters"
            )
        linear = [linear_rows(item, problem) for item in items if is_linear(item)]
        others = [item for item in items if not is_linear(item)]
        polyhedron = None
        if linear:
            rows, low, high = (np.concatenate(part) for part in zip(*linear, strict=True))
            none = np.full(problem.n_coords, np.inf)
            bounds = (problem.lower, problem.upper) if problem.lower.size else (-none, none)
            polyhedron = Polyhedron(rows, low, high, *bounds)
        start = problem.x0 if polyhedron is None else polyhedron.check(problem.x0)
        return cls(polyhedron, tuple(nonlinear_row(item, start, problem.space) for item in others))


def is_linear(item: Any) -> bool:
    """Tell whether something is a linear constraint (a matrix has an A of its own)."""
    return hasattr(item, "A") and hasattr(item, "lb")


def linear_rows(item: Any, problem: Problem) -> tuple[Floats, Floats, Floats]:
    """Return matrix, lower and upper bounds of a linear constraint."""
    matrix = item.A.toarray() if hasattr(item.A, "toarray") else item.A
    rows = np.atleast_2d(np.asarray(matrix, np.float64))
    if rows.ndim != 2 or rows.shape[1] != problem.n_coords or not np.isfinite(rows).all():
        raise ValueError(
            f"the matrix of a linear constraint must have {problem.n_coords} finite columns, one "
            f"per coordinate, got shape {rows.shape}"
        )
    return rows, *limits(item, len(rows))


def limits(item: Any, n: int) -> tuple[Floats, Floats]:
    """Return the limits of n values."""
    try:
        low = np.broadcast_to(np.asarray(item.lb, np.float64), (n,)).copy()
        high = np.broadcast_to(np.asarray(item.ub, np.float64), (n,)).copy()
    except (TypeError, ValueError):
        raise ValueError(f"lb and ub of a constraint do not fit its {n} values") from None
    if np.any(wrong := ~(low <= high) | (low == np.inf) | (high == -np.inf)):
        k = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"a constraint cannot hold: lb[{k}] = {low[k]}, ub[{k}] = {high[k]}")
    return low, high


@calls_user
def nonlinear_row(item: Any, start: Floats, space: Space | None = None) -> Row:
    """Return a nonlinear constraint, whose number of values is seen at the start.

    Over a space its function takes parameters, as the one that is minimised.
    """
    if not (callable(getattr(item, "fun", None)) and hasattr(item, "lb") and hasattr(item, "ub")):
        raise TypeError(f"{WANTED}, got {item!r}")
    fun = item.fun if space is None else InSpace(space, item.fun)
    values = np.atleast_1d(np.asarray(fun(start.copy()), np.float64))
    if values.ndim != 1:
        raise ValueError(f"a constraint must return a list of numbers, got shape {values.shape}")
    return Row(fun, *limits(item, len(values)))


class Measured:
    """Measure f and the constraints at one point; it travels to workers with the function.

    Returns f, the residuals, and how far the search had strayed from the polyhedron.
    """

    def __init__(
        self, fun: Callable[..., Any], constraints: Constraints, catch: tuple[type[Exception], ...]
    ) -> None:
        self.fun, self.constraints, self.catch = fun, constraints, catch

    @calls_user
    def __call__(self, z: Floats, *rest: Any) -> Floats:
        """Return the vector, of CAUGHT where an exception was."""
        x = self.constraints.inside(z)
        value = as_scalar(self.fun(x, *rest))
        try:
            residuals = self.constraints.residuals(x)
        except self.catch:
            value, residuals = CAUGHT, np.zeros(len(self.constraints.equal))
        return np.array([value, *residuals, np.linalg.norm(z - x)])
