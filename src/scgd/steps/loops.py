"""Compiled loops around a rule's kernel, whoever wrote it.

A loop is a function that closes over the kernel as plain Python; numba then finds the loops of
built-in kernels in its disk cache (closed over a compiled kernel it would not: those have another
name in every process). A user's kernel is compiled once per process, so that no edit of it goes
unnoticed.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from scgd.compiling import is_compiled, njit, register_jitable
from scgd.steps.rules import StepRule

PACKAGE = __name__.split(".")[0]


def compiled(rule: StepRule) -> Any:
    """Return the rule's scalar kernel, compiled.

    Examples
    --------
    >>> import numpy as np
    >>> from scgd import SGD
    >>> compiled(SGD())(0, 2.0, 0.1, np.zeros(1), np.zeros((0, 1)))
    0.2
    """
    return compiled_kernel(rule.kernel)


def applier(rule: StepRule) -> Any:
    """Return ``apply(coords, grads, rates, hyper, slots, theta, lower, upper)`` for a rule.

    It moves the drawn coordinates of theta one after the other, so duplicates add up; ``lower`` and
    ``upper`` are empty where there are no bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from scgd import SGD
    >>> theta, none = np.zeros(3), np.empty(0)
    >>> coords, grads, rates = np.array([0, 2, 2]), np.array([1.0, 1.0, 3.0]), np.full(3, 0.5)
    >>> applier(SGD())(coords, grads, rates, np.zeros(1), np.zeros((0, 3)), theta, none, none)
    >>> theta
    array([-0.5,  0. , -2. ])
    """
    return compiled_apply(rule.kernel)


def built_in(kernel: Any) -> bool:
    """Whether a kernel is this package's own, registered for compiled code at its definition."""
    return str(kernel.__module__).split(".")[0] == PACKAGE


@cache
def compiled_kernel(kernel: Any) -> Any:
    """Compile a kernel by itself."""
    if is_compiled(kernel):
        return kernel
    options = {"cache": True, "error_model": "numpy"} if built_in(kernel) else {}
    return njit(**options)(kernel)


@cache
def compiled_apply(known: Any) -> Any:
    """Compile the loop over a block around a kernel."""
    kernel = known if built_in(known) or is_compiled(known) else register_jitable(known)

    def apply(coords, grads, rates, hyper, slots, theta, lower, upper):  # type: ignore[no-untyped-def]
        for i in range(len(coords)):
            k = coords[i]
            moved = theta[k] - kernel(k, grads[i], rates[i], hyper, slots)
            theta[k] = min(max(moved, lower[k]), upper[k]) if len(lower) > 0 else moved

    return njit(cache=built_in(known), error_model="numpy")(apply)
