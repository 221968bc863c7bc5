"""Gradient estimators: which points to evaluate, and what the values say about the gradient.

An estimator is a pair of functions, ``probe`` (a design of experiment around a point) and
``gradient`` (what the values mean); everything in between may happen in this process, in another
one or on a cluster. All evaluations of a step share one sample xi (common random numbers). A value
that is NaN failed: what depends on it is NaN in the gradient, and the rest holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from scgd.checks import flag, registry
from scgd.compiling import njit, register_jitable
from scgd.questions import BASE, Point, Question
from scgd.typing import Array, Floats, Ints

NARROWEST = 0.25
"""The part of a two-sided move that is left, at least, next to a bound."""


class Estimator:
    """How partial derivatives are estimated at the drawn coordinates."""

    distinct: ClassVar[bool] = False
    """Whether a block moves along one direction, so that it must not hold a coordinate twice."""
    costs: ClassVar[tuple[int, int]]
    """Evaluations of a block: so many, and so many per coordinate."""

    def n_evals(self, block: int) -> int:
        """Return the number of evaluations for a block of this size."""
        return self.costs[0] + self.costs[1] * block

    def n_draws(self, block: int) -> int:
        """Return what a step counts for in a pass: its coordinates (one for a direction)."""
        return 1 if self.distinct else block

    def probe(
        self, point: Point, coords: Ints, radii: Floats, lower: Floats, upper: Floats, rng: Any
    ) -> Question:
        """Return the points to evaluate."""
        raise NotImplementedError

    def gradient(self, question: Question, values: Floats) -> tuple[Floats, float]:
        """Return the estimates at ``question.support`` and the mean value seen near the point."""
        raise NotImplementedError


@register_jitable
def sides(central: bool, x: float, h: float, lower: float, upper: float) -> tuple[float, float]:
    """Return the two entries (down, up) that are compared at a coordinate, inside its bounds.

    Central differences cut at the bounds; forward ones take the side with more room where the upper
    bound is nearer than h.
    """
    if central:
        return max(x - h, lower), min(x + h, upper)
    if x + h <= upper:
        return x, x + h
    down = max(x - h, lower)
    return x, down if x - down > upper - x else upper


@njit(cache=True)
def fill_sides(central, theta, coords, radii, lower, upper, downs, ups):  # type: ignore[no-untyped-def]
    """Set ``downs`` and ``ups`` to the entries compared at each coordinate."""
    for i in range(len(coords)):
        k = coords[i]
        low, high = (lower[k], upper[k]) if len(lower) > 0 else (-np.inf, np.inf)
        downs[i], ups[i] = sides(central, theta[k], radii[i], low, high)


@njit(cache=True)
def farthest_entry(entries, coords, start, unit):  # type: ignore[no-untyped-def]
    """Return how far from a start the farthest of some entries lies, in units of each coordinate.

    One that is not a number lies nowhere.
    """
    most = 0.0
    for i in range(len(coords)):
        away = abs(entries[i] - start[coords[i]]) / unit[coords[i]]
        if away > most:
            most = away
    return most


@njit(cache=True)
def farthest_side(central, x, entries, coords, radii, lower, upper, start, unit):  # type: ignore[no-untyped-def]
    """Return how far from a start steps along single coordinates have looked, in units of each.

    ``entries`` are those of the coordinates before each step, x is where they led.
    """
    most = 0.0
    for i in range(len(coords)):
        k = coords[i]
        low, high = (lower[k], upper[k]) if len(lower) > 0 else (-np.inf, np.inf)
        down, up = sides(central, entries[i], radii[i], low, high)
        for entry in (down, entries[i], up, x[k]):
            most = max(most, abs(entry - start[k]) / unit[k])
    return most


@njit(cache=True)
def slopes(lows, highs, downs, ups):  # type: ignore[no-untyped-def]
    """Return the difference quotients, 0 for a coordinate pinned by its bounds."""
    out = np.empty(len(downs))
    for i in range(len(out)):
        width, change = ups[i] - downs[i], highs[i] - lows[i]
        out[i] = change / width if width != 0.0 else change * 0.0
    return out


@register_jitable
def halfway(low: Any, high: Any) -> Any:
    """Return the mean of two values, which does not overflow where they do not."""
    return low + 0.5 * (high - low)


def middle(lows: Floats, highs: Floats) -> float:
    """Return the mean of pairs of values, of those that are whole; NaN where none is."""
    means = halfway(lows, highs)
    if not (whole := np.isfinite(means)).all():
        means = means[whole]
    return float(means.mean()) if means.size else float("nan")


@dataclass(frozen=True)
class ForwardDifference(Estimator):
    r"""Forward differences with a shared base (Example 2 of the paper).

    .. math:: g^{(k)} = \frac{f(\theta + h e_k, \xi) - f(\theta, \xi)}{h}

    A block of m coordinates costs m + 1 evaluations. The bias of each is at most
    :math:`L_k h / 2`.

    Examples
    --------
    >>> ForwardDifference().n_evals(1)
    2
    """

    costs: ClassVar[tuple[int, int]] = (1, 1)

    def probe(
        self, point: Point, coords: Ints, radii: Floats, lower: Floats, upper: Floats, rng: Any
    ) -> Question:
        """Return the point itself and one point per coordinate."""
        n = len(coords)
        origin, entries = np.empty(n), np.empty(n + 1)
        fill_sides(False, point.x, coords, radii, lower, upper, origin, entries[1:])
        entries[0] = np.nan
        return Question(point, coords, np.concatenate([[BASE], coords]), entries, origin, radii)

    def gradient(self, question: Question, values: Floats) -> tuple[Floats, float]:
        """Return the difference quotients and the value at theta."""
        lows = np.full(len(question.support), values[0])
        grads = slopes(lows, values[1:], question.origin, question.entries[1:])
        return grads, float(values[0])


@dataclass(frozen=True)
class CentralDifference(Estimator):
    r"""Central differences, two evaluations per coordinate.

    .. math:: g^{(k)} = \frac{f(\theta + h e_k, \xi) - f(\theta - h e_k, \xi)}{2h}

    Exact on quadratics for any h; the bias is of order :math:`h^2`.

    Examples
    --------
    >>> CentralDifference().n_evals(3)
    6
    """

    costs: ClassVar[tuple[int, int]] = (0, 2)

    def probe(
        self, point: Point, coords: Ints, radii: Floats, lower: Floats, upper: Floats, rng: Any
    ) -> Question:
        """Return a point below and a point above for each coordinate."""
        entries = np.empty(2 * len(coords))
        fill_sides(True, point.x, coords, radii, lower, upper, entries[::2], entries[1::2])
        return Question(point, coords, np.repeat(coords, 2), entries)

    def gradient(self, question: Question, values: Floats) -> tuple[Floats, float]:
        """Return the difference quotients and the mean value."""
        lows, highs = values[::2], values[1::2]
        grads = slopes(lows, highs, question.entries[::2], question.entries[1::2])
        return grads, middle(lows, highs)


class DirectionEstimator(Estimator):
    """Estimators that move the whole support along one random direction.

    A joint move sets each coordinate once, so its block holds each at most once.
    """

    distinct: ClassVar[bool] = True
    costs: ClassVar[tuple[int, int]] = (2, 0)

    def direction(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw the direction."""
        raise NotImplementedError

    def factor(self, n: int) -> float:
        """Return what makes the estimate unbiased, 1 / E[u_k^2]."""
        return 1.0

    def probe(
        self, point: Point, coords: Ints, radii: Floats, lower: Floats, upper: Floats, rng: Any
    ) -> Question:
        """Return the point itself and one along a random direction, mirrored at the bounds."""
        moves = radii * self.direction(len(coords), rng)
        here = point.x[coords]
        there = here + moves
        if len(lower) > 0:
            low, high = lower[coords], upper[coords]
            there = np.where((there < low) | (there > high), here - moves, there)
            there = np.clip(there, low, high)
        return Question(point, coords, np.full(2, BASE), np.stack([here, there]), here, radii)

    def gradient(self, question: Question, values: Floats) -> tuple[Floats, float]:
        """Return the directional difference spread over the support."""
        moved, change = question.entries[1] - question.entries[0], values[1] - values[0]
        factor = self.factor(len(moved))
        return np.asarray(factor * change * moved / question.radii**2), float(values[0])


