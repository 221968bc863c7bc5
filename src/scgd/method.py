"""SCGD as one frozen object: policy, estimator, step rule, schedules, block size, importance.

``method="musketeer"`` names a row of :data:`NAMED`. The rows need no tuning: their learning rates
and radii are relative, in units of the typical ``scale`` of each coordinate, and their step rules
divide by the size of the gradients, so multiplying f or rescaling x changes nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.checks import as_number, count, flag, number, reals, registry, settle, shown
from scgd.errors import meant
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
from scgd.schedules import (
    SCHEDULES,
    Constant,
    Linear,
    Relative,
    Schedule,
    as_schedule,
    values_at,
)
from scgd.steps import RMS, SGD, STEPS, Adam, StepRule
from scgd.typing import Floats

PARTS: dict[str, dict[str, type]] = {
    "policy": POLICIES, "estimator": ESTIMATORS, "step": STEPS
}  # fmt: skip
NEEDED = {
    "policy": ("draw", "weights", "phase_length"),
    "estimator": ("probe", "gradient", "n_evals"),
    "step": ("kernel", "hyper", "n_slots"),
}
"""What tells that an object is such a part."""
Importance = str | tuple[float, ...] | Callable[..., Any] | None
RATE, RADIUS = Relative(Linear(0.3)), Relative(Linear(0.1, end=1e-3))
"""Steps of a third of the scale that fall to zero with the budget, and differences over a tenth of
it that fall to a thousandth: wide at first to see through noise, narrow in the end for no bias."""


@dataclass(frozen=True)
class SCGD:
    r"""Stochastic coordinate gradient descent (Leluc and Portier, 2022) with all its parts.

    Each step draws a block of coordinates :math:`\zeta` with the probabilities of the policy,
    estimates the partial derivatives there, and moves these coordinates:

    .. math:: \theta_{t+1} = \theta_t - \gamma_{t+1} W_t D(\zeta_{t+1}) g_t

    Parameters
    ----------
    policy
        How coordinates are drawn: an object or a name of :data:`scgd.POLICIES`.
    estimator
        How partial derivatives are estimated: an object or a name of :data:`scgd.ESTIMATORS`.
    step
        How they become moves: an object or a name of :data:`scgd.STEPS`. By default ``"rms"`` where
        the learning rate is relative, and the paper's plain step where it is given in units of x.
    learning_rate, radius
        A number or a schedule of the step number t = 1, 2, ..., in units of x, or
        :class:`~scgd.schedules.Relative` to the problem's ``scale`` (the default).
    block_size
        Coordinates per step.
    importance
        The factor :math:`W_t`: ``None``; ``"inverse"`` (:math:`1/d_k`, divided by the block size,
        so that steps average to the gradient); ``"relative"`` (:math:`1/(p\,d_k)`); a number; one
        weight per coordinate; a schedule of the number of the phase n = 1, 2, ...; or a function
        that returns a number or one weight per coordinate at the start of a phase. Its parameters
        are chosen by name from ``phase`` (0, 1, ...), ``weights`` (the sampling distribution) and
        ``x``.
    replace
        Whether a block may hold a coordinate twice (then its moves add up).
    average
        Recommend the average of the iterates instead of the last one.
    name
        What it is called in tables.

    Examples
    --------
    >>> SCGD(policy="uniform", learning_rate=0.1).step
    SGD()
    >>> SCGD().step
    RMS(beta=0.9, epsilon=0.0)
    """

    policy: Policy = field(default_factory=Musketeer)
    estimator: Estimator = field(default_factory=CentralDifference)
    step: StepRule = None  # type: ignore[assignment]  # by the learning rate, see below
    learning_rate: Schedule = RATE
    radius: Schedule = RADIUS
    block_size: int = 1
    importance: Importance = None
    replace: bool = True
    average: bool = False
    name: str = "SCGD"

    if TYPE_CHECKING:  # what may be given; the fields say what is kept

        def __init__(
            self,
            policy: str | Policy = ...,
            estimator: str | Estimator = ...,
            step: str | StepRule | None = ...,
            learning_rate: float | Schedule = ...,
            radius: float | Schedule = ...,
            block_size: int = ...,
            importance: Any = ...,
            replace: bool = ...,
            average: bool = ...,
            name: str = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be text, got {shown(self.name)}")
        for name in ("learning_rate", "radius"):
            settle(self, **{name: as_schedule(getattr(self, name), name)})
        if self.step is None:
            settle(self, step=RMS() if isinstance(self.learning_rate, Relative) else SGD())
        for name, known in PARTS.items():
            settle(self, **{name: pick(getattr(self, name), known, name)})
        for name in ("replace", "average"):
            flag(getattr(self, name), name)
        settle(self, block_size=count(self.block_size, "block_size"))
        if self.importance is not None:
            settle(self, importance=check_importance(self.importance))

    @property
    def relative(self) -> bool:
        """Whether the scale of coordinates is a unit of anything."""
        return isinstance(self.learning_rate, Relative) or isinstance(self.radius, Relative)

    def first_order(self) -> SCGD:
        """Return the same with exact partial derivatives instead of differences."""
        return replace(self, estimator=FirstOrder())

    def importance_at(self, phase: int, weights: Floats | None, x: Floats) -> Floats:
        """Return the weights of a phase, where they are a function."""
        assert callable(self.importance)
        if isinstance(self.importance, tuple(SCHEDULES.values())):
            values = values_at(self.importance, np.array([phase + 1]), "importance")
            return np.full(x.size, values[0])
        known = {"phase": phase, "weights": weights, "x": x.copy()}
        wanted = parameters_of(self.importance)
        given = [known[name] for name in wanted] if wanted else [phase]
        found = reals(self.importance(*given), "importance")
        found = np.full(x.size, float(found)) if found.ndim == 0 else found
        if found.shape != x.shape:
            raise ValueError(
                f"importance returned {found.size} weights for {x.size} coordinates; return one "
                "number, or one per coordinate"
            )
        return np.array(check_importance(found), np.float64)


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """Return which of phase, weights and x a function asks for by name; none: the phase alone."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
    return names if set(names) <= {"phase", "weights", "x"} else []


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
        hint = meant(value, registry)
        raise ValueError(
            f"{name} must be an object or one of {sorted(registry)}, got {value!r}{hint}"
        )
    try:
        return registry[value]()
    except TypeError:
        raise ValueError(
            f"{name}={value!r} needs arguments; pass {registry[value].__name__}(...)"
        ) from None


