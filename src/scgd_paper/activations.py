"""Activations of a perceptron, compiled so that single precision runs in vector registers."""

from math import erf, sqrt

import numpy as np
from numba import types
from numba.extending import overload

from scgd.compiling import njit

__all__ = ["ACTIVATIONS", "activate", "exponential"]

ACTIVATIONS = ("identity", "relu", "sigmoid", "tanh", "silu", "gelu")
IDENTITY, RELU, SIGMOID, TANH, SILU, GELU = range(6)


def exponential(x):  # type: ignore[no-untyped-def]
    """Return exp(x); in compiled single precision within two units in the last place."""
    return np.exp(x)


@overload(exponential)
def _exponential(x):  # type: ignore[no-untyped-def]
    # The library's exponential is a call per number; a polynomial on [-log(2)/2, log(2)/2] and an
    # exponent put together from its bits vectorise.
    if x != types.float32:
        return lambda x: np.exp(x)

    def single(x):  # type: ignore[no-untyped-def]
        f = np.float32
        x = f(88.0) if x > f(88.0) else x
        x = f(-87.0) if x < f(-87.0) else x
        n = np.floor(x * f(1.44269504) + f(0.5))
        r = x - n * f(0.693359375) + n * f(2.12194440e-4)
        y = f(1.9875691500e-4) * r + f(1.3981999507e-3)
        y = y * r + f(8.3334519073e-3)
        y = y * r + f(4.1665795894e-2)
        y = y * r + f(1.6666665459e-1)
        y = y * r + f(0.5)
        y = y * (r * r) + r + f(1.0)
        bits = np.int32(np.int32(np.int32(n) + np.int32(127)) << np.int32(23))
        return y * bits.view(np.float32)

    return single


@njit(cache=True, inline="always", error_model="numpy")
def activated(code, z, one):  # type: ignore[no-untyped-def]
    """Return an activation of one number; ``one`` keeps the arithmetic in its precision."""
    if code == RELU:
        return z if z > 0 or z != z else one - one
    if code == SIGMOID:
        return one / (one + exponential(-z))  # type: ignore[no-untyped-call]
    if code == TANH:
        return one - (one + one) / (one + exponential(z + z))  # type: ignore[no-untyped-call]
    if code == SILU:
        return z / (one + exponential(-z))  # type: ignore[no-untyped-call]
    if code == GELU:
        return one * (z * (1 + erf(z / sqrt(2.0))) / 2)
    return z


@njit(cache=True, inline="always", error_model="numpy")
def activate_with(code, z, out):  # type: ignore[no-untyped-def]
    """Apply one activation; with a constant code the loop vectorises."""
    one = z.dtype.type(1)
    for i in range(len(z)):
        out[i] = activated(code, z[i], one)


@njit(cache=True, error_model="numpy")
def activate_tanh(z, out):  # type: ignore[no-untyped-def]
    """Apply tanh: by its series where the difference from one would lose digits."""
    f = z.dtype.type
    one, near = f(1), f(0.01)
    c1, c2, c3, c4, c5, c6 = (
        f(1 / 3), f(2 / 15), f(17 / 315), f(62 / 2835), f(1382 / 155925), f(21844 / 6081075),
    )  # fmt: skip
    for i in range(len(z)):
        x = z[i]
        s = x * x
        series = x * (one - s * (c1 - s * (c2 - s * (c3 - s * (c4 - s * (c5 - s * c6))))))
        out[i] = series if s < near else activated(TANH, x, one)


@njit(cache=True, error_model="numpy")
def activate(code, z, out):  # type: ignore[no-untyped-def]
    """Apply an activation to a line of numbers."""
    if code == RELU:
        activate_with(RELU, z, out)
    elif code == SIGMOID:
        activate_with(SIGMOID, z, out)
    elif code == TANH:
        activate_tanh(z, out)
    elif code == SILU:
        activate_with(SILU, z, out)
    elif code == GELU:
        activate_with(GELU, z, out)
    else:
        out[:] = z
