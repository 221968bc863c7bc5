"""What a run knows about the problem before the first evaluation: x0, bounds and scale.

Everything a user may get wrong about these is checked here, once, with an error that names the
argument, the value and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.checks import reals
from scgd.typing import Floats

if TYPE_CHECKING:
    from scgd.spaces import Space

APART = 1000.0
"""The ratio of two entries of x0 from which they are taken for numbers in different units."""
ALL = slice(None)
"""All coordinates, without a copy of anything."""
NONE: Floats = np.empty(0)
"""The bounds where there are none."""
SMALLEST = 1e-150
"""Lengths below this tell no unit, and ranges have one value: squares of them vanish."""


def as_scalar(value: Any) -> float:
    """Return a value of the user's function as a float, or say what it should have been."""
    if isinstance(value, float | int) and not isinstance(value, bool):
        return float(value)
    array = np.asarray(value)
    if array.ndim == 0 and array.dtype.kind in "fiu":
        return float("nan") if np.ma.is_masked(value) else float(array)
    raise TypeError(
        f"fun must return one real number, got {type(value).__name__} of shape {array.shape}; "
        "return float(...) of it"
    )


def check_start(x0: Any) -> Floats:
    """Return a fresh float64 copy of x0."""
    theta = reals(x0, "x0")
    if theta.ndim != 1 or theta.size == 0:
        raise ValueError(f"x0 must be a non-empty 1-d array, got shape {theta.shape}")
    if not np.all(np.isfinite(theta)):
        k = int(np.flatnonzero(~np.isfinite(theta))[0])
        raise ValueError(f"x0 must be finite, got x0[{k}] = {theta[k]}")
    return theta


def check_bounds(bounds: Any, x0: Floats) -> tuple[Floats, Floats]:
    """Return lower and upper bounds as arrays."""
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        lower, upper = bounds.lb, bounds.ub
    else:
        wanted = f"bounds must be scipy.optimize.Bounds or {len(x0)} pairs (low, high)"
        try:
            none = (-np.inf, np.inf)
            pairs = np.array(
                [
                    [o if b is None else b for b, o in zip(pair, none, strict=True)]
                    for pair in bounds
                ],
                np.float64,
            )
        except (TypeError, ValueError):
            raise ValueError(f"{wanted}, got {bounds!r}") from None
        if pairs.ndim != 2 or len(pairs) not in (1, len(x0)):
            raise ValueError(f"{wanted}, got shape {pairs.shape}")
        lower, upper = pairs.T
    try:
        lower = np.broadcast_to(reals(lower, "bounds"), x0.shape).copy()
        upper = np.broadcast_to(reals(upper, "bounds"), x0.shape).copy()
    except (TypeError, ValueError):
        raise ValueError(f"bounds do not fit the {len(x0)} coordinates of x0") from None
    if np.any(unknown := np.isnan(lower) | np.isnan(upper)):
        k = int(np.flatnonzero(unknown)[0])
        raise ValueError(f"the bounds of coordinate {k} are not numbers; None means no bound")
    if np.any(crossed := lower > upper):
        k = int(np.flatnonzero(crossed)[0])
        raise ValueError(f"bounds cross at coordinate {k}: low {lower[k]} > high {upper[k]}")
    if np.any(outside := (x0 < lower) | (x0 > upper)):
        k = int(np.flatnonzero(outside)[0])
        raise ValueError(
            f"x0[{k}] = {x0[k]} lies outside its bounds [{lower[k]}, {upper[k]}]; move x0 inside"
        )
    with np.errstate(over="ignore"):
        fixed = upper - lower <= SMALLEST
    lower[fixed] = upper[fixed] = x0[fixed]
    return lower, upper


def check_scale(scale: Any, n_coords: int) -> Floats:
    """Return one positive number per coordinate."""
    values = reals(scale, "scale", f"be a number or {n_coords} numbers")
    if values.shape not in ((), (n_coords,)):
        raise ValueError(f"scale must be a number or {n_coords} numbers, got shape {values.shape}")
    if not np.all(np.isfinite(values)) or np.any(values <= 0):
        raise ValueError(f"scale must be positive and finite, got {scale!r}")
    return np.broadcast_to(values, (n_coords,)).copy()


def check_noise(noise: Any) -> float:
    """Return the standard deviation of the noise: a number, zero for none."""
    number = isinstance(noise, int | float | np.integer | np.floating)
    if isinstance(noise, bool) or not number or not 0 <= noise < np.inf:
        raise ValueError(
            "noise must be the standard deviation of fun's noise, a finite number >= 0 (0: fun "
            f"repeats itself), got {noise!r}"
        )
    return float(noise)


class Known:
    """Points and values that were measured without being asked for; more may come during a run.

    Attributes
    ----------
    points, values
        In the order in which they came.
    """

    def __init__(self, points: Iterable[Floats] = (), values: Iterable[float] = ()) -> None:
        self.points = list(points)
        self.values = [float(value) for value in values]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.values)

    def add(self, x: Floats, value: float) -> None:
        """Take another one."""
        self.points.append(x)
        self.values.append(value)

    def keep(self, n: int) -> None:
        """Forget all but the first n."""
        del self.points[n:], self.values[n:]


