"""Problems that are a formula: designs, functions of competitions, and two that stop a search."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from scgd.typing import Floats

__all__ = ["CEC", "FORMULAS", "Made", "Value"]

Value = Callable[[Floats], float]
Made = tuple[Any, Any, int, Value, float]
"""Lower and upper bound, coordinates, the function and its lowest value."""


# designs under constraints, with an exact penalty (Coello Coello, 2000; Golinski, 1970)


def linear(p: int, rng: np.random.Generator) -> Made:
    """Return the misfit of a linear model to 100 rows of correlated inputs."""
    rows = rng.standard_normal((100, p)) @ np.linalg.cholesky(0.5 * np.eye(p) + 0.5)
    best = rng.uniform(-0.8, 0.8, p)
    return -1.0, 1.0, p, lambda x: float(((rows @ (x - best)) ** 2).mean()), 0.0


def beam(x: Floats) -> tuple[float, Floats]:
    """Return the cost of a welded beam, and by what share each of its limits is exceeded."""
    h, long, t, b = x
    first, arm = 6000 / (2**0.5 * h * long), (long**2 / 4 + ((h + t) / 2) ** 2) ** 0.5
    second = 6000 * (14 + long / 2) * arm
    second /= 2 * 2**0.5 * h * long * (long**2 / 12 + ((h + t) / 2) ** 2)
    shear = (first**2 + first * second * long / arm + second**2) ** 0.5
    bending, sag = 504000 / (b * t**2), 2.1952 / (t**3 * b)
    buckling = 4.013 * 30e6 * t * b**3 / 6 / 196 * (1 - t / 28 * (30 / 48) ** 0.5)
    cost = 1.10471 * h**2 * long + 0.04811 * t * b * (14 + long)
    over = [shear / 13600 - 1, bending / 30000 - 1, h / b - 1, sag / 0.25 - 1, 1 - buckling / 6000]
    return cost, np.array(over)


def spring(x: Floats) -> tuple[float, Floats]:
    """Return the weight of a spring, and by what share each of its limits is exceeded."""
    d, w, n = x
    shear = (4 * w**2 - d * w) / (12566 * (w * d**3 - d**4)) + 1 / (5108 * d**2) - 1
    over = [1 - w**3 * n / (71785 * d**4), shear, 1 - 140.45 * d / (w**2 * n), (d + w) / 1.5 - 1]
    return (n + 2) * w * d**2, np.array(over)


def reducer(x: Floats) -> tuple[float, Floats]:
    """Return the weight of a speed reducer, and by what share each of its limits is exceeded."""
    a, b, c, d, e, f, g = x
    weight = 0.7854 * a * b**2 * (3.3333 * c**2 + 14.9334 * c - 43.0934)
    weight += -1.508 * a * (f**2 + g**2) + 7.4777 * (f**3 + g**3)
    weight += 0.7854 * (d * f**2 + e * g**2)
    bent = [((745 * s / (b * c)) ** 2 + k) ** 0.5 for s, k in ((d, 16.9e6), (e, 157.5e6))]
    over = [
        27 / (a * b**2 * c), 397.5 / (a * b**2 * c**2), 1.93 * d**3 / (b * c * f**4),
        1.93 * e**3 / (b * c * g**4), bent[0] / (110 * f**3), bent[1] / (85 * g**3), b * c / 40,
        5 * b / a, a / (12 * b), (1.5 * f + 1.9) / d, (1.1 * g + 1.9) / e,
    ]  # fmt: skip
    return weight, np.array(over) - 1


def vessel(x: Floats) -> tuple[float, Floats]:
    """Return the cost of a pressure vessel, and by what share each of its limits is exceeded."""
    shell, head, r, long = x
    cost = 0.6224 * shell * r * long + 1.7781 * head * r**2 + 3.1661 * shell**2 * long
    cost += 19.84 * shell**2 * r
    volume = np.pi * r**2 * long + 4 / 3 * np.pi * r**3
    return cost, np.array(
        [0.0193 * r / shell, 0.00954 * r / head, 1296000 / volume, long / 240]
    ) - 1


DESIGNS: dict[str, tuple[Callable[[Floats], tuple[float, Floats]], Any, Any, float]] = {
    "beam": (beam, [0.1, 0.1, 0.1, 0.1], [2, 10, 10, 2], 1.7248523),
    "spring": (spring, [0.05, 0.25, 2], [2, 1.3, 15], 0.0126652),
    "reducer": (
        reducer, [2.6, 0.7, 17, 7.3, 7.3, 2.9, 5], [3.6, 0.8, 28, 8.3, 8.3, 3.9, 5.5], 2994.471,
    ),
    "vessel": (vessel, [0.1, 0.1, 10, 10], [6, 6, 200, 240], 5804.3762),
}  # fmt: skip
"""The function, its bounds, and its known minimum; every variable is a real number."""


def design(name: str, rng: np.random.Generator) -> Made:
    """Return a design's cost and 100 minima per unit by which a limit is exceeded."""
    fun, low, high, lowest = DESIGNS[name]

    def value(x: Floats) -> float:
        with np.errstate(all="ignore"):
            cost, over = fun(x)
        return float(cost + 100 * lowest * np.maximum(0, over).sum())

    return np.array(low, float), np.array(high, float), len(low), value, lowest


