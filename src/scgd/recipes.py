"""Recipes: a method is a bundle of policy, estimator, step rule, schedules and block size.

``method="musketeer"`` names a row of :data:`RECIPES`; keywords of :func:`scgd.minimize` replace
its parts; ``result.recipe`` prints what ran. The rows need no tuning: their learning rates and
radii are relative, in units of the typical ``scale`` of each coordinate, and their step rules
divide by the size of the gradients, so multiplying f or rescaling x changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from scgd.checks import count, flag, reals, settle, shown
from scgd.estimators import (
    ESTIMATORS,
    SPSA,
    CentralDifference,
    Estimator,
    FirstOrder,
    GaussianSmoothing,
    SphereSmoothing,
)
from scgd.policies import POLICIES, Full, Musketeer, Policy, Uniform
from scgd.schedules import Linear, Schedule, as_schedule
from scgd.steps import RMS, SGD, STEPS, Adam, StepRule
from scgd.typing import Floats

__all__ = ["RECIPES", "Recipe", "pick"]

PARTS: dict[str, dict[str, type]] = {
    "policy": POLICIES, "estimator": ESTIMATORS, "step": STEPS
}  # fmt: skip
NEEDED = {
    "policy": ("draw", "weights", "phase_length"),
    "estimator": ("probe", "gradient", "n_evals"),
    "step": ("kernel", "hyper", "n_slots"),
}
"""What tells that an object is such a part."""
Importance = str | tuple[float, ...] | Callable[[int], Any] | None


@dataclass(frozen=True)
class Recipe:
    r"""Everything that defines a method, as one frozen, printable value.

    Parameters
    ----------
    name
        What it is called in tables.
    policy, estimator, step
        How coordinates are drawn, how partial derivatives are estimated, how they become moves.
    learning_rate, radius
        Schedules of the step number t = 1, 2, ... (or of passes, where the schedule says so).
    relative_rate, relative_radius
        Whether those are multiples of the problem's ``scale`` or absolute numbers.
    block_size, replace
        Coordinates per step, and whether a block may hold one twice (then its moves add up).
    importance
        Factor on the step: ``None``; ``"inverse"`` (:math:`1/d_k`, divided by the block size, so
        that steps average to the gradient); ``"relative"`` (:math:`1/(p\,d_k)`); or the paper's
        :math:`W_t`: one weight per coordinate, or a function that returns them for phase 0, 1, ...
    average
        Recommend the average of the iterates instead of the last one.

    Examples
    --------
    >>> RECIPES["uniform"].override(learning_rate=0.1).step
    SGD()
    """

    name: str
    policy: Policy = field(default_factory=Musketeer)
    estimator: Estimator = field(default_factory=CentralDifference)
    step: StepRule = field(default_factory=RMS)
    learning_rate: Schedule = field(default_factory=lambda: Linear(0.3))
    radius: Schedule = field(default_factory=lambda: Linear(0.1, end=1e-3))
    relative_rate: bool = True
    relative_radius: bool = True
    block_size: int = 1
    replace: bool = True
    importance: Importance = None
    average: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be text, got {shown(self.name)}")
        for name, registry in PARTS.items():
            settle(self, **{name: pick(getattr(self, name), registry, name)})
        for name in ("learning_rate", "radius"):
            settle(self, **{name: as_schedule(getattr(self, name), name)})
        for name in ("relative_rate", "relative_radius", "replace", "average"):
            flag(getattr(self, name), name)
        settle(self, block_size=count(self.block_size, "block_size"))
        if self.importance is not None:
            settle(self, importance=check_importance(self.importance))

    def override(self, **parts: Any) -> Recipe:
        """Return a copy with some parts replaced, by object, name or number; ``None`` keeps a part.

        A given ``learning_rate`` or ``radius`` is absolute, and a given learning rate without a
        step rule means the paper's plain step, :class:`~scgd.steps.SGD`.
        """
        given = {name: value for name, value in parts.items() if value is not None}
        known = {f.name for f in fields(self)}
        if unknown := sorted(set(given) - known):
            raise TypeError(f"a recipe has no part {unknown[0]!r}; its parts are {sorted(known)}")
        if "learning_rate" in given:
            given.setdefault("relative_rate", False)
            given.setdefault("step", SGD())
        if "radius" in given:
            given.setdefault("relative_radius", False)
        return replace(self, **given)

    def first_order(self) -> Recipe:
        """Return the recipe with exact partial derivatives instead of differences."""
        return replace(self, estimator=FirstOrder())

    def importance_at(self, phase: int, n_coords: int) -> Floats:
        """Return the weights of a phase, where they are a function of it."""
        assert callable(self.importance)
        weights = np.asarray(check_importance(self.importance(phase)), np.float64)
        if len(weights) != n_coords:
            raise ValueError(
                f"importance returned {len(weights)} weights for {n_coords} coordinates"
            )
        return weights


def pick(value: Any, registry: dict[str, type], name: str) -> Any:
    """Return a registered class's default object for a name; leave objects as they are."""
    if not isinstance(value, str):
        if isinstance(value, type):
            raise TypeError(f"{name} must be an object or a name, got the class {value.__name__}")
        if not all(hasattr(value, name) for name in NEEDED[name]):
            raise TypeError(
                f"{name} must be an object or one of {sorted(registry)}, got {shown(value)}"
            )
        return value
    if value not in registry:
        raise ValueError(f"{name} must be an object or one of {sorted(registry)}, got {value!r}")
    try:
        return registry[value]()
    except TypeError:
        raise ValueError(
            f"{name}={value!r} needs arguments; pass {registry[value].__name__}(...)"
        ) from None


def check_importance(value: Any) -> Importance:
    """Return a known name, a tuple of positive weights or a function that returns them."""
    if callable(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, str):
        if value not in ("inverse", "relative"):
            raise ValueError(
                f"importance must be None, 'inverse', 'relative' or weights, got {value!r}"
            )
        return value
    wanted = "be None, 'inverse', 'relative' or positive weights, one per coordinate"
    weights = reals(value, "importance", wanted)
    if weights.ndim != 1 or not np.all(np.isfinite(weights)) or np.any(weights <= 0):
        raise ValueError("importance weights must be positive and finite, one per coordinate")
    return tuple(weights.tolist())


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("musketeer"),
        Recipe("uniform", policy=Uniform()),
        Recipe("full", policy=Full()),
        Recipe("sphere", Full(), SphereSmoothing(), Adam(), Linear(0.03)),
        Recipe("gaussian", Full(), GaussianSmoothing(), Adam(), Linear(0.03)),
        Recipe("spsa", Full(), SPSA(), Adam(), Linear(0.03)),
    )
}
