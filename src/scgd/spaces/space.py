"""A space: named parameters, and the way between a dict of them and a point of the unit cube."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.calling import calls_user
from scgd.problem import Problem
from scgd.spaces.grid import Condition, Grid
from scgd.spaces.parameters import Choice, Parameter, adopted
from scgd.typing import Floats

REMEDIES = {
    "bounds": "give each parameter its own, as in Float(0, 1)",
    "scale": "the bounds of the parameters, with log=True where factors count, tell it",
    "jac": "a function of named parameters is searched by its values",
    "vectorized": "fun is called with one dict of parameters at a time",
    "first_order": "a function of named parameters is searched by its values",
}

LARGEST = 1_000_000
"""Coordinates of a space: their names alone take 135 MB."""


class Space:
    """Named parameters to search over.

    Parameters
    ----------
    parameters
        A mapping from names to :class:`Float`, :class:`Int`, :class:`Choice`, lists of values, and
        distributions of ``scipy.stats`` or Optuna.
    **named
        The same, where names are Python's.

    Attributes
    ----------
    parameters
        The parameters by name.
    grid
        The unit cube that searches move in: one coordinate per number, with its levels.
    names
        The name of each coordinate: ``"lr"``, ``"w[3]"``.

    Examples
    --------
    >>> from scgd.spaces import Choice, Float
    >>> space = Space(
    ...     lr=Float(1e-4, 1, log=True), booster=Choice("gbdt", "dart"),
    ...     drop=Float(0, 0.5, when={"booster": "dart"}),
    ... )
    >>> space.start
    {'lr': 0.01, 'booster': 'gbdt'}
    >>> x = space.encode({"lr": 0.1, "booster": "dart", "drop": 0.2})
    >>> x
    array([0.75, 0.75, 0.4 ])
    >>> space.decode(x)
    {'lr': 0.1, 'booster': 'dart', 'drop': 0.2}
    """

    def __init__(self, parameters: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        if parameters is not None and not isinstance(parameters, Mapping):
            raise TypeError(
                f"a Space is made of named parameters, got {type(parameters).__name__}; "
                "write Space(lr=Float(0, 1)) or Space({'lr': Float(0, 1)})"
            )
        given = {**(parameters or {}), **named}
        if not given:
            raise ValueError("a space needs parameters, as in Space(lr=Float(0, 1))")
        self.parameters: dict[str, Parameter] = {
            str(name): adopted(name, parameter) for name, parameter in given.items()
        }
        if (n := sum(parameter.size or 1 for parameter in self.parameters.values())) > LARGEST:
            raise ValueError(
                f"a space has at most {LARGEST:,} coordinates, each with a name, got {n:,} in all; "
                "lower size, or search arrays with x0 and bounds"
            )
        self.places: dict[str, slice] = {}
        self.names: list[str] = []
        for name, parameter in self.parameters.items():
            size = parameter.size
            self.names += [name] if size is None else [f"{name}[{i}]" for i in range(size)]
            self.places[name] = slice(len(self.names) - (size or 1), len(self.names))
        self.grid = self._grid()

    def _grid(self) -> Grid:
        """Return the unit cube with the levels, conditions and defaults of the parameters."""
        parts = self.parameters.items()
        sizes = [parameter.size or 1 for _, parameter in parts]
        grid = Grid(
            np.full(len(self.names), 0.5),
            np.repeat([parameter.n_levels for _, parameter in parts], sizes).astype(np.int64),
            np.repeat([parameter.first for _, parameter in parts], sizes),
            np.repeat([parameter.categorical for _, parameter in parts], sizes),
        )
        start = grid.start
        for name, parameter in parts:
            default = parameter.default
            if default is None and isinstance(parameter, Choice) and parameter.categorical:
                default = parameter.options[0]
            if default is not None:
                start[self.places[name]] = self._units(grid, name, default, "default of ")
        conditions = [c for name, parameter in parts for c in self._conditions(name, parameter)]
        return Grid(start, grid.n_levels, grid.first, grid.categorical, tuple(conditions))

    def _conditions(self, name: str, parameter: Parameter) -> list[Condition]:
        """Return when a parameter has an effect."""
        if parameter.when is None:
            return []
        if not isinstance(parameter.when, Mapping) or not parameter.when:
            raise ValueError(
                f"when of {name!r} must be a dict such as {{'booster': 'dart'}}, "
                f"got {parameter.when!r}"
            )
        earlier = list(self.parameters)[: list(self.parameters).index(name)]
        place = self.places[name]
        children = np.arange(place.start, place.stop)
        found = []
        for other, values in parameter.when.items():
            if other not in earlier:
                raise ValueError(
                    f"when of {name!r} names {other!r}, which is no parameter before it; "
                    f"these are {earlier}"
                )
            levels = self._levels(name, other, values)
            found.append(Condition(children, self.places[other].start, levels))
        return found

    def _levels(self, name: str, other: str, values: Any) -> Any:
        """Return the levels of another parameter that a condition names."""
        parent = self.parameters[other]
        if parent.n_levels == 0 or parent.size is not None:
            raise ValueError(
                f"when of {name!r} names {other!r}, which is {parent!r}; a condition needs a "
                "Choice or an Int"
            )
        several = isinstance(values, list | tuple | set | frozenset)
        try:
            places = [parent.place(value) for value in (values if several else [values])]
        except (TypeError, ValueError) as error:
            raise ValueError(f"when of {name!r}: {other!r} is never so: {error}") from None
        return np.array(places, np.int64)

    # ---- the way there and back ------------------------------------------------------------------

    @property
    def n_coords(self) -> int:
        """Coordinates of the cube."""
        return len(self.names)

    @property
    def start(self) -> dict[str, Any]:
        """The defaults."""
        return self.decode(self.grid.start)

    @property
    def continuous(self) -> bool:
        """Whether there are real numbers only, each with an effect everywhere."""
        return not self.grid.discrete.any() and not self.grid.conditions

    def decode(self, x: Any) -> dict[str, Any]:
        """Return the parameters at a point of the cube: plain values, arrays where there are many.

        A parameter whose condition does not hold is absent.
        """
        point = np.clip(np.asarray(x, np.float64), 0.0, 1.0)
        if point.shape != (self.n_coords,):
            raise ValueError(f"a point has {self.n_coords} coordinates, got shape {point.shape}")
        levels, active = self.grid.levels(point), self.grid.active(point[None])[0]
        found: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            place = self.places[name]
            if active[place.start]:
                values = parameter.values(point[place], levels[place])
                found[name] = values[0] if parameter.size is None else np.array(values)
        return found

    def encode(self, params: Mapping[str, Any]) -> Floats:
        """Return the point of some parameters; those without effect may be left out."""
        if not isinstance(params, Mapping):
            raise TypeError(f"params must be a dict of values, got {type(params).__name__}")
        unknown = [name for name in params if name not in self.parameters]
        if unknown:
            raise ValueError(f"params has {unknown[0]!r}, which is none of {list(self.parameters)}")
        point = self.grid.start.copy()
        for name, value in params.items():
            point[self.places[name]] = self._units(self.grid, name, value, "")
        point = np.asarray(self.grid.canonical(point[None])[0], np.float64)
        missing = [name for name in self.decode(point) if name not in params]
        if missing:
            raise ValueError(f"params lacks {missing[0]!r}")
        return point

    def _units(self, grid: Grid, name: str, value: Any, what: str) -> Floats:
        """Return the unit coordinates of a value, or say whose it is that is wrong."""
        parameter, place = self.parameters[name], self.places[name]
        size = parameter.size
        values = [value] if size is None else np.broadcast_to(value, np.shape(value) or size)
        if size is not None and np.shape(values) != (size,):
            raise ValueError(f"the {what}parameter {name!r} needs {size} numbers, got {value!r}")
        try:
            found = np.array([parameter.place(v) for v in values])
        except (TypeError, ValueError) as error:
            raise ValueError(f"the {what}parameter {name!r}: {error}") from None
        if parameter.n_levels == 0:
            return found
        everywhere = np.zeros(grid.n_coords, np.int64)
        everywhere[place] = found.astype(np.int64)
        return grid.centres(everywhere)[place]

    # ---- what a run needs ------------------------------------------------------------------------

    def problem(self, **others: Any) -> Problem:
        """Return the problem of a search over the space; other arguments make no sense beside it.

        A length of one is a quarter of the cube, as it is between bounds.
        """
        for name, value in others.items():
            if value is not None and value is not False:
                raise ValueError(f"{name} makes no sense with a Space; drop it: {REMEDIES[name]}")
        ones = np.ones(self.n_coords)
        return Problem(
            self.grid.start.copy(),
            np.zeros(self.n_coords),
            ones,
            ones / 4,
            scale_known=True,
            space=self,
        )

    def __repr__(self) -> str:
        parts = self.parameters.items()
        if all(name.isidentifier() for name in self.parameters):
            return f"Space({', '.join(f'{name}={parameter!r}' for name, parameter in parts)})"
        return f"Space({self.parameters!r})"


@dataclass(frozen=True)
class InSpace:
    """A function of parameters, to be called with points; it travels to workers."""

    space: Space
    fun: Callable[..., Any]

    @calls_user
    def __call__(self, x: Any, *rest: Any) -> Any:
        """Call the function with the parameters at a point."""
        return self.fun(self.space.decode(x), *rest)