@dataclass(frozen=True)
class GaussianSmoothing(DirectionEstimator):
    r"""Gaussian smoothing (Example 1 of the paper).

    .. math:: g = \frac{f(\theta + hU, \xi) - f(\theta, \xi)}{h}\, U

    Two evaluations inform all coordinates of the support at once, at the price of a variance that
    grows with their number.

    Examples
    --------
    >>> GaussianSmoothing().n_evals(1000)
    2
    """

    def direction(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw a standard Gaussian vector."""
        return rng.standard_normal(n)


@dataclass(frozen=True)
class SphereSmoothing(DirectionEstimator):
    r"""Smoothing over the unit sphere.

    .. math:: g = p\,\frac{f(\theta + hU, \xi) - f(\theta, \xi)}{h}\, U

    Parameters
    ----------
    unbiased
        Multiply by the dimension p, so that the estimate averages to the gradient as h tends to 0.
        ``False`` leaves the factor out, as the authors' code does (their NESTEROV).

    Examples
    --------
    >>> SphereSmoothing().factor(10), SphereSmoothing(unbiased=False).factor(10)
    (10.0, 1.0)
    """

    unbiased: bool = True

    def __post_init__(self) -> None:
        flag(self.unbiased, "unbiased")

    def direction(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw a uniform vector on the unit sphere."""
        u = rng.standard_normal(n)
        return np.asarray(u / np.linalg.norm(u))

    def factor(self, n: int) -> float:
        """Return what makes the estimate unbiased, 1 / E[u_k^2]."""
        return float(n) if self.unbiased else 1.0


@njit(cache=True)
def spread(x, coords, bits, radii, lower, upper, ups, downs):  # type: ignore[no-untyped-def]
    """Lay out two points on opposite sides of x along random signs, inside the bounds.

    Near a bound the move shrinks to the room there is, at most to a quarter, and then its centre
    shifts: the slope is that of x, or of a point close to it.
    """
    bounded = len(lower) > 0
    for i in range(len(coords)):
        k = coords[i]
        sign = 2.0 * ((bits[i >> 3] >> (7 - (i & 7))) & 1) - 1.0  # no branch to mispredict
        here, move = x[k], radii[i] * sign
        if bounded:
            reach, low, high = radii[i], lower[k], upper[k]
            room = min(here - low, high - here)
            reach = min(reach, max(room, NARROWEST * reach))
            move = reach * sign
            here = min(max(here, min(low + reach, high)), max(high - reach, low))
            ups[i] = min(max(here + move, low), high)
            downs[i] = min(max(here - move, low), high)
        else:
            ups[i], downs[i] = here + move, here - move


def random_signs(n: int, rng: np.random.Generator) -> Floats:
    """Return n random signs."""
    return np.asarray(np.unpackbits(random_bits(n, rng), count=n) * 2.0 - 1.0)


def random_bits(n: int, rng: np.random.Generator) -> Array:
    """Return at least n random bits, eight to a byte, the high one first."""
    return rng.bit_generator.random_raw((n + 63) // 64).view(np.uint8)


@dataclass(frozen=True)
class SPSA(DirectionEstimator):
    r"""Simultaneous perturbation (Spall, 1992).

    .. math:: g^{(k)} = \frac{f(\theta + hu, \xi) - f(\theta - hu, \xi)}{2 h u_k}

    :math:`u` has independent random signs on all coordinates, or on the drawn subset when the
    policy draws one.

    Examples
    --------
    >>> import scgd
    >>> f = lambda x: float(x @ x)
    >>> result = scgd.minimize(f, [1.0, 2.0], method="spsa", scale=1.0, max_evals=400, seed=0)
    >>> result.fun < 0.1  # from 5
    True
    """

    def direction(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw random signs."""
        return random_signs(n, rng)

    def probe(
        self, point: Point, coords: Ints, radii: Floats, lower: Floats, upper: Floats, rng: Any
    ) -> Question:
        """Return two points on opposite sides."""
        entries, bits = np.empty((2, len(coords))), random_bits(len(coords), rng)
        spread(point.x, coords, bits, radii, lower, upper, *entries)
        return Question(point, coords, np.full(2, BASE), entries)

    def gradient(self, question: Question, values: Floats) -> tuple[Floats, float]:
        """Return the difference divided by how far each coordinate was moved."""
        (ups, downs), (high, low) = question.entries, values.tolist()
        n = len(question.support)
        return slopes(np.full(n, low), np.full(n, high), downs, ups), halfway(high, low)


@dataclass(frozen=True)
class FirstOrder(Estimator):
    """Partial derivatives from ``jac``: no estimate, one evaluation per step.

    Examples
    --------
    >>> FirstOrder().n_evals(3)
    1
    """

    costs: ClassVar[tuple[int, int]] = (1, 0)

    def probe(
        self, point: Point, coords: Ints, radii: Floats, lower: Floats, upper: Floats, rng: Any
    ) -> Question:
        """Return a request for the partial derivatives at the point."""
        return Question(point, coords, np.array([BASE]), np.array([np.nan]), kind="partials")

    def gradient(self, question: Question, values: Array) -> tuple[Floats, float]:
        """Return the partial derivatives; no value of f was seen."""
        return np.asarray(values[0], np.float64), np.nan


ESTIMATORS: dict[str, type] = registry(
    ("forward", ForwardDifference),
    ("central", CentralDifference),
    ("gaussian", GaussianSmoothing),
    ("sphere", SphereSmoothing),
    ("spsa", SPSA),
    ("first-order", FirstOrder),
)