def check_importance(value: Any) -> Importance:
    """Return a known name, a tuple of positive weights or a function that returns them."""
    if as_number(value) is not None:
        return Constant(number(value, "importance", 0, ends="(]"))
    if callable(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, str):
        if value not in (known := ("inverse", "relative")):
            raise ValueError(
                "importance must be None, 'inverse', 'relative', a number, weights, a schedule or "
                f"a function, got {value!r}{meant(value, known)}"
            )
        return value
    wanted = "be None, 'inverse', 'relative' or positive weights, one per coordinate"
    weights = reals(value, "importance", wanted)
    if weights.ndim != 1 or not np.all(np.isfinite(weights)) or np.any(weights <= 0):
        raise ValueError("importance weights must be positive and finite, one per coordinate")
    return tuple(weights.tolist())


ROWS = (
    SCGD(name="musketeer"),
    SCGD(name="uniform", policy=Uniform()),
    SCGD(name="full", policy=Full()),
    SCGD(Full(), SphereSmoothing(), Adam(), Relative(Linear(0.03)), name="sphere"),
    SCGD(Full(), GaussianSmoothing(), Adam(), Relative(Linear(0.03)), name="gaussian"),
    SCGD(Full(), SPSA(), Adam(), Relative(Linear(0.03)), name="spsa"),
)
NAMED: dict[str, SCGD] = registry(*((method.name, method) for method in ROWS))
