"""Functions as people bring them: units side by side, walls, kinks, lost values, small fits.

Each is drawn anew for every instance: its start, its place and its directions. Where the lowest
value has no formula it is that of a linear program, or of the parameters that made the data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.optimize import linprog

from scgd.typing import Floats
from scgd_arena.problems import Task

__all__ = ["EVERYDAY", "everyday"]

Value = Callable[[Floats], float]
Made = tuple[Floats, Value, float]
"""A start, a function and its lowest value."""
Maker = Callable[[np.random.Generator, int], Made]


def cut_bowl(rng: np.random.Generator, p: int) -> tuple[Floats, Value, Callable[[Floats], float]]:
    """Return a start, a bowl, and how far a point lies beyond a plane in front of its centre.

    The lowest value before the plane is 1; the start lies before it.
    """
    centre, bend, a = rng.normal(0, 1, p), 10 ** rng.uniform(0, 1, p), rng.normal(0, 1, p)
    a /= np.sqrt(a @ (a / bend))
    place = float(a @ centre) - 1
    x0 = centre - rng.uniform(2, 4) * a / bend + rng.normal(0, 0.3, p)
    x0 -= max(0.0, float(a @ x0) - place + 0.5) * a / float(a @ a)
    return x0, lambda x: float(bend @ (x - centre) ** 2), lambda x: float(a @ x) - place


def lost_half(rng: np.random.Generator, p: int) -> Made:
    """Return NaN beyond a plane before the bowl's centre, as a simulator that does not converge."""
    x0, bowl, beyond = cut_bowl(rng, p)
    return x0, lambda x: bowl(x) if beyond(x) <= 0 else float("nan"), 1.0


def walled(rng: np.random.Generator, p: int) -> Made:
    """Return a bowl with a wall of a million in front of its centre."""
    x0, bowl, beyond = cut_bowl(rng, p)
    return x0, lambda x: bowl(x) + (1e6 if beyond(x) > 0 else 0.0), 1.0


def penalised(rng: np.random.Generator, p: int) -> Made:
    """Return a bowl with an exact penalty, a kink across all coordinates."""
    x0, bowl, beyond = cut_bowl(rng, p)
    return x0, lambda x: bowl(x) + 10 * abs(beyond(x)), 1.0


def joined(rng: np.random.Generator, p: int) -> Made:
    """Return a sum over coordinates near the start, none beyond a plane to be crossed."""
    x0, bowl, beyond = cut_bowl(rng, p)
    return x0, lambda x: bowl(x) + 100 * max(0.0, beyond(x)) ** 2, 100 / 101


def units(rng: np.random.Generator, p: int) -> Made:
    """Return a bowl in coupled coordinates of very different size, that of the start."""
    size = 10 ** rng.uniform(-6, 6, p)
    centre, pull = rng.uniform(0.5, 3, p), rng.normal(0, 1, (p, p))
    x0 = size * rng.uniform(0.5, 3, p)

    def value(x: Floats) -> float:
        z = x / size - centre
        return float(z @ z + np.sum((pull @ z) ** 2))

    return x0, value, 0.0


