"""Plans: searches made of searches, and the methods that name them.

A method is a :class:`~scgd.recipes.Recipe`, whose parts can be replaced one by one, or a
:class:`Planned` story that chooses its parts itself. A new one is a story in a file of its own and
a row of :data:`METHODS`.
"""

from __future__ import annotations

from dataclasses import dataclass

from scgd.plans.auto import auto
from scgd.plans.base import TOL, Ground, Plan, Story
from scgd.plans.descent import descent, race, random_search
from scgd.plans.mixed import mutate, niches
from scgd.plans.noisy import noisy
from scgd.plans.ran import Ran, what_ran
from scgd.plans.steps import steps
from scgd.recipes import RECIPES, Recipe

__all__ = ["METHODS", "TOL", "Ground", "Plan", "Planned", "Ran", "as_method", "ran_of", "story_of"]


@dataclass(frozen=True)
class Planned:
    """A method that is a story of its own.

    Parameters
    ----------
    name
        What it is called.
    story
        What follows what.
    knows_steps
        Whether it can search a space that has whole numbers, choices or conditions.
    """

    name: str
    story: Story
    knows_steps: bool = False


Method = Recipe | Planned

METHODS: dict[str, Method] = {
    **RECIPES,
    **{
        method.name: method
        for method in (
            Planned("auto", auto, knows_steps=True),
            Planned("descent", descent()),
            Planned("parabola", descent("parabolas")),
            Planned("bfgs", descent("bfgs")),
            Planned("race", race),
            Planned("noisy", noisy),
            Planned("random", random_search, knows_steps=True),
            Planned("gp", niches, knows_steps=True),
            Planned("dds", mutate, knows_steps=True),
        )
    },
}


def as_method(method: str | Method) -> Method:
    """Look up a method by name, or return it as it is."""
    if isinstance(method, Recipe | Planned):
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method must be a Recipe or one of {sorted(METHODS)}, got {method!r}")
    return METHODS[method]


def story_of(method: Method) -> Story:
    """Return what follows what under a method."""
    return steps(method) if isinstance(method, Recipe) else method.story


def ran_of(method: Method, plan: Plan) -> Recipe | Ran:
    """Return what really ran: the recipe, or the members of a plan."""
    return method if isinstance(method, Recipe) else what_ran(method.name, plan)
