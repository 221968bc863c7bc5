"""Sampling with given weights that never change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy  # whose rooms load when they are used

from scgd.checks import number, reals
from scgd.compiling import njit
from scgd.policies import mixture
from scgd.policies.base import (
    CompiledPolicy,
    Kernels,
    Policy,
    UniformDistribution,
    draw_distinct,
    register,
)
from scgd.policies.distinct import draw_equal
from scgd.policies.sumtree import empty_tree, refresh
from scgd.random import below
from scgd.typing import Array, Floats, Ints


class FixedDistribution(NamedTuple):
    """A tree of given weights; ``mixing`` is zero."""

    n_coords: Ints
    mixing: Floats
    tree: Floats
    levels: Ints


def fixed_distribution(weights: Floats) -> FixedDistribution:
    """Return the distribution that draws in proportion to given weights, for ever.

    Examples
    --------
    >>> from scgd.policies.base import weights
    >>> out = np.empty(3)
    >>> weights(fixed_distribution(np.array([1.0, 0.0, 3.0])), out)
    >>> out
    array([0.25, 0.  , 0.75])
    """
    tree, levels = empty_tree(len(weights))
    tree[: len(weights)] = weights / np.sum(weights)
    refresh(tree, levels)
    return FixedDistribution(np.array([len(weights)]), np.zeros(1), tree, levels)


def draw_without_replacement(weights: Floats, stream: Array, coords: Ints, probs: Floats) -> None:
    """Fill ``coords`` with distinct draws, for policies in plain Python, O(p).

    Parameters
    ----------
    weights
        Numbers >= 0, one per coordinate: inclusion probabilities are proportional to them, and at
        most 1. There must be at least as many positive ones as draws.
    stream
        Where randomness comes from, as ``Policy.draw`` is given it.
    coords, probs
        Arrays to fill: ``probs`` are inclusion probabilities divided by the number of draws.

    Examples
    --------
    >>> from scgd.random import stream
    >>> coords, probs = np.zeros(2, np.int64), np.zeros(2)
    >>> weights = np.array([1.0, 0.0, 1.0])
    >>> draw_without_replacement(weights, stream(np.random.SeedSequence(0)), coords, probs)
    >>> sorted(coords.tolist()), probs
    ([0, 2], array([0.5, 0.5]))
    """
    draw_distinct(fixed_distribution(weights), stream, coords, probs)


@njit(cache=True)
def draw_uniform(dist, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Fill ``coords`` with independent uniform draws."""
    n_coords = dist.n_coords[0]
    for t in range(len(coords)):
        coords[t] = below(stream, n_coords)
    probs[:] = 1.0 / n_coords


@njit(cache=True)
def draw_uniform_distinct(dist, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Fill ``coords`` with distinct uniform draws."""
    draw_equal(dist.n_coords[0], stream, coords, probs)


@njit(cache=True)
def learn_nothing(dist, coords, probs, grads, mixing):  # type: ignore[no-untyped-def]
    """Change nothing."""


@njit(cache=True)
def equal_weights(dist, out):  # type: ignore[no-untyped-def]
    """Write 1/p into ``out``."""
    out[:] = 1.0 / dist.n_coords[0]


def check_same(dist: Any, fresh: Any) -> None:
    """Raise ValueError unless the distribution is the fresh one: it never changes."""
    for name in fresh._fields:
        if not np.array_equal(getattr(dist, name), getattr(fresh, name)):
            raise ValueError(f"the {name} of the distribution are another policy's")


register(
    UniformDistribution,
    Kernels(draw_uniform, draw_uniform_distinct, learn_nothing, equal_weights, check_same),
)
register(
    FixedDistribution,
    Kernels(mixture.draw, mixture.draw_distinct, learn_nothing, mixture.weights, check_same),
)


@dataclass(frozen=True)
class Uniform(CompiledPolicy):
    """Draw every coordinate with the same probability, 1/p.

    Examples
    --------
    >>> policy = Uniform()
    >>> policy.weights(policy.init(4))
    array([0.25, 0.25, 0.25, 0.25])
    """


@dataclass(frozen=True)
class Full(Policy):
    """Take all coordinates in every step: plain SGD, or the support of a dense direction.

    Examples
    --------
    >>> policy = Full()
    >>> policy.weights(policy.init(4))
    array([0.25, 0.25, 0.25, 0.25])
    """

    dense: ClassVar[bool] = True

    def phase_length(self, n_coords: int) -> int:
        """Return the number of draws between two updates."""
        return n_coords

    def draw(
        self, state: Any, stream: Array, coords: Ints, probs: Floats, block: int, replace: bool
    ) -> None:
        """Fill ``coords`` with 0, 1, ..., p-1; each has probability 1/p per draw."""
        coords[:] = np.arange(len(coords))
        probs[:] = 1.0 / len(coords)


@dataclass(frozen=True)
class FixedWeights(CompiledPolicy):
    """Draw coordinate *k* with a given probability, proportional to ``values[k]``.

    Parameters
    ----------
    values
        Non-negative numbers, one per coordinate, at least one of them positive. The coordinate
        smoothness of a linear loss (:func:`coordinate_smoothness`) is a classical choice.

    Examples
    --------
    >>> policy = FixedWeights((1.0, 3.0))
    >>> policy.weights(policy.init(2))
    array([0.25, 0.75])
    """

    values: tuple[float, ...] | Sequence[float]

    def __post_init__(self) -> None:
        weights = reals(self.values, "values", "be a list of finite numbers, one per coordinate")
        if weights.ndim != 1 or weights.size == 0 or not np.all(np.isfinite(weights)):
            raise ValueError(
                "FixedWeights values must be a list of finite numbers, one per coordinate"
            )
        if np.any(weights < 0) or weights.sum() == 0:
            raise ValueError(
                "FixedWeights values must be non-negative with a positive sum; "
                "a coordinate of weight 0 is never drawn"
            )
        object.__setattr__(self, "values", tuple(weights.tolist()))

    def init(self, n_coords: int, replace: bool = True) -> FixedDistribution:
        """Return a fresh state."""
        if len(self.values) != n_coords:
            raise ValueError(
                f"FixedWeights has {len(self.values)} values for {n_coords} coordinates"
            )
        return fixed_distribution(np.asarray(self.values, np.float64))


def coordinate_smoothness(X: Array, *, curvature: float = 1.0, l2: float = 0.0) -> Floats:
    r"""Coordinate smoothness of a linear loss, :math:`L_k = c\, \|X_{:,k}\|^2 / n + \lambda`.

    Parameters
    ----------
    X
        Data of shape (n_samples, n_coords), dense or sparse.
    curvature
        Largest second derivative of the loss in its margin: 1 for squared, 1/4 for logistic.
    l2
        Coefficient of the penalty :math:`(\lambda/2)\|\theta\|^2`.

    Examples
    --------
    >>> coordinate_smoothness(np.array([[1.0, 2.0], [1.0, 0.0]]))
    array([1., 2.])
    """
    curvature, l2 = number(curvature, "curvature", 0), number(l2, "l2", 0)
    given: Any = X if scipy.sparse.issparse(X) else reals(X, "X")
    if given.ndim != 2 or min(given.shape) == 0:
        raise ValueError(f"X must have samples and coordinates, got shape {given.shape}")
    squares = given.multiply(given) if scipy.sparse.issparse(X) else np.square(given)
    means = np.asarray(squares.mean(axis=0), np.float64).ravel()
    if not np.all(np.isfinite(means)):
        raise ValueError("X must be finite, and so must its squares")
    return curvature * means + l2
