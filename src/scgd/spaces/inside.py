"""A user's function of named parameters as a function of points of the unit cube."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scgd.calling import calls_user
from scgd.spaces.space import Space

__all__ = ["InSpace"]


@dataclass(frozen=True)
class InSpace:
    """A function of parameters, to be called with points; it travels to workers."""

    space: Space
    fun: Callable[..., Any]

    @calls_user
    def __call__(self, x: Any, *rest: Any) -> Any:
        """Call the function with the parameters at a point."""
        return self.fun(self.space.decode(x), *rest)
