"""Laws that never change: all coordinates alike, or given weights."""

from typing import Any, NamedTuple

import numpy as np

from scgd.compiling import njit
from scgd.policies import mixture
from scgd.policies.distinct import draw_equal
from scgd.policies.kinds import Kernels, register
from scgd.policies.sumtree import empty_tree, refresh
from scgd.random import below
from scgd.typing import Floats, Ints

__all__ = ["FixedLaw", "UniformLaw", "fixed_law", "uniform_law"]


class UniformLaw(NamedTuple):
    """The number of coordinates, as an array of one entry."""

    n_coords: Ints


class FixedLaw(NamedTuple):
    """A tree of given weights; ``mixing`` is zero."""

    n_coords: Ints
    mixing: Floats
    tree: Floats
    levels: Ints


def uniform_law(n_coords: int) -> UniformLaw:
    """Return the law that draws all coordinates equally often, for ever.

    Examples
    --------
    >>> from scgd.policies.kinds import weights
    >>> out = np.empty(4)
    >>> weights(uniform_law(4), out)
    >>> out
    array([0.25, 0.25, 0.25, 0.25])
    """
    return UniformLaw(np.array([n_coords]))


def fixed_law(weights: Floats) -> FixedLaw:
    """Return the law that draws in proportion to given weights, for ever.

    Examples
    --------
    >>> from scgd.policies.kinds import weights
    >>> out = np.empty(3)
    >>> weights(fixed_law(np.array([1.0, 0.0, 3.0])), out)
    >>> out
    array([0.25, 0.  , 0.75])
    """
    tree, levels = empty_tree(len(weights))
    tree[: len(weights)] = weights / np.sum(weights)
    refresh(tree, levels)
    return FixedLaw(np.array([len(weights)]), np.zeros(1), tree, levels)


@njit(cache=True)
def draw_uniform(law, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Fill ``coords`` with independent uniform draws."""
    n_coords = law.n_coords[0]
    for t in range(len(coords)):
        coords[t] = below(stream, n_coords)
    probs[:] = 1.0 / n_coords


@njit(cache=True)
def draw_uniform_distinct(law, stream, coords, probs):  # type: ignore[no-untyped-def]
    """Fill ``coords`` with distinct uniform draws."""
    draw_equal(law.n_coords[0], stream, coords, probs)


@njit(cache=True)
def learn_nothing(law, coords, probs, grads, mixing):  # type: ignore[no-untyped-def]
    """Change nothing."""


@njit(cache=True)
def equal_weights(law, out):  # type: ignore[no-untyped-def]
    """Write 1/p into ``out``."""
    out[:] = 1.0 / law.n_coords[0]


@njit(cache=True)
def next_uniform(n_coords, stream, coords, probs, grads, mixing):  # type: ignore[no-untyped-def]
    """Draw the next phase."""
    draw_uniform(UniformLaw(n_coords), stream, coords, probs)


@njit(cache=True)
def next_fixed(  # type: ignore[no-untyped-def]
    n_coords, share, tree, levels, stream, coords, probs, grads, mixing
):
    """Draw the next phase."""
    mixture.draw(FixedLaw(n_coords, share, tree, levels), stream, coords, probs)


def check_same(law: Any, fresh: Any) -> None:
    """Raise ValueError unless the law is the fresh one: it never changes."""
    for name in fresh._fields:
        if not np.array_equal(getattr(law, name), getattr(fresh, name)):
            raise ValueError(f"the {name} of the law are another policy's")


register(
    UniformLaw,
    Kernels(
        draw_uniform, draw_uniform_distinct, learn_nothing, equal_weights, next_uniform, check_same
    ),
)
register(
    FixedLaw,
    Kernels(
        mixture.draw,
        mixture.draw_distinct,
        learn_nothing,
        mixture.weights,
        next_fixed,
        check_same,
    ),
)
