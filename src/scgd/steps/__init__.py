"""Step rules: how a gradient seen at a coordinate becomes a move of that coordinate.

A rule's arithmetic is one scalar kernel, written once and run as it is by the Python loop and,
compiled, by every other loop: ``kernel(k, grad, rate, hyper, slots)`` returns what is subtracted
from coordinate ``k``; ``hyper`` is a short array of numbers and ``slots[j][k]`` what the rule
remembers about coordinate ``k``. Moments advance only when their coordinate is touched: time stands
still for a coordinate that is not drawn, so moments are averages over a coordinate's own visits.
"""

from scgd.checks import registry
from scgd.steps.loops import applier, compiled
from scgd.steps.rules import RMS, SGD, Adam, Learned, Momentum, StepRule, Wiener, make_slots

__all__ = [
    "RMS",
    "SGD",
    "STEPS",
    "Adam",
    "Learned",
    "Momentum",
    "StepRule",
    "Wiener",
    "applier",
    "compiled",
    "make_slots",
]

STEPS: dict[str, type[StepRule]] = registry(
    ("sgd", SGD),
    ("momentum", Momentum),
    ("rms", RMS),
    ("adam", Adam),
    ("learned", Learned),
    ("wiener", Wiener),
)
