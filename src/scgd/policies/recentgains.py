"""Weights from recent gradients, after one systematic sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scgd.policies.base import LawPolicy
from scgd.policies.law import Law, recent_law
from scgd.schedules import Schedule

__all__ = ["RecentGains"]


@dataclass(frozen=True)
class RecentGains(LawPolicy):
    r"""Visit every coordinate once, then draw in proportion to recent gradients.

    The scores (:mod:`scgd.policies.recent`) are averages over about the last ten visits: the mean
    slope at the start of a run, the root of the expected decrease at its end. Two weaknesses of the
    published rule go with it: weights that remember a coordinate's first draws for ever, and weights
    of coordinates never seen.

    Parameters
    ----------
    mixing
        The share of uniform draws: every coordinate keeps a probability of at least ``mixing / p``.
    beta
        How slowly a coordinate's averages forget, per visit.

    Examples
    --------
    >>> policy = RecentGains()
    >>> policy.weights(policy.init(4))
    array([0.25, 0.25, 0.25, 0.25])
    """

    paced: ClassVar[bool] = True
    mixing: float | Schedule = 0.1
    beta: float = 0.9

    def __post_init__(self) -> None:
        if not callable(self.mixing) and not 0 < self.mixing <= 1:
            raise ValueError(f"mixing must lie in (0, 1], got {self.mixing!r}")
        if not 0 <= self.beta < 1:
            raise ValueError(f"beta must lie in [0, 1), got {self.beta!r}")

    def law(self, n_coords: int, replace: bool = True) -> Law:
        """Return a fresh law for this policy."""
        return recent_law(n_coords, 1.0 - self.beta)
