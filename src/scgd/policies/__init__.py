"""Coordinate policies: who moves next."""

from scgd.checks import registry
from scgd.policies.adaptive import Adaptive
from scgd.policies.base import CompiledPolicy, Policy
from scgd.policies.fixed import (
    FixedWeights,
    Full,
    Uniform,
    coordinate_smoothness,
    draw_without_replacement,
)
from scgd.policies.greedy import GaussSouthwell, GradientWeights
from scgd.policies.musketeer import Musketeer
from scgd.policies.recent import RecentGains

__all__ = [
    "POLICIES",
    "Adaptive",
    "CompiledPolicy",
    "FixedWeights",
    "Full",
    "GaussSouthwell",
    "GradientWeights",
    "Musketeer",
    "Policy",
    "RecentGains",
    "Uniform",
    "coordinate_smoothness",
    "draw_without_replacement",
]

POLICIES: dict[str, type] = registry(
    ("uniform", Uniform),
    ("musketeer", Musketeer),
    ("recent-gains", RecentGains),
    ("adaptive", Adaptive),
    ("fixed-weights", FixedWeights),
    ("gauss-southwell", GaussSouthwell),
    ("gradient-weights", GradientWeights),
    ("full", Full),
)
