"""Policies that look at the whole gradient before they choose (Theorem 2).

Both are yardsticks for small problems: a step costs a whole gradient estimate, made with another
sample than the step's own so that the choice stays independent of the noise it moves along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from scgd.checks import number, settle
from scgd.policies.base import Policy, draw
from scgd.policies.fixed import (
    draw_without_replacement,
    fixed_distribution,
)
from scgd.typing import Array, Floats, Ints


class GreedyPolicy(Policy):
    """A phase of length one that is shown the whole gradient first, through :meth:`weights_for`."""

    needs_gradient: ClassVar[bool] = True

    def weights_for(self, gradient: Floats, block: int = 1) -> Floats:
        """Return the sampling weights given a gradient."""
        raise NotImplementedError

    def phase_length(self, n_coords: int) -> int:
        """Return the number of draws between two updates."""
        return 1

    def draw(
        self, state: Any, stream: Array, coords: Ints, probs: Floats, block: int, replace: bool
    ) -> None:
        """Refuse: these policies choose with :meth:`choose`."""
        raise TypeError(f"{type(self).__name__} chooses from a gradient; use choose()")

    def choose(
        self, gradient: Floats, stream: Array, coords: Ints, probs: Floats, replace: bool
    ) -> None:
        """Fill ``coords`` and ``probs`` with a block drawn for this gradient."""
        weights = self.weights_for(gradient, len(coords))
        if not replace and np.count_nonzero(weights) < len(coords):
            weights = np.full(len(gradient), 1.0)
        if replace:
            draw(fixed_distribution(weights), stream, coords, probs)
        else:
            draw_without_replacement(weights, stream, coords, probs)


@dataclass(frozen=True)
class GaussSouthwell(GreedyPolicy):
    r"""Take the coordinate with the largest partial derivative (Theorem 2a).

    .. math:: \zeta_{t+1} = \arg\max_k |\partial_k f(\theta_t)|

    A block of m takes the m largest.

    Examples
    --------
    >>> GaussSouthwell().weights_for(np.array([1.0, 0.0, -3.0]))
    array([0., 0., 1.])
    """

    def weights_for(self, gradient: Floats, block: int = 1) -> Floats:
        """Return equal weights on the ``block`` largest partial derivatives."""
        largest = np.argpartition(-np.abs(gradient), block - 1)[:block]
        weights = np.zeros(len(gradient))
        weights[largest] = 1.0 / block
        return weights

    def choose(
        self, gradient: Floats, stream: Array, coords: Ints, probs: Floats, replace: bool
    ) -> None:
        """Fill ``coords`` with the largest partial derivatives, each with certainty."""
        coords[:] = np.flatnonzero(self.weights_for(gradient, len(coords)))
        probs[:] = 1.0 / len(coords)


@dataclass(frozen=True)
class GradientWeights(GreedyPolicy):
    r"""Draw coordinate *k* with probability proportional to :math:`|g^{(k)}|^q` (Theorem 2b).

    The stochastic cousin of the Gauss-Southwell rule: instead of always taking the steepest
    coordinate, take each in proportion to a power of its slope,

    .. math:: d^{(k)} \propto |g^{(k)}|^q .

    Parameters
    ----------
    power
        The exponent :math:`q > 0`; large values approach the steepest coordinate.

    Examples
    --------
    >>> GradientWeights(power=1.0).weights_for(np.array([1.0, 0.0, -3.0]))
    array([0.25, 0.  , 0.75])
    """

    power: float = 1.0

    def __post_init__(self) -> None:
        settle(self, power=number(self.power, "power", 0, ends="(]"))

    def weights_for(self, gradient: Floats, block: int = 1) -> Floats:
        """Return weights proportional to a power of the slopes; uniform where all are zero."""
        slopes = np.abs(gradient)
        largest = slopes.max()
        if largest == 0:
            return np.full(len(gradient), 1.0 / len(gradient))
        powers = (slopes / largest) ** self.power
        return np.asarray(powers / powers.sum())
