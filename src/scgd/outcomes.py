"""What becomes of a call of the user's function: a value, its negative, or a failure.

Inside, everything is minimised. Where the user maximises, values change sign on the way in
(:func:`called`) and on the way out (``Run.result``), and nowhere else. An exception that the user
wants counted travels as a NaN of its own, :data:`CAUGHT`, so that it can be told from a NaN that
the function returned, wherever it was evaluated.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from scgd.calling import calls_user
from scgd.compiling import is_compiled, njit
from scgd.problem import as_scalar
from scgd.typing import Array

MARK = 0x7FF8_0000_7363_6764
"""A quiet NaN; its payload survives NumPy, pickling and a cluster's messages."""
CAUGHT: float = struct.unpack("<d", struct.pack("<Q", MARK))[0]
Caught = tuple[type[Exception], ...]


def is_caught(value: float) -> bool:
    """Tell whether a value stands for an exception that was caught.

    Examples
    --------
    >>> is_caught(CAUGHT), is_caught(float("nan")), is_caught(1.0)
    (True, False, False)
    """
    return value != value and struct.pack("<d", value) == struct.pack("<Q", MARK)


def check_catch(catch: Any) -> Caught:
    """Return the exceptions to count as failed values, as a tuple."""
    kinds = catch if isinstance(catch, tuple | list) else (catch,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise TypeError(
                "catch must be a subclass of Exception or a tuple of them, such as "
                f"catch=(RuntimeError,), got {kind!r}"
            )
    return tuple(kinds)


def called(
    fun: Callable[..., Any], *, maximize: bool, catch: Caught, shape: str = "value"
) -> Callable[..., Any]:
    """Return what a run is to call in the place of the user's function.

    ``shape`` says what the function returns: a ``"value"``, the ``"values"`` of the rows of a
    matrix, or the ``"partials"`` at some coordinates.
    """
    if maximize and not catch and shape == "value" and is_compiled(fun):
        return negative_compiled(fun)
    return Called(fun, maximize, catch, shape) if maximize or catch else fun


class Called:
    """Call the user's function, negate, and catch; it travels to workers with the function."""

    def __init__(self, fun: Callable[..., Any], maximize: bool, catch: Caught, shape: str) -> None:
        self.fun, self.maximize, self.catch, self.shape = fun, maximize, catch, shape

    @calls_user
    def __call__(self, x: Any, *rest: Any) -> Any:
        """Return the value to minimise, or CAUGHT."""
        try:
            value = self.fun(x, *rest)
        except self.catch:
            return self._failed(x, rest)
        if not self.maximize:
            return value
        return -as_scalar(value) if self.shape == "value" else negative(value)

    def _failed(self, x: Any, rest: tuple[Any, ...]) -> Any:
        if self.shape == "value":
            return CAUGHT
        return np.full(len(x) if self.shape == "values" else len(rest[0]), CAUGHT)


def negative(value: Any) -> Any:
    """Return minus an array of numbers; anything else as it is, for others to refuse."""
    array: Array = np.asarray(value)
    return -array.astype(np.float64) if array.dtype.kind in "fiu" else value


def negative_compiled(fun: Any) -> Callable[..., Any]:
    """Return minus a function compiled by numba, compiled."""

    @njit()
    def negative(x, *args):  # type: ignore[no-untyped-def]
        return -fun(x, *args)

    compiled: Callable[..., Any] = negative
    return compiled
