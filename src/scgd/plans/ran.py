"""What a method really ran, member by member."""

from __future__ import annotations

from dataclasses import dataclass

from scgd.plans.base import Plan
from scgd.recipes import Recipe
from scgd.searches import Stepping

__all__ = ["Ran", "what_ran"]


@dataclass(frozen=True)
class Ran:
    """What a plan ran.

    Attributes
    ----------
    name
        The method.
    members
        Its searches in the order in which they first ran, with their evaluations.
    steps
        The recipe of its last steps, where it took any.

    Examples
    --------
    >>> print(Ran("auto", (("ladder", 22), ("walk", 300))))
    auto: ladder 22, walk 300
    """

    name: str
    members: tuple[tuple[str, int], ...]
    steps: Recipe | None = None

    def __str__(self) -> str:
        """Return it in a line."""
        parts = ", ".join(f"{name} {n}" for name, n in self.members)
        return f"{self.name}: {parts or 'nothing'}"


def what_ran(name: str, plan: Plan) -> Ran:
    """Return what a plan has run so far."""
    leg = plan.ground.live.get("leg")
    recipe = leg.recipe if isinstance(leg, Stepping) else None
    return Ran(name, tuple(plan.members.items()), recipe)
