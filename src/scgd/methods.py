"""The methods of :func:`scgd.minimize`: SCGD with its parts, or a strategy by name or of your own.

A new strategy is a generator function in a file of its own and a row of :data:`ROWS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scgd.checks import registry
from scgd.errors import nearest
from scgd.estimators import FirstOrder
from scgd.method import NAMED, SCGD
from scgd.strategies.asks import Strategy
from scgd.strategies.auto import auto
from scgd.strategies.gaussian_process import gaussian_process
from scgd.strategies.mutation import dynamically_dimensioned_search
from scgd.strategies.quadratic_model import quadratic_model
from scgd.strategies.random_search import random_search
from scgd.strategies.screening import Screen


@dataclass(frozen=True)
class Named:
    """A strategy with a name.

    Parameters
    ----------
    name
        What it is called.
    strategy
        The generator function.
    discrete
        Whether it can search a space that has whole numbers, choices or conditions.
    """

    name: str
    strategy: Strategy
    discrete: bool = False


Method = SCGD | Named


ROWS: tuple[Method, ...] = (
    *NAMED.values(),
    Named("auto", auto, discrete=True),
    Named("quadratic-model", quadratic_model),
    Named("random", random_search, discrete=True),
    Named("gp", gaussian_process, discrete=True),
    Named("dds", dynamically_dimensioned_search, discrete=True),
)
METHODS: dict[str, Method] = registry(*((method.name, method) for method in ROWS))


def as_method(method: Any, *, exact: bool = False) -> Method:
    """Look up a method by name, wrap a generator function, or return SCGD as it is.

    ``exact`` says that there are exact partial derivatives, which SCGD then uses.
    """
    if isinstance(method, str):
        if method not in METHODS:
            raise ValueError(f"{WANTED}, got {method!r}{nearest(method, METHODS)}")
        chosen = METHODS[method]
    elif isinstance(method, SCGD | Named):
        chosen = method
    elif callable(method) and not isinstance(method, type):
        chosen = Named(getattr(method, "__name__", "strategy"), method, discrete=True)
    else:
        raise ValueError(f"{WANTED}, got {method!r}. Known: {', '.join(METHODS)}")
    if isinstance(chosen, SCGD):
        return with_derivatives(chosen, exact=exact)
    if exact and chosen.name in METHODS and chosen.name != "auto":
        raise ValueError(f"method {chosen.name!r} does not use jac; drop it, or choose another")
    return chosen


WANTED = "method must be scgd.SCGD(...), a generator function or a name"


def with_derivatives(method: SCGD, *, exact: bool) -> SCGD:
    """Return SCGD with exact derivatives where there are some, and only there."""
    first_order = isinstance(method.estimator, FirstOrder)
    if not exact:
        if first_order:
            raise ValueError("estimator 'first-order' needs jac=, a function of (x, coords)")
        return method
    if not first_order and method.estimator != SCGD().estimator:
        raise ValueError("jac and an estimator of differences exclude each other; drop one of them")
    return method.first_order()


def screens(method: Method) -> bool:
    """Tell whether a method looks for the inputs that matter, and recommends no point."""
    return isinstance(method, Named) and isinstance(method.strategy, Screen)


@dataclass(frozen=True)
class Ran:
    """What a strategy ran.

    Attributes
    ----------
    name
        The method.
    members
        Its solvers in the order in which they first ran, with their evaluations.
    steps
        The SCGD that took its last steps, where it took any.

    Examples
    --------
    >>> print(Ran("auto", (("probes", 22), ("spsa", 300))))
    auto: probes 22, spsa 300
    """

    name: str
    members: tuple[tuple[str, int], ...]
    steps: SCGD | None = None

    def __str__(self) -> str:
        """Return it in a line."""
        parts = ", ".join(f"{name} {n}" for name, n in self.members)
        return f"{self.name}: {parts or 'nothing'}"
