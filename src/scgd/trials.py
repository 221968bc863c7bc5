"""The table of a laboratory: every trial that was handed out, what came of it, and what was known.

Values are kept as they are minimised; the front door turns signs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.checks import reals
from scgd.problem import Known, Problem, as_scalar
from scgd.typing import Array, Floats, Ints

STATES = ("out", "told", "failed", "known")
OUT, TOLD, FAILED, KNOWN = range(4)
NO_ID, NAN = -1, float("nan")
NUMBERS = ("values", "errors", "penalties")


@dataclass(frozen=True)
class Trial:
    """An evaluation to be made.

    Attributes
    ----------
    id
        Its number, to be handed to :meth:`~scgd.Optimizer.tell` with the value.
    x
        The point.
    arguments
        What the function is given beside x: the sample, where there is one.
    coords
        Where the partial derivatives at these coordinates are wanted instead of a value; else None.
    params
        The parameters at x, where the run is over a :class:`~scgd.Space`; else None.

    Examples
    --------
    >>> import scgd
    >>> trial = scgd.Optimizer([1.0, 2.0], max_evals=50, seed=0).ask(1)[0]
    >>> trial.id, trial.x.shape, trial.xi
    (0, (2,), None)
    """

    id: int
    x: Floats
    arguments: tuple[Any, ...] = ()
    coords: Ints | None = None
    params: dict[str, Any] | None = None

    @property
    def xi(self) -> Any:
        """The sample to evaluate with: row numbers, or what ``sample(rng)`` made; else None."""
        return self.arguments[0] if self.arguments else None


class Trials:
    """Trials in the order in which they were handed out or added.

    Parameters
    ----------
    n_coords
        The dimension.

    Examples
    --------
    >>> trials = Trials(2)
    >>> trials.issue(0, np.zeros(2))
    >>> trials.add(np.ones(2), 3.0)
    >>> trials.enter(0, 1.5, 0.1)
    >>> [(row["state"], row["value"]) for row in trials.rows()]
    [('told', 1.5), ('known', 3.0)]
    """

    def __init__(self, n_coords: int) -> None:
        self.n, self.place = 0, dict[int, int]()
        kinds = ("ids", "i8"), ("states", "i8"), *((name, "f8") for name in NUMBERS)
        self.room = np.empty(1, [*kinds, ("points", "f8", (n_coords,))])

    @property
    def table(self) -> Array:
        """One row per trial; what is not there is NaN."""
        return self.room[: self.n]

    def issue(self, number: int, x: Floats) -> None:
        """Note a trial that is handed out."""
        if number not in self.place:
            self.place[number] = self.n
            self._append(number, OUT, NAN, NAN, x)

    def add(self, x: Floats, value: float, error: float = NAN) -> None:
        """Note an earlier measurement."""
        self._append(NO_ID, KNOWN, value, error, x)

    def _append(self, number: int, state: int, value: float, error: float, x: Floats) -> None:
        if self.n == len(self.room):
            larger = np.empty(2 * self.n, self.room.dtype)
            larger[: self.n] = self.room
            self.room = larger
        self.room[self.n] = number, state, value, error, 0.0, x
        self.n += 1

    def enter(
        self, number: int, value: float | None, error: float = NAN, penalty: float = 0.0
    ) -> None:
        """Note what a trial gave: NaN where it failed, None where it was no value (partials).

        ``penalty`` is what constraints add to the value.
        """
        row, failed = self.table[self.place[number]], value is not None and not np.isfinite(value)
        row["states"] = FAILED if failed else TOLD
        if value is not None and not failed:
            row["values"], row["errors"], row["penalties"] = value, error, penalty

    @property
    def n_known(self) -> int:
        """How many have a value."""
        return int(np.isfinite(self.table["values"]).sum())

    def known(self) -> tuple[Floats, Floats]:
        """Return the points that have a value, and the values with errors and penalties added.

        A value that is less certain counts as less good.
        """
        known = self.table[np.isfinite(self.table["values"])]
        errors = np.where(np.isfinite(known["errors"]), known["errors"], 0.0)
        return known["points"], known["values"] + known["penalties"] + errors

    def rows(self, sign: float = 1.0) -> list[dict[str, Any]]:
        """Return the table, one dict per trial; None where there is nothing."""
        return [
            {
                "id": None if number == NO_ID else number,
                "state": STATES[state],
                "value": None if np.isnan(value) else sign * value,
                "error": None if np.isnan(error) else error,
                "x": x.copy(),
            }
            for number, state, value, error, _, x in self.table.tolist()
        ]

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        return {name: self.table[name].copy() for name in self.table.dtype.names or ()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another table."""
        if any(column.shape[:1] != state["ids"].shape for column in state.values()):
            raise ValueError("the columns of the table have different lengths")
        if not np.isin(state["states"], range(len(STATES))).all():
            raise ValueError("the table knows no such state")
        self.n, self.room = len(state["ids"]), np.empty(max(1, len(state["ids"])), self.room.dtype)
        for name in self.room.dtype.names or ():
            if state[name].shape != self.table[name].shape:
                raise ValueError("the points of the table have another dimension")
            self.table[name] = state[name]
        ids = self.table["ids"].tolist()
        self.place = {number: i for i, number in enumerate(ids) if number != NO_ID}