@dataclass(frozen=True)
class Problem:
    """The checked arguments that describe a problem.

    Parameters
    ----------
    x0
        Where to start.
    lower, upper
        The bounds, empty where there are none.
    scale
        The typical size of each coordinate: from the argument, else from the bounds, else from x0;
        None where nothing tells it and a short search has to find it.
    scale_known
        Whether it was not guessed from x0.
    noise
        The standard deviation of the noise where the user knows it.
    space
        Where there is one, points are those of its unit cube.
    sampled
        Whether the user hands in samples, so that points of one batch share their noise.
    has_gradient
        Whether partial derivatives may be asked for.
    known
        Points and values that were measured before.
    """

    x0: Floats
    lower: Floats
    upper: Floats
    scale: Floats | None
    scale_known: bool = False
    noise: float | None = None
    space: Space | None = None
    sampled: bool = False
    has_gradient: bool = False
    known: Known = field(default_factory=Known, compare=False)

    @property
    def n_coords(self) -> int:
        """The dimension."""
        return self.x0.size

    @cached_property
    def unit(self) -> Floats:
        """What a length of 1 means for each coordinate: its scale where that is known."""
        return np.ones(self.n_coords) if self.scale is None else self.scale

    def inside(self, k: int, value: float) -> float:
        """Return the nearest value within the bounds of coordinate ``k``."""
        if self.lower.size:
            return min(max(value, float(self.lower[k])), float(self.upper[k]))
        return value

    def away(self, entries: Floats, coords: Any = ALL) -> float:
        """Return how far from x0 the farthest of some entries lies, in units of x.

        ``entries`` are those of ``coords`` (of all coordinates), in as many rows as one likes; one
        that is not a number lies nowhere.
        """
        distances = np.abs(entries - self.x0[coords]) / self.unit[coords]
        return float(np.fmax.reduce(distances, axis=None, initial=0.0))

    def clipped(self, x: Floats) -> Floats:
        """Return points inside the bounds."""
        return np.clip(x, self.lower, self.upper) if self.lower.size else x

    def centred(self, x: Floats, reach: Floats) -> tuple[Floats, Floats]:
        """Return the point nearest to x with room to both sides, and how far one may go there."""
        if not self.lower.size:
            return x, reach
        reach = np.minimum(reach, (self.upper - self.lower) / 2)
        return np.clip(x, self.lower + reach, self.upper - reach), reach

    @classmethod
    def check(cls, x0: Any, bounds: Any = None, scale: Any = None, noise: Any = None) -> Problem:
        """Check the arguments and derive the scale from them where they tell it."""
        theta = check_start(x0)
        lower, upper = (NONE, NONE) if bounds is None else check_bounds(bounds, theta)
        known = None if noise is None else check_noise(noise)
        if scale is not None:
            return cls(theta, lower, upper, check_scale(scale, theta.size), True, known)
        scale_known = bool(np.all(np.isfinite(upper - lower))) and lower.size > 0
        size = sizes_of(theta)
        if lower.size:
            size = scale_within(lower, upper, size)
        return cls(theta, lower, upper, size, scale_known, known)


def scale_within(lower: Floats, upper: Floats, size: Floats | None) -> Floats | None:
    """Return a quarter of each bounded range, else the size of x0, else None."""
    width = upper - lower
    known = np.isfinite(width) & (width > 0)
    if not known.any():
        return size
    return np.where(known, width / 4, np.mean(width[known]) / 4 if size is None else size)


def sizes_of(x0: Floats) -> Floats | None:
    """Return the root mean square of x0, or of each part of it that has a size of its own.

    Entries in order of size are parted where one is :data:`APART` times as large as the one before:
    metres beside seconds, not a random start that comes near zero somewhere.

    Examples
    --------
    >>> sizes_of(np.array([3.0, 0.0, 4.0, 0.0]))
    array([2.5, 2.5, 2.5, 2.5])
    >>> sizes_of(np.array([2e6, 1e-6, 2e6]))
    array([2.e+06, 1.e-06, 2.e+06])
    """
    sizes = np.abs(x0)
    if not sizes.max() > SMALLEST:
        return None
    order = np.argsort(sizes)
    order = order[sizes[order] > SMALLEST]
    ends = np.flatnonzero(sizes[order[1:]] / APART >= sizes[order[:-1]]) + 1
    found = np.full(x0.size, root_mean_square(sizes))
    for part in np.split(order, ends) if len(ends) else ():
        found[part] = root_mean_square(sizes[part])
    return found


def root_mean_square(sizes: Floats) -> float:
    """Return it without overflow."""
    largest = float(sizes.max())
    return largest * float(np.linalg.norm(sizes / largest) / np.sqrt(sizes.size))