# shifted and turned, as in the competitions of CEC, and two that stop a search

CEC: dict[str, Callable[[Floats], Any]] = {
    "zakharov": lambda z: z @ z + (w := 0.5 * np.arange(1, z.size + 1) @ z) ** 2 + w**4,
    "levy": lambda z: (
        np.sin(np.pi * (1 + z[0] / 4)) ** 2
        + np.sum((z[:-1] / 4) ** 2 * (1 + 10 * np.sin(np.pi * (1 + z[:-1] / 4) + 1) ** 2))
        + (z[-1] / 4) ** 2 * (1 + np.sin(2 * np.pi * (1 + z[-1] / 4)) ** 2)
    ),
    "ackley": lambda z: (
        20 * (1 - np.exp(-0.2 * np.sqrt(np.mean(z**2))))
        + np.e - np.exp(np.mean(np.cos(2 * np.pi * z)))
    ),
    "happycat": lambda z: abs(z @ z - 2 * z.sum()) ** 0.25 + 0.5 * np.mean(z**2),
    "schaffer": lambda z: np.sum(
        0.5 + (np.sin(np.sqrt(s := z**2 + np.roll(z, -1) ** 2)) ** 2 - 0.5) / (1 + 0.001 * s) ** 2
    ),
}  # fmt: skip
"""Functions with their minimum of 0 at 0."""


def turned(name: str, p: int, rng: np.random.Generator) -> Made:
    """Return a function of CEC; the instance draws shift and rotation."""
    turn, best = np.linalg.qr(rng.standard_normal((p, p)))[0], rng.uniform(-80, 80, p)
    unit = 0.05  # of the box of +-100 the functions use +-5
    return -100.0, 100.0, p, lambda x: float(CEC[name](turn @ (unit * (x - best)))), 0.0


def plateaus(p: int, rng: np.random.Generator) -> Made:
    """Return steps of equal height in the logarithm of a turned ellipsoid (condition 1e6)."""
    turn, weights = np.linalg.qr(rng.standard_normal((p, p)))[0], np.logspace(0, 6, p)

    def value(x: Floats) -> float:
        return float(np.exp(np.floor(np.log(weights @ (turn @ (x - 0.5)) ** 2 + 1e-300))))

    return -3.0, 3.0, p, value, 0.0


def sawtooth(p: int, rng: np.random.Generator) -> Made:
    """Return teeth on a kink: slopes point the wrong way between the jumps."""
    return -3.0, 3.0, p, lambda x: float(np.sum(np.abs(x - 1) + 3 * np.mod(7 * x, 1))), 0.0


def inputs(p: int, rng: np.random.Generator) -> Made:
    """Return six of p inputs that matter, their best values well inside the bounds."""
    which, best = np.arange(10, p, p // 6)[:6], np.tile([0.6, -0.6], 3)
    return -1.0, 1.0, p, lambda x: float(((x[which] - best) ** 2).sum()), 0.0


FORMULAS: dict[str, Callable[[np.random.Generator], Made]] = {
    "linear40": partial(linear, 40),
    **{name: partial(design, name) for name in DESIGNS},
    **{f"{name}{p}": partial(turned, name, p) for name in CEC for p in (10, 30)},
    "plateaus20": partial(plateaus, 20),
    "sawtooth10": partial(sawtooth, 10),
    "inputs300": partial(inputs, 300),
}
