"""Uniform coordinate sampling, the only unbiased plain policy (Proposition 2)."""

from __future__ import annotations

from dataclasses import dataclass

from scgd.policies.base import LawPolicy
from scgd.policies.frozen import UniformLaw, uniform_law

__all__ = ["Uniform"]


@dataclass(frozen=True)
class Uniform(LawPolicy):
    """Draw every coordinate with the same probability, 1/p.

    Examples
    --------
    >>> policy = Uniform()
    >>> policy.weights(policy.init(4))
    array([0.25, 0.25, 0.25, 0.25])
    """

    def init(self, n_coords: int, replace: bool = True) -> UniformLaw:
        """Return a fresh state."""
        return uniform_law(n_coords)
