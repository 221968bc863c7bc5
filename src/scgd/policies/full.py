"""The full gradient as a policy: every coordinate, every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from scgd.policies.base import Policy
from scgd.policies.frozen import UniformLaw, uniform_law
from scgd.typing import Array, Floats, Ints

__all__ = ["Full"]


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

    def init(self, n_coords: int, replace: bool = True) -> UniformLaw:
        """Return a fresh state."""
        return uniform_law(n_coords)

    def draw(
        self, state: Any, stream: Array, coords: Ints, probs: Floats, block: int, replace: bool
    ) -> None:
        """Fill ``coords`` with 0, 1, ..., p-1; each has probability 1/p per draw."""
        coords[:] = np.arange(len(coords))
        probs[:] = 1.0 / len(coords)

    def weights(self, state: UniformLaw) -> Floats:
        """Return equal weights."""
        n_coords = int(state.n_coords[0])
        return np.full(n_coords, 1.0 / n_coords)