NOT_A_LIST = (str, bytes, dict, set)


def is_scalar(value: Any) -> bool:
    """Tell whether something is an array without an axis to go along."""
    return isinstance(value, np.ndarray) and value.ndim == 0


def check_known(known: Any, problem: Problem, sign: float) -> Known:
    """Return earlier measurements, values as they are minimised, or say what is wrong."""
    found = Known()
    if not isinstance(known, Iterable) or isinstance(known, NOT_A_LIST) or is_scalar(known):
        raise TypeError(f"known must be a list of pairs (x, value), got {known!r}")
    for i, pair in enumerate(known):
        try:
            x, value = pair
        except (TypeError, ValueError):
            raise TypeError(f"known[{i}] must be a pair (x, value), got {pair!r}") from None
        point = check_point(x, problem, f"the point of known[{i}]")
        found.add(point, sign * check_value(value, f"the value of known[{i}]"))
    return found


def check_point(x: Any, problem: Problem, name: str) -> Floats:
    """Return a point inside the bounds as a fresh array; parameters of a space are encoded."""
    if problem.space is not None and isinstance(x, Mapping):
        return problem.space.encode(x)
    point: Floats = reals(x, name)
    if point.shape != (problem.n_coords,) or not np.isfinite(point).all():
        raise ValueError(
            f"{name} must be {problem.n_coords} finite numbers, got {np.array2string(point)}"
        )
    if not np.array_equal(problem.clipped(point), point):
        k = int(np.flatnonzero(problem.clipped(point) != point)[0])
        raise ValueError(f"{name} lies outside the bounds of coordinate {k}; leave it out")
    return point


def check_value(value: Any, name: str) -> float:
    """Return a finite value."""
    scalar = real(value, f"{name} must be one real number, got {value!r}")
    if not np.isfinite(scalar):
        raise ValueError(f"{name} must be finite, got {scalar}; leave measurements that failed out")
    return scalar


def real(value: Any, wanted: str) -> float:
    """Return a number, or say what was wanted."""
    try:
        return as_scalar(value)
    except (TypeError, ValueError, RuntimeError):  # NumPy's own, of ragged lists; torch's
        raise TypeError(wanted) from None


def check_error(error: Any) -> float:
    """Return a standard error; NaN where there is none."""
    spread = float("nan") if error is None else check_value(error, "error")
    if spread < 0:
        raise ValueError(f"error must be a standard error >= 0, got {error!r}")
    return spread


def sized(given: Any) -> bool:
    """Tell whether something has a length; an array without dimensions has none."""
    return hasattr(given, "__len__") and not is_scalar(given)


def check_told(value: Any) -> None:
    """Refuse what is not one real number."""
    real(
        value,
        f"values must be real numbers, one per trial, got {value!r}; NaN, an exception or fail(id) "
        "for one that failed",
    )


def failed_value(value: Any) -> bool:
    """Tell whether there is no value: an exception in its place, or a number that is none."""
    nan = isinstance(value, float | np.floating) and bool(np.isnan(value))
    return nan or isinstance(value, Exception)
