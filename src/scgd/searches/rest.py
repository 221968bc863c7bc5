"""Nothing left to do, unless there is more budget."""

from __future__ import annotations

from typing import ClassVar

from scgd.questions import Point, Question
from scgd.searches.base import Search, Standing
from scgd.typing import Floats

__all__ = ["Rest"]


class Rest(Search):
    """Ask nothing until the budget grows; what stands is what another search reached.

    Parameters
    ----------
    point
        Where the run stands.
    values
        The values known there.
    """

    name: ClassVar[str] = "rest"
    memory: ClassVar[tuple[str, ...]] = ("values",)

    def __init__(self, point: Point, values: Floats) -> None:
        super().__init__(point)
        self.values = values

    @property
    def cost(self) -> int:
        """More than any budget pays for."""
        return 2**62

    def ask(self) -> Question | None:
        """Wait."""
        return None

    def extend(self, budget: int | None) -> None:
        """Make way: there is work again."""
        self.finished = True

    @property
    def standing(self) -> Standing:
        """What was reached before."""
        return Standing(self.point.x, self.values)
