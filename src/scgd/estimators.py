"""Gradient estimators: which points to evaluate, and what the values say about the gradient.

An estimator is a pair of functions, ``probe`` (a design of experiment around theta) and
``gradient`` (what the values mean); everything in between may happen in this process, in another
one or on a cluster. All evaluations of a step share one sample xi (common random numbers).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numba.extending import register_jitable

from scgd.compiling import njit
from scgd.problem import Draw
from scgd.typing import Array, Floats, Ints

__all__ = [
    "ESTIMATORS",
    "SPSA",
    "CentralDifference",
    "Estimator",
    "FirstOrder",
    "ForwardDifference",
    "GaussianSmoothing",
    "Probes",
    "SphereSmoothing",
]

NARROWEST = 0.25
"""The part of a two-sided move that is left, at least, next to a bound."""
BASE = -1
"""Stands for "no coordinate" in ``Probes.coords``: the point theta itself, or a joint move."""


@dataclass
class Probes:
    """The evaluations that one step asks for.

    Point *j* is ``theta`` with coordinate ``coords[j]`` set to ``entries[j]`` (nothing set where
    ``coords[j]`` is -1), or, where a ``direction`` is given, ``theta`` with
    ``theta[support] = entries[j]`` and ``entries`` a matrix.

    Attributes
    ----------
    theta
        The current iterate (read-only view).
    support
        The coordinates this step may move.
    radii
        The radius of each coordinate of the support.
    coords, entries, radius
        What distinguishes each point: the coordinate, its value there and the signed move.
    rows, draw
        The sample of this step: row numbers when ``sample`` is a number; when it is a callable,
        what makes ``xi`` where it is needed.
    rate, probs
        The learning rate of this step and the probabilities of its draws.
    ids
        Numbers to hand back to ``tell`` with the values, unique within a run.
    kind
        ``"values"``: evaluate the function at each point; ``"partials"``: evaluate the partial
        derivatives at ``support``, one evaluation.
    """

    theta: Floats
    support: Ints
    radii: Floats
    coords: Ints
    entries: Floats
    radius: Floats
    ids: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    rows: Ints | None = None
    draw: Draw | None = None
    rate: float = np.nan
    probs: Floats | None = None
    kind: Literal["values", "partials"] = "values"

    def __len__(self) -> int:
        """Return the number of evaluations."""
        return len(self.coords)

    @cached_property
    def xi(self) -> Any:
        """The sample of this step when ``sample`` is a callable."""
        return None if self.draw is None else self.draw()

    @property
    def joint(self) -> bool:
        """Whether each point moves the whole support at once."""
        return self.entries.ndim == 2

    def point(self, j: int) -> Floats:
        """Return a copy of theta moved to point ``j``."""
        x = self.theta.copy()
        if self.joint:
            x[self.support] = self.entries[j]
        elif self.coords[j] != BASE:
            x[self.coords[j]] = self.entries[j]
        return x

    def points(self) -> Floats:
        """Return all points as the rows of a new matrix."""
        return np.stack([self.point(j) for j in range(len(self))])


class Estimator(Protocol):
    """How partial derivatives are estimated at the drawn coordinates."""

    def n_evals(self, block: int) -> int:
        """Return the number of evaluations for a block of this size."""

    def probe(
        self, theta: Floats, coords: Ints, radii: Floats, lower: Floats, upper: Floats, rng: Any
    ) -> Probes:
        """Return the points to evaluate."""

    def gradient(self, probes: Probes, values: Floats) -> tuple[Floats, float]:
        """Return the estimates at ``probes.support`` and the mean observed value near theta."""


@register_jitable  # type: ignore[untyped-decorator]
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
def slopes(lows, highs, downs, ups, out):  # type: ignore[no-untyped-def]
    """Set ``out`` to the difference quotients, 0 for a coordinate pinned by its bounds."""
    for i in range(len(out)):
        width, change = ups[i] - downs[i], highs[i] - lows[i]
        out[i] = change / width if width != 0.0 else change * 0.0


def quotient(differences: Floats, widths: Floats) -> Floats:
    """Divide, with 0 where the width is 0 (a coordinate pinned by its bounds)."""
    return np.divide(differences, widths, out=np.zeros_like(differences), where=widths != 0)


@dataclass(frozen=True)
class ForwardDifference:
    r"""Forward differences with a shared base (Example 2 of the paper).

    .. math:: g^{(k)} = \frac{f(\theta + h e_k, \xi) - f(\theta, \xi)}{h}

    A block of m coordinates costs m + 1 evaluations. The bias of each is at most
    :math:`L_k h / 2`.

    Examples
    --------
    >>> ForwardDifference().n_evals(1)
    2
    """

    def n_evals(self, block: int) -> int:
        """Return the number of evaluations for a block of this size."""
        return block + 1

    def probe(
        self, theta: Floats, coords: Ints, radii: Floats, lower: Floats, upper: Floats, rng: Any
    ) -> Probes:
        """Return theta itself and one point per coordinate."""
        n = len(coords)
        entries = np.empty(n + 1)
        fill_sides(False, theta, coords, radii, lower, upper, np.empty(n), entries[1:])
        entries[0] = np.nan
        points = np.concatenate([[BASE], coords])
        return Probes(theta, coords, radii, points, entries, np.concatenate([[0.0], radii]))

    def gradient(self, probes: Probes, values: Floats) -> tuple[Floats, float]:
        """Return the difference quotients and the value at theta."""
        grads = np.empty(len(probes.support))
        lows = np.broadcast_to(values[:1], grads.shape)
        slopes(lows, values[1:], probes.theta[probes.support], probes.entries[1:], grads)
        return grads, float(values[0])


@dataclass(frozen=True)
class CentralDifference:
    r"""Central differences, two evaluations per coordinate.

    .. math:: g^{(k)} = \frac{f(\theta + h e_k, \xi) - f(\theta - h e_k, \xi)}{2h}

    Exact on quadratics for any h; the bias is of order :math:`h^2`.

    Examples
    --------
    >>> CentralDifference().n_evals(3)
    6
    """

    def n_evals(self, block: int) -> int:
        """Return the number of evaluations for a block of this size."""
        return 2 * block

    def probe(
        self, theta: Floats, coords: Ints, radii: Floats, lower: Floats, upper: Floats, rng: Any
    ) -> Probes:
        """Return a point below and a point above for each coordinate."""
        entries = np.empty(2 * len(coords))
        fill_sides(True, theta, coords, radii, lower, upper, entries[::2], entries[1::2])
        radius = np.repeat(radii, 2)
        radius[::2] *= -1.0
        return Probes(theta, coords, radii, np.repeat(coords, 2), entries, radius)

    def gradient(self, probes: Probes, values: Floats) -> tuple[Floats, float]:
        """Return the difference quotients and the mean value."""
        grads = np.empty(len(probes.support))
        lows, highs = values[::2], values[1::2]
        slopes(lows, highs, probes.entries[::2], probes.entries[1::2], grads)
        return grads, float(np.mean(lows + 0.5 * (highs - lows)))


class DirectionEstimator:
    """Estimators that move the whole support along one random direction."""

    two_sided: ClassVar[bool] = False

    def direction(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw the direction."""
        raise NotImplementedError

    def factor(self, n: int) -> float:
        """Return what makes the estimate unbiased, 1 / E[u_k^2]."""
        return 1.0

    def n_evals(self, block: int) -> int:
        """Return the number of evaluations for a block of this size."""
        return 2

    def probe(
        self, theta: Floats, coords: Ints, radii: Floats, lower: Floats, upper: Floats, rng: Any
    ) -> Probes:
        """Return theta itself (or its mirror point) and a point along a random direction."""
        moves = radii * self.direction(len(coords), rng)
        here = theta[coords]
        if self.two_sided:
            entries = np.stack([here + moves, here - moves])
        else:
            entries = np.stack([here, here + moves])
        if len(lower) > 0:
            entries = self._inside(entries, here, moves, lower[coords], upper[coords])
        radius = np.array([1.0, -1.0]) if self.two_sided else np.array([0.0, 1.0])
        both = np.full(2, BASE)
        return Probes(theta, coords, radii, both, entries, radius * float(np.max(radii)))

    def _inside(
        self, entries: Floats, here: Floats, moves: Floats, lower: Floats, upper: Floats
    ) -> Floats:
        """Keep points inside the bounds: two-sided ones come nearer, others flip.

        Near a bound a two-sided move shrinks to the room there is, at most to a quarter, and then
        its centre shifts: the slope is that of theta, or of a point close to it.
        """
        if self.two_sided:
            reach = np.abs(moves)
            room = np.minimum(here - lower, upper - here)
            reach = np.minimum(reach, np.maximum(room, NARROWEST * reach))
            centre = np.clip(
                here, np.minimum(lower + reach, upper), np.maximum(upper - reach, lower)
            )
            moves = np.copysign(reach, moves)
            return np.clip(np.stack([centre + moves, centre - moves]), lower, upper)
        out = (entries[1] < lower) | (entries[1] > upper)
        flipped = np.where(out, here - moves, entries[1])
        return np.stack([here, np.clip(flipped, lower, upper)])

    def gradient(self, probes: Probes, values: Floats) -> tuple[Floats, float]:
        """Return the directional difference spread over the support."""
        first, second = probes.entries
        moved = (first - second) if self.two_sided else (second - first)
        change = (values[0] - values[1]) if self.two_sided else (values[1] - values[0])
        grads = self._spread(moved, change, probes)
        return grads, float(values.mean() if self.two_sided else values[0])

    def _spread(self, moved: Floats, change: float, probes: Probes) -> Floats:
        return np.asarray(self.factor(len(moved)) * change * moved / probes.radii**2)


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
    """

    unbiased: bool = True

    def direction(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw a uniform vector on the unit sphere."""
        u = rng.standard_normal(n)
        return np.asarray(u / np.linalg.norm(u))

    def factor(self, n: int) -> float:
        """Return what makes the estimate unbiased, 1 / E[u_k^2]."""
        return float(n) if self.unbiased else 1.0


