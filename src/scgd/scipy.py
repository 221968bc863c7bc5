"""For those who call ``scipy.optimize.minimize``: ``method=scgd.scipy_method``."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from scgd.checks import count, function, reals
from scgd.errors import nearest
from scgd.history import Status
from scgd.minimize import minimize

if TYPE_CHECKING:
    from scgd.results import Result

__all__ = ["scipy_method"]

RENAMED = {"maxfev": "max_evals", "maxfun": "max_evals"}
"""SciPy's names of options, and ours."""
SINGLE = {"fun", "x0", "args", "jac", "bounds", "constraints", "callback"}
"""What SciPy hands over by itself, and so is no option."""


def scipy_method(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    jac: Callable[..., Any] | None = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable[..., Any] | None = None,
    maxiter: int | None = None,
    disp: bool = False,
    tol: float | None = None,
    **options: Any,
) -> Result:
    """Run :func:`scgd.minimize` as a method of ``scipy.optimize.minimize``.

    Parameters
    ----------
    fun, x0, args, bounds
        As there. ``fun`` is given a copy of x, as SciPy's own methods do.
    jac
        The whole gradient, ``jac(x, *args)``, or True where ``fun`` returns it beside the value.
    hess, hessp
        Not used; a RuntimeWarning says so, as SciPy's does.
    constraints
        Handed on, dictionaries of the old kind among them.
    callback
        ``callback(xk)`` or ``callback(intermediate_result)``, called once per phase; raising
        StopIteration ends the run.
    maxiter
        ``result.nit`` at which the run ends, looked at once per phase.
    disp
        Print the result.
    tol
        Handed on.
    options
        ``maxfev`` (or ``maxfun``), ``seed``, and every keyword of :func:`scgd.minimize`; ``method``
        among them chooses its method.

    Returns
    -------
    Result
        As :func:`scgd.minimize`.

    Examples
    --------
    >>> import scipy.optimize
    >>> result = scipy.optimize.minimize(
    ...     scipy.optimize.rosen, [0, 0], method=scipy_method, options={"maxfev": 800, "seed": 0}
    ... )
    >>> bool(result.fun < 1e-6), result.nfev <= 800
    (True, True)
    """
    words = keywords(options)
    for name, given in (("hess", hess), ("hessp", hessp)):
        if given is not None:
            warnings.warn(f"scgd does not use {name}", RuntimeWarning, stacklevel=2)
    if tol is not None:
        words["tol"] = tol
    if (limits := as_constraints(constraints)) is not None:
        words["constraints"] = limits
    for name, given in (("fun", fun), ("jac", jac), ("callback", callback)):
        if given is not None or name == "fun":
            function(given, name)
    watch = Watch(callback, None if maxiter is None else count(maxiter, "maxiter"))
    start = np.atleast_1d(reals(x0, "x0"))
    result = minimize(
        Copying(fun), start, args, jac=None if jac is None else Partials(jac), bounds=bounds,
        reporting=watch if watch.needed else None, **words,
    )  # fmt: skip
    if watch.reached:
        limit = f"maxiter={maxiter} steps were reached."
        result.message = result.message.replace(Status.CALLBACK.message, limit)
    if disp:
        print(result)
    return result


KNOWN = frozenset(inspect.signature(minimize).parameters)


def keywords(options: dict[str, Any]) -> dict[str, Any]:
    """Return options under our names, or say which one is unknown."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        ours = RENAMED.get(name, name)
        if ours not in KNOWN or ours in SINGLE:
            known = sorted({"maxfev", "maxiter", "disp", *KNOWN} - SINGLE - {"max_evals"})
            raise TypeError(f"options has {name!r}, which scgd does not know{nearest(name, known)}")
        found[ours] = value
    return found


def as_constraints(constraints: Any) -> Any:
    """Return constraints as objects, None where there are none."""
    if constraints is None:
        return None
    if not isinstance(constraints, list | tuple):
        constraints = [constraints]
    return [new_style(one) if isinstance(one, dict) else one for one in constraints] or None


def new_style(one: dict[str, Any]) -> Any:
    """Return a constraint that is a dictionary as an object."""
    from scipy.optimize import NonlinearConstraint

    kind, fun = one.get("type"), one.get("fun")
    if kind not in ("eq", "ineq") or not callable(fun):
        raise ValueError(
            "constraints: a constraint that is a dict needs type='eq' or 'ineq' and a function "
            f"fun, got {one!r}"
        )
    more = tuple(one.get("args", ()))
    return NonlinearConstraint(lambda x: fun(x, *more), 0.0, 0.0 if kind == "eq" else np.inf)


class Copying:
    """Hand a copy of x to a function, which may keep or change it."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun

    def __call__(self, x: Any, *rest: Any) -> Any:
        """Return the value, which may be an array of one number as SciPy allows."""
        value = self.fun(x.copy(), *rest)
        return value if isinstance(value, float) or np.size(value) != 1 else np.ravel(value)[0]


class Partials:
    """Some partial derivatives from a function that returns the whole gradient."""

    def __init__(self, jac: Callable[..., Any]) -> None:
        self.jac = jac

    def __call__(self, x: Any, coords: Any, *rest: Any) -> Any:
        """Return the partial derivatives at some coordinates."""
        gradient = reals(self.jac(x.copy(), *rest), "jac", "return the gradient")
        if gradient.shape != x.shape:
            raise ValueError(f"jac must return {x.size} numbers, got shape {gradient.shape}")
        return gradient[coords]


class Watch:
    """A callback of SciPy's, by either signature, and the number of steps."""

    def __init__(self, callback: Callable[..., Any] | None, maxiter: int | None) -> None:
        self.callback, self.maxiter, self.reached = callback, maxiter, False
        self.whole = callback is not None and takes_result(callback)

    @property
    def needed(self) -> bool:
        """Whether there is anything to do."""
        return self.callback is not None or self.maxiter is not None

    def __call__(self, result: Any) -> None:
        """Call it; stop at so many steps."""
        if self.callback is not None:
            if self.whole:
                self.callback(intermediate_result=result)
            else:
                self.callback(result.x.copy())
        if self.maxiter is not None and result.nit >= self.maxiter:
            self.reached = True
            raise StopIteration


def takes_result(callback: Callable[..., Any]) -> bool:
    """Tell by the name of its parameter, as SciPy does, whether a callback takes the result."""
    try:
        return set(inspect.signature(callback).parameters) == {"intermediate_result"}
    except (TypeError, ValueError):
        return False
