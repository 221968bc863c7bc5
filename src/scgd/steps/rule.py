"""What a step rule is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np

from scgd.calling import join_ours
from scgd.checks import number
from scgd.compiling import register_jitable
from scgd.typing import Floats

__all__ = ["LONGEST", "StepRule", "check_decay", "kernel", "make_slots"]

LONGEST = 300.0
"""The largest logarithm of a learned factor: two of them together are still a finite number."""
Function = TypeVar("Function", bound=Callable[..., float])


def kernel(function: Function) -> Function:
    """Let compiled code call a function of this package, which stays the plain Python it is."""
    register_jitable(function, error_model="numpy")
    return function


class StepRule:
    """A description of an update rule; its memory is the ``slots`` array.

    A subclass is a frozen dataclass with a ``kernel``, the number of its slots, and ``hyper``.
    """

    kernel: ClassVar[Any]
    """``staticmethod(f)`` of a plain function ``f(k, grad, rate, hyper, slots)`` that returns what
    is subtracted from coordinate k. It runs as it is in Python and compiled by numba elsewhere."""
    n_slots: ClassVar[int] = 0
    """Numbers that are remembered per coordinate: ``slots[j][k]``, zero at first."""
    n_shared: ClassVar[int] = 0
    """Numbers that all coordinates share, at the head of the last slot."""

    def __init_subclass__(cls) -> None:
        """Have a signal that comes inside the kernel wait until its slots are whole."""
        super().__init_subclass__()
        if "kernel" in vars(cls):
            join_ours(cls.kernel)

    @property
    def hyper(self) -> tuple[float, ...]:
        """The numbers its kernel reads."""
        return (0.0,)

    def pace(self, slots: Floats, progress: float) -> None:
        """Learn, before a phase, which part of the budget is used (here: nothing)."""

    @property
    def paced(self) -> bool:
        """Whether this rule listens to :meth:`pace`, which not every engine can call."""
        return type(self).pace is not StepRule.pace

    @property
    def code(self) -> int:
        """The place of its kernel in :func:`scgd.steps.move`, which has the built-in ones."""
        from scgd.steps.by_code import code_of

        return code_of(self)


def check_decay(name: str, value: float) -> None:
    """Refuse a decay outside [0, 1)."""
    number(value, name, 0, 1, ends="[)")


def make_slots(rule: StepRule, n_coords: int) -> Floats:
    """Return the zeroed memory of a rule."""
    return np.zeros((rule.n_slots, max(n_coords, rule.n_shared)))