def random_bits(n: int, rng: np.random.Generator) -> Array:
    """Return at least n random bits, eight to a byte, the high one first."""
    return rng.bit_generator.random_raw((n + 63) // 64).view(np.uint8)


@dataclass(frozen=True)
class SPSA(DirectionEstimator):
    r"""Simultaneous perturbation (Spall, 1992).

    .. math:: g^{(k)} = \frac{f(\theta + hu, \xi) - f(\theta - hu, \xi)}{2 h u_k}

    :math:`u` has independent random signs on all coordinates, or on the drawn subset when the
    policy draws one.
    """

    two_sided: ClassVar[bool] = True

    def direction(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw random signs."""
        return np.asarray(np.unpackbits(random_bits(n, rng), count=n) * 2.0 - 1.0)

    def _spread(self, moved: Floats, change: float, probes: Probes) -> Floats:
        return quotient(np.full(len(moved), change), moved)


@dataclass(frozen=True)
class FirstOrder:
    """Partial derivatives from ``jac``: no estimate, one evaluation per step."""

    def n_evals(self, block: int) -> int:
        """Return the number of evaluations for a block of this size."""
        return 1

    def probe(
        self, theta: Floats, coords: Ints, radii: Floats, lower: Floats, upper: Floats, rng: Any
    ) -> Probes:
        """Return a request for the partial derivatives at theta."""
        none = np.array([BASE])
        return Probes(theta, coords, radii, none, np.array([np.nan]), np.zeros(1), kind="partials")

    def gradient(self, probes: Probes, values: Array) -> tuple[Floats, float]:
        """Return the partial derivatives; no value of f was seen."""
        grads = np.asarray(values[0], np.float64)
        if grads.shape != probes.support.shape:
            raise TypeError(
                f"jac must return {len(probes.support)} partial derivatives, one per coordinate "
                f"it is given, got shape {grads.shape}"
            )
        return grads, np.nan


ESTIMATORS: dict[str, type] = {
    "forward": ForwardDifference,
    "central": CentralDifference,
    "gaussian": GaussianSmoothing,
    "sphere": SphereSmoothing,
    "spsa": SPSA,
    "first-order": FirstOrder,
}