def peak(rng: np.random.Generator, p: int) -> Made:
    """Return a peak of light to fit to 60 counts: height, place and width in metres."""
    truth = np.array([8e4, 528e-9, 8e-9]) * rng.uniform(0.8, 1.2, 3)
    grid = np.linspace(480e-9, 580e-9, 60)
    start = truth * np.array([rng.uniform(0.3, 2), rng.uniform(0.99, 1.01), rng.uniform(0.5, 2)])

    def model(x: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.asarray(x[0] * np.exp(-0.5 * ((grid - x[1]) / x[2]) ** 2))

    counts = model(truth)
    return start, lambda x: float(np.mean((model(x) - counts) ** 2) / 1e8), 0.0


def rate(rng: np.random.Generator, p: int) -> Made:
    """Return a rate of reaction to fit at 12 temperatures: factor, energy, power."""
    truth = np.array([10 ** rng.uniform(5, 8), rng.uniform(3e4, 6e4), rng.uniform(0.5, 1.5)])
    heat = np.linspace(300, 500, 12)
    start = truth * np.array([10 ** rng.uniform(-1, 1), rng.uniform(0.8, 1.2), 1.2])

    def model(x: Floats) -> Floats:
        with np.errstate(all="ignore"):
            power = x[2] * np.log(heat / 300) - x[1] / 8.314 / heat
            return np.asarray(np.log(np.maximum(x[0], 1e-300)) + power)

    seen = model(truth)
    return start, lambda x: float(np.mean((model(x) - seen) ** 2)), 0.0


def decay(rng: np.random.Generator, p: int) -> Made:
    """Return two decays to fit to 40 values: two heights, two rates."""
    truth = np.array([2.0, 3.0, 0.5, 20.0]) * rng.uniform(0.7, 1.4, 4)
    grid = np.linspace(0, 1, 40)

    def model(x: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.asarray(x[0] * np.exp(-x[1] * grid) + x[2] * np.exp(-x[3] * grid))

    seen = model(truth)
    start = np.array([1.0, 1.0, 1.0, 10.0]) * rng.uniform(0.7, 1.4, 4)
    return start, lambda x: float(np.sum((model(x) - seen) ** 2)), 0.0


def largest_line(rng: np.random.Generator, p: int) -> Made:
    """Return the largest of six planes per coordinate: a game's value, a worst case."""
    a, b = rng.normal(0, 1, (6 * p, p)), rng.normal(0, 1, 6 * p)
    a[: p + 1] -= a.sum(0) / (p + 1)  # some combination of the slopes is zero: bounded below
    game = linprog(
        np.append(np.zeros(p), 1), np.c_[a, -np.ones(6 * p)], -b, bounds=(None, None)
    )  # fmt: skip
    return rng.normal(0, 2, p), lambda x: float(np.max(a @ x + b)), float(game.fun)


def absolute(rng: np.random.Generator, p: int) -> Made:
    """Return the sum of absolute residuals of four rows per coordinate, some far off."""
    a, x = rng.normal(0, 1, (4 * p, p)), rng.normal(0, 1, p)
    b = a @ x + 0.1 * rng.standard_t(1.5, 4 * p)
    one = np.eye(4 * p)
    fit = linprog(
        np.append(np.zeros(p), np.ones(4 * p)),
        np.block([[a, -one], [-a, -one]]), np.append(b, -b), bounds=(None, None),
    )  # fmt: skip
    return rng.normal(0, 2, p), lambda x: float(np.abs(a @ x - b).sum()), float(fit.fun)


def valley(rng: np.random.Generator, p: int) -> Made:
    """Return Rosenbrock's valley, in units of its own."""
    size, sign = 10 ** rng.uniform(-1, 1), rng.choice([-1.0, 1.0], p)
    start = size * sign * (np.resize([-1.2, 1.0], p) + rng.normal(0, 0.1, p))

    def value(x: Floats) -> float:
        z = x * sign / size
        return float(np.sum(100 * (z[1:] - z[:-1] ** 2) ** 2 + (1 - z[:-1]) ** 2))

    return start, value, 0.0


def camel(rng: np.random.Generator, p: int) -> Made:
    """Return six humps in two variables."""

    def value(x: Floats) -> float:
        a, b = x
        return float((4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2)

    return rng.uniform([-2, -1], [2, 1]), value, -1.031628453489877


def turned(rng: np.random.Generator, p: int) -> Made:
    """Return a bowl whose axes differ by 10, turned."""
    basis = np.linalg.qr(rng.normal(0, 1, (p, p)))[0] * np.logspace(0, 0.5, p)[:, None]
    centre = rng.normal(0, 1, p)
    return rng.normal(0, 2, p), lambda x: float(np.sum((basis @ (x - centre)) ** 2)), 0.0


def network(rng: np.random.Generator, p: int) -> Made:
    """Return ten neurons to fit to a wave: 31 weights; the lowest value is taken as 0."""
    grid = np.linspace(-2, 2, 60)
    wave = np.sin(rng.uniform(1.5, 2.5) * grid + rng.uniform(-1, 1))

    def value(x: Floats) -> float:
        hidden = np.tanh(grid[:, None] * x[:10] + x[10:20])
        return float(np.mean((hidden @ x[20:30] + x[30] - wave) ** 2))

    return rng.normal(0, 0.5, p), value, 0.0


EVERYDAY: dict[str, tuple[Maker, tuple[tuple[int, int], ...]]] = {
    "lost-half": (lost_half, ((3, 200), (10, 1000))),
    "walled": (walled, ((3, 200), (10, 1000))),
    "penalised": (penalised, ((3, 200), (10, 1000))),
    "joined": (joined, ((6, 800), (20, 2000))),
    "units": (units, ((3, 300), (6, 600))),
    "peak": (peak, ((3, 300),)),
    "rate": (rate, ((3, 300),)),
    "decay": (decay, ((4, 600),)),
    "largest-line": (largest_line, ((3, 150), (10, 1000))),
    "absolute": (absolute, ((3, 150), (8, 1000))),
    "valley": (valley, ((2, 150), (4, 300))),
    "camel": (camel, ((2, 60),)),
    "turned": (turned, ((3, 30), (10, 100))),
    "network": (network, ((31, 2000),)),
}
"""How each is made, and the numbers of coordinates and of evaluations of its cells."""


@cache
def everyday(name: str, p: int, instance: int) -> Task:
    """Return an instance of one of them.

    Examples
    --------
    >>> round(everyday("walled", 3, 1).gap(everyday("walled", 3, 1).x0), 1) > 0
    True
    """
    x0, value, lowest = EVERYDAY[name][0](np.random.default_rng([instance, 77]), p)
    reach = np.maximum(np.abs(x0), 1e-3 * np.abs(x0).max())
    return Task(
        f"{name}-d{p}", x0, None, lambda seed: value, lambda x: value(x) - lowest,
        domain=(x0 - 2 * reach, x0 + 2 * reach), repeats=True, lowest=lowest,
    )  # fmt: skip
