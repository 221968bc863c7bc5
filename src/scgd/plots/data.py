"""What the pictures of a run show, as arrays; plotly and SVG draw the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.evaluations import Evaluations
from scgd.problem import as_scalar
from scgd.spaces import Space
from scgd.typing import Array, Floats, Ints

MOST_DOTS = 4000
MOST_ROWS = 200_000
"""Evaluations that slices look at, the last ones."""
N_PLACES = 21
STEEP = 30.0
"""A logarithmic axis pays where values differ by this factor."""


@dataclass(frozen=True)
class Curve:
    """The value reached, with a band.

    Where the point to be returned is known all along (the incumbent), its value with two standard
    errors; where values are exact, the best so far; else the median of neighbouring reports with
    quartiles.
    """

    nfev: Ints
    middle: Floats
    low: Floats
    high: Floats

    @property
    def exact(self) -> bool:
        """Whether there is no band."""
        return bool(np.all(self.low == self.high))


@dataclass(frozen=True)
class Dots:
    """Evaluations: number, value and who asked."""

    number: Ints
    value: Floats
    member: Array


@dataclass(frozen=True)
class Slice:
    """Values along one input: where, what, and how far along the run (0 to 1); a line if exact.

    Where the input is a choice, ``at`` holds its values as words; ``log`` is what the space says.
    """

    coord: int
    at: Array
    value: Floats
    age: Floats
    line: bool
    here: Any
    log: bool = False


def named(result: Any, k: int) -> str:
    """Return the name of a coordinate."""
    names = result.get("names")
    return str(names[k]) if names is not None else f"x[{k}]"


def relevant(result: Any, n: int) -> list[tuple[int, float, float]]:
    """Return the most relevant coordinates as (coordinate, share, standard error).

    ``result.relevance`` where something is known of it; else the sampling distribution, if uneven.
    """
    sizes, errors = result.get("relevance"), result.get("relevance_error")
    if sizes is None:
        sizes, errors = result.get("weights"), None
        if sizes is None or np.ptp(sizes) <= 1e-9 * np.max(sizes):
            return []
    sizes = np.abs(np.asarray(sizes, np.float64))
    errors = np.full(sizes.shape, np.nan) if errors is None else np.asarray(errors, np.float64)
    order = np.argsort(-np.nan_to_num(sizes), kind="stable")[:n]
    return [(int(k), float(sizes[k]), float(errors[k])) for k in order if sizes[k] > 0]


def curve(result: Any) -> Curve:
    """Return the value reached against evaluations."""
    nfev, fun = result.history["nfev"], result.history["fun"]
    best, error = result.history["incumbent"], result.history["error"]
    if (kept := np.isfinite(best)).any():
        nfev, best, reach = nfev[kept], best[kept], 2 * np.nan_to_num(error[kept])
        return Curve(nfev, best, best - reach, best + reach)
    kept = np.isfinite(fun)
    nfev, fun = nfev[kept], fun[kept]
    if len(fun) and result.get("fun_error") == 0:
        better = np.minimum if result.fun <= fun.min() else np.maximum  # which may be looked for
        best = better.accumulate(fun)
        return Curve(nfev, best, best, best)
    half = len(fun) // 40
    if half < 1:
        return Curve(nfev, fun, fun, fun)
    padded = np.concatenate((np.full(half, np.nan), fun, np.full(half, np.nan)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    low, middle, high = np.nanquantile(windows, (0.25, 0.5, 0.75), axis=1)
    return Curve(nfev, middle, low, high)


def dots(seen: Evaluations, most: int = MOST_DOTS) -> Dots:
    """Return evaluations, evenly thinned; the lowest one is always among them."""
    known = np.flatnonzero(np.isfinite(seen.value))
    places = known
    if len(known) > most:
        places = known[np.linspace(0, len(known) - 1, most).astype(np.int64)]
        places = np.union1d(places, known[np.argmin(seen.value[known])])
    return Dots(seen.number[places], seen.value[places], seen.member[places])


def slices(result: Any, coords: list[int], fun: Callable[..., Any] | None) -> list[Slice]:
    """Return slices through the point: by further evaluations, or from those of the run."""
    if fun is not None:
        return [along(result, k, fun) for k in coords]
    seen = result.evaluations
    if seen.points is None or not len(seen) or not coords:
        return []
    if seen.space is not None:
        return [seen_over(seen, result, k) for k in coords]
    columns = seen.points.columns(coords)
    kept = np.flatnonzero(np.isfinite(seen.value))[-MOST_ROWS:]
    places = kept[np.unique(np.linspace(0, len(kept) - 1, MOST_DOTS).astype(np.int64))]
    return [
        seen_along(k, float(result.x[k]), columns[places, i], seen.value[places], places)
        for i, k in enumerate(coords)
    ]


def seen_along(k: int, here: float, at: Floats, value: Floats, places: Ints) -> Slice:
    """Return the evaluations near the answer: wide first looks would flatten all the rest."""
    reach = 1.5 * float(np.quantile(np.abs(at - here), 0.95)) or np.inf
    near = np.abs(at - here) <= reach
    age = places[near] / max(1, int(places[-1]))
    return Slice(k, at[near], value[near], age, False, here)


def seen_over(seen: Evaluations, result: Any, k: int) -> Slice:
    """Return the evaluations along one parameter of a space, where it exists."""
    assert seen.space is not None and seen.points is not None
    found = [parameter(seen.space, x, k) for x in seen.points]
    known = [i for i, value in enumerate(found) if value is not None and np.isfinite(seen.value[i])]
    at = np.array([found[i] for i in known])
    age = np.array(known) / max(1, len(seen) - 1)
    here = parameter(seen.space, result.x, k)
    return Slice(k, at, seen.value[known], age, False, here, logarithmic(seen.space, k))


def logarithmic(space: Space | None, k: int) -> bool:
    """Tell whether factors count in the parameter of a coordinate."""
    return space is not None and bool(getattr(space.parameters[name_of(space, k)], "log", False))


def name_of(space: Space, k: int) -> str:
    """Return the name of the parameter that a coordinate belongs to."""
    return next(n for n, place in space.places.items() if place.start <= k < place.stop)


def parameter(space: Space | None, x: Floats, k: int) -> Any:
    """Return the parameter of a coordinate: a number, a word for a choice, None if it is absent."""
    if space is None:
        return float(x[k])
    name = name_of(space, k)
    value = space.decode(x).get(name)
    if value is None:
        return None
    if space.parameters[name].size is not None:
        value = value[k - space.places[name].start]
    counts = not space.parameters[name].categorical and isinstance(value, int | float | np.number)
    return float(value) if counts else str(value)


def along(result: Any, k: int, fun: Callable[..., Any]) -> Slice:
    """Evaluate over the range of a parameter, or a unit of scale to both sides of the point."""
    space, x = result.evaluations.space, np.array(result.x, np.float64)
    places = np.linspace(0, 1, N_PLACES)
    if space is None:
        places = x[k] + float(np.asarray(result.scale)[k]) * np.linspace(-1, 1, N_PLACES)
    found: dict[Any, float] = {}
    for place in places:
        x[k] = place
        at = parameter(space, x, k)
        if at is not None and at not in found:
            found[at] = as_scalar(fun(x.copy() if space is None else space.decode(x)))
    values, here = np.array(list(found.values())), parameter(space, result.x, k)
    ones = np.ones(len(values))
    return Slice(k, np.array(list(found)), values, ones, True, here, logarithmic(space, k))


def is_log(values: Floats) -> bool:
    """Tell whether values are better shown on a logarithmic axis."""
    known = values[np.isfinite(values)]
    return bool(known.size and known.min() > 0 and known.max() > STEEP * known.min())


def core(values: Floats) -> list[float]:
    """Return the range of values without the wildest ones, which would flatten the rest."""
    known = values[np.isfinite(values)]
    if not known.size:
        return [0.0, 1.0]
    low, usual, high = np.min(known), np.quantile(known, 0.95), np.max(known)
    top = high if high <= low + 3 * (usual - low) else low + 1.5 * (usual - low)
    room = 0.05 * (top - low) or 1.0
    return [float(low - room), float(top + room)]


def short(name: str, most: int = 24) -> str:
    """Return a name that fits beside a bar."""
    return name if len(name) <= most else name[: most - 1] + "…"


OURS = "#0b8f8a"
"""The colour of the value reached and of bars."""
ERRORS = "#858d97"
"""The colour of standard errors, on a light and on a dark ground."""
MEMBERS = (
    "#8796d8", "#e0701a", "#1f9e63", "#c2448f", "#9a6a3c", "#2aa5a0", "#6f8f2f", "#8a5cc9",
    "#b8860b", "#d9372c",
)  # fmt: skip
"""The colours of searches, in the order in which they first asked."""


@dataclass(frozen=True)
class Theme:
    """The colours of ground, words and lines."""

    ground: str
    ink: str
    soft: str
    line: str


LIGHT = Theme("#ffffff", "#1c1e21", "#5c636b", "#dfe2e6")
DARK = Theme("#1c1f25", "#e8eaed", "#a2a9b3", "#343941")


def faded(colour: str, alpha: float) -> str:
    """Return a colour that lets the ground through.

    Examples
    --------
    >>> faded("#0b8f8a", 0.2)
    'rgba(11,143,138,0.2)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"
