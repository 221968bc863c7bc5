"""Problems of engineers and scientists, written from their publications.

Variables are scaled to [0, 1]. Every method is told these bounds, and a point outside counts as the
nearest one inside. The instance draws the start, and what is said with the problem. Where nobody
knows the minimum, it is the best value that long runs found, less a thousandth of what a start has
to gain.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from scgd.compiling import njit
from scgd.typing import Floats
from scgd_arena.formulas import FORMULAS, Made, Value
from scgd_arena.problems import Task, observed

__all__ = ["APPLICATIONS", "SIMULATED", "application"]

# optics (Aliou Barry et al., 2018; Moreau's and Centeno's problems in Nevergrad)


def reflected(indices: Floats, depths: Floats, waves: Floats, inside: float) -> Floats:
    """Return the share of light that layers on a substrate reflect, at normal incidence."""
    impedance: Any = np.full(waves.size, 1 / inside, complex)
    for n, depth in zip(indices[::-1], depths[::-1], strict=True):
        tangent = 1j * np.tan(2 * np.pi * n * depth / waves)
        impedance = (impedance + tangent / n) / (1 + n * impedance * tangent)
    return np.asarray(np.abs((impedance - 1) / (impedance + 1)) ** 2)


def coating(p: int, depth: float, lowest: float, rng: np.random.Generator) -> Made:
    """Return what percentage a coating reflects; the permittivity of each layer."""
    waves, depths = np.arange(400.0, 900.0, 5.0), np.full(p, depth / p)
    return 1.0, 9.0, p, lambda x: 100 * float(reflected(x**0.5, depths, waves, 3.0).mean()), lowest


def bragg(p: int, lowest: float, rng: np.random.Generator) -> Made:
    """Return what a mirror for 600 nm lets through: permittivities, then depths of its layers."""
    low, high = np.repeat([2.0, 30.0], p // 2), np.repeat([3.0, 180.0], p // 2)

    def value(x: Floats) -> float:
        share = reflected(x[: p // 2] ** 0.5, x[p // 2 :], np.array([600.0]), 3**0.5)
        return 1 - float(share[0])

    return low, high, p, value, lowest


def chirped(p: int, lowest: float, rng: np.random.Generator) -> Made:
    """Return what a mirror for 500 to 800 nm lets through; depths of layers of two materials."""
    indices, waves = np.tile([3**0.5, 2**0.5], p // 2), np.linspace(500, 800, 50)
    return 30.0, 180.0, p, lambda x: 1 - float(reflected(indices, x, waves, 3**0.5).mean()), lowest


# fish, dams, rovers, robots


@njit(cache=True)
def catch(efforts):  # type: ignore[no-untyped-def]
    """Return the dogfish caught under daily efforts: Lotka and Volterra's equations, by days."""
    hunters, prey, total = 0.2, 0.8, 0.0
    for effort in efforts:
        eaten = hunters * prey * 4 / 30
        prey += prey * 2 / 30 - eaten
        hunters += 2.5 * eaten - hunters / 30
        caught = min(effort / 10, hunters)
        total += caught
        hunters, prey = min(1.0, hunters - caught), min(1.0, prey)
    return total


def fishing(p: int, lowest: float, rng: np.random.Generator) -> Made:
    """Return the catch of so many days, negative (Nevergrad's fishing problem)."""
    return 0.0, 1.0, p, lambda x: -float(catch(x)), lowest


@njit(cache=True)
def dispatch(x, plants, rng):  # type: ignore[no-untyped-def]
    """Return what four weeks of power cost; dams offer at prices linear in what they see."""
    n, n_plants = len(x) // 6, len(plants)
    stocks, price, total, need = np.full(n, 5.0), np.empty(n + n_plants), 0.0, 3.0
    price[n:] = plants[:, 1]
    for t in range(24 * 28):
        day, month = 2 * np.pi * t / 24, 2 * np.pi * t / (24 * 28)
        usual = 2.5 + np.cos(month) + 0.5 * np.cos(day)
        need = max(0.0, need + 0.3 * rng.standard_normal() + 0.5 * (usual - need))
        for k in range(n):
            stocks[k] += 0.2 * (1 + np.cos(month + k)) * rng.random()
            w = x[6 * k : 6 * k + 6]
            seen = (
                w[1] * np.cos(day) + w[2] * np.sin(day) + w[3] * (need - 3) + w[4] * np.cos(month)
            )
            price[k] = w[0] + seen - 0.1 * w[5] * (stocks[k] - 5)
        left = need
        for i in np.argsort(price):
            used = min(left, stocks[i] if i < n else plants[i - n, 0])
            left -= used
            if i < n:
                stocks[i] -= used
            else:
                total += used * plants[i - n, 1]
        total += 50.0 * left
    return total / (24 * 28)


def rover(p: int, rng: np.random.Generator) -> Made:
    """Return the cost of a rover's way among 112 rocks (Wang et al., 2018); a spline of points.

    The instance draws the rocks. The lowest value is that of a straight way without any rock.
    """
    from scipy.interpolate import BSpline
    from scipy.spatial import cKDTree

    rocks, ends = cKDTree(rng.uniform(0, 1, (112, 2))), np.array([[0.05, 0.05], [0.95, 0.95]])
    inner = np.linspace(0, 1, p // 2 - 2)
    basis = BSpline.design_matrix(
        np.linspace(0, 1, 400), np.r_[[0.0] * 3, inner, [1.0] * 3], 3
    ).toarray()  # fmt: skip

    def value(x: Floats) -> float:
        way = basis @ x.reshape(-1, 2)
        hit = rocks.query(way, p=np.inf)[0] < 0.025
        cost = 0.05 + 20.0 * (hit | (np.abs(way - 0.5) > 0.5).any(axis=1))
        steps = np.linalg.norm(np.diff(way, axis=0), axis=1)
        missed = 10 * np.abs(way[[0, -1]] - ends).sum()
        return float(steps @ (cost[1:] + cost[:-1]) / 2 + missed)

    return -0.1, 1.1, p, value, 0.05 * 0.9 * 2**0.5


PUSH = np.array([[-5, 5], [-5, 5], [-10, 10], [-10, 10], [2, 30], [0, 2 * np.pi], [-5, 5]], float)
"""Of each hand: its place, its speed, tenths of steps, its angle, its turning."""


def pushed(x: Floats, shake: Floats) -> float:
    """Return how far two hands leave two objects from their goals (Wang et al., 2018; Box2D)."""
    import Box2D  # type: ignore[import-untyped]

    world = Box2D.b2World(gravity=(0, 0))
    table = world.CreateStaticBody(shapes=Box2D.b2PolygonShape(box=(500, 500)))

    def body(place: Any, shape: Any, density: float, hold: float, angle: float = 0.0) -> Any:
        made = world.CreateDynamicBody(position=[float(v) for v in place], angle=float(angle))
        made.CreateFixture(shape=shape, density=density, friction=0.01)
        world.CreateFrictionJoint(bodyA=table, bodyB=made, maxForce=hold, maxTorque=2)
        return made

    objects = [
        body((0, 2), Box2D.b2PolygonShape(box=(0.5, 0.5)), 0.05, 5),
        body((0, -2), Box2D.b2CircleShape(radius=1), 0.05, 5),
    ]
    plans = x.reshape(2, 7)
    hand = Box2D.b2PolygonShape(box=(1, 0.3))
    hands = [body(plan[:2], hand, 0.1, 2, plan[5]) for plan in plans]
    speeds = [
        Box2D.b2Vec2(*(plan[2:4] + part).tolist()) for plan, part in zip(plans, shake, strict=True)
    ]
    for t in range(int(10 * plans[:, 4].max()) + 100):
        for plan, arm, speed in zip(plans, hands, speeds, strict=True):
            if t < int(10 * plan[4]):
                torque = 30.0 * arm.mass * (float(plan[6]) - arm.angularVelocity)
                arm.ApplyTorque(torque, True)
                arm.ApplyForce(30.0 * arm.mass * (speed - arm.linearVelocity), arm.position, True)
        world.Step(0.01, 10, 10)
    goals = ((4, 3.5), (-4, 3.5))
    return float(
        sum(np.hypot(*(np.array(o.position) - g)) for o, g in zip(objects, goals, strict=True))
    )


def pushing(p: int, rng: np.random.Generator) -> Made:
    """Return the distance of two pushed objects from their goals; no disturbance of the hands."""
    low, high = np.tile(PUSH, (2, 1)).T
    return low, high, p, lambda x: pushed(x, np.zeros((2, 2))), 0.0


# calibration


@njit(cache=True)
def populations(x, rng, chance):  # type: ignore[no-untyped-def]
    """Return log counts of prey and hunters at 20 times; births may be left to chance."""
    rates, counts, seen = np.exp(x[:4]), 100 * np.exp(x[4:6]), np.empty((20, 2))
    n = 25
    for t in range(20):
        for _ in range(n):
            prey, hunters = counts
            met = prey * hunters / 100
            changes = (rates[0] * prey, rates[1] * met, rates[2] * met, rates[3] * hunters)
            expected = np.array(changes) / n
            for k in range(4):
                expected[k] = min(expected[k], 1e6)
                if chance:
                    expected[k] = rng.poisson(expected[k])
            counts[0] = min(max(prey + expected[0] - expected[1], 1e-3), 1e6)
            counts[1] = min(max(hunters + expected[2] - expected[3], 1e-3), 1e6)
        seen[t] = np.log(1 + counts)
    return seen


RATES = np.log([0.5, 0.4, 0.3, 0.4, 1.0, 1.0])
"""Births of prey, its losses, births of hunters, their losses, and both at the beginning (logs)."""


def lotka(p: int, rng: np.random.Generator) -> Made:
    """Return the misfit of a predator-prey model to counts of its own, drawn by the instance."""
    data = populations(RATES + rng.uniform(-0.3, 0.3, p), rng, False)

    def value(x: Floats) -> float:
        return float(((populations(x, rng, False) - data) ** 2).mean())

    return RATES - 1, RATES + 1, p, value, 0.0


MAKERS: dict[str, Callable[[np.random.Generator], Made]] = {
    "coating10": partial(coating, 10, 400.0, 0.0),
    "coating35": partial(coating, 35, 700.0, 0.0),
    "bragg16": partial(bragg, 16, 0.3671),
    "bragg40": partial(bragg, 40, 0.0854),
    "chirped40": partial(chirped, 40, 0.1949),
    "fishing50": partial(fishing, 50, -4.727),
    "fishing100": partial(fishing, 100, -6.6404),
    "rover60": partial(rover, 60),
    "pushing14": partial(pushing, 14),
    "lotka": partial(lotka, 6),
    **FORMULAS,
}


def scaled(
    name: str,
    instance: int,
    low: Any,
    high: Any,
    make: Callable[[int], Callable[[Floats], float]],
    value: Value,
    lowest: float,
    repeats: bool,
) -> Task:
    """Return the task of a function in the unit box; its start is drawn from the inner part."""
    low, width = np.asarray(low, float), np.subtract(high, low)

    def natural(x: Floats) -> Floats:
        return np.asarray(low + width * np.clip(x, 0.0, 1.0))

    def made(seed: int) -> Callable[..., float]:
        fun = make(seed)
        return lambda x: fun(natural(x))

    x0 = np.random.default_rng([instance, 78]).uniform(0.1, 0.9, low.size)
    return Task(
        name, x0, None, made, lambda x: value(natural(x)) - lowest, [(0.0, 1.0)] * low.size,
        domain=(0.0, 1.0), repeats=repeats, lowest=lowest, looks=repeats,
    )  # fmt: skip


def exact(name: str, instance: int, noise: float = 0.0) -> Task:
    """Return a task with additive noise in units of the start's gap, if wanted."""
    low, high, p, value, lowest = MAKERS[name](np.random.default_rng([instance, 79]))
    low, high = np.broadcast_to(low, p), np.broadcast_to(high, p)
    task = scaled(name, instance, low, high, lambda seed: value, value, lowest, True)
    if not noise:
        return task
    size = noise * task.gap(task.x0)
    return scaled(
        f"{name}-s{noise:g}", instance, low, high, observed(value, size), value, lowest, False
    )  # fmt: skip


def seeded(
    name: str,
    instance: int,
    low: Any,
    high: Any,
    play: Callable[[Floats, int], float],
    lowest: float = 0.0,
) -> Task:
    """Return a task whose every evaluation is random; it is compared on 30 seeds no run sees."""

    def make(seed: int) -> Callable[[Floats], float]:
        rng = np.random.default_rng([seed, 21])
        return lambda x: play(x, int(rng.integers(2**31 - 1)))

    def mean(x: Floats) -> float:
        return float(np.mean([play(x, 2**31 + k) for k in range(30)]))

    return scaled(name, instance, low, high, make, mean, lowest, False)


def power(instance: int) -> Task:
    """Return the cost of four dams and six plants; every month has its own rain and demand."""
    plants, bound = np.column_stack([np.full(6, 0.6), np.linspace(0.5, 3, 6)]), np.full(24, 2.0)

    def play(x: Floats, seed: int) -> float:
        return float(dispatch(x, plants, np.random.default_rng(seed)))

    return seeded("power", instance, -bound, bound, play)


def simulator(instance: int) -> Task:
    """Return the misfit of the model with random births to the mean path of a truth."""
    rng = np.random.default_rng([instance, 79])
    truth = RATES + rng.uniform(-0.3, 0.3, 6)
    data = populations(truth, rng, False)

    def play(x: Floats, seed: int) -> float:
        return float(((populations(x, np.random.default_rng(seed), True) - data) ** 2).mean())

    lowest = 0.9 * float(np.mean([play(truth, k) for k in range(200)]))
    return seeded("simulator", instance, RATES - 1, RATES + 1, play, lowest)


def shaken(instance: int) -> Task:
    """Return the pushing of two objects by hands whose speeds are disturbed, as published."""
    low, high = np.tile(PUSH, (2, 1)).T

    def play(x: Floats, seed: int) -> float:
        return pushed(x, np.random.default_rng(seed).normal(0, 0.01, (2, 2)))

    return seeded("shaken14", instance, low, high, play)


SIMULATED = {"power": power, "simulator": simulator, "shaken14": shaken}
APPLICATIONS = (*MAKERS, *SIMULATED)


def application(name: str, instance: int = 1, noise: float = 0.0) -> Task:
    """Return an instance of one of them.

    Examples
    --------
    >>> task = application("sawtooth10", 2)
    >>> round(task.gap(np.full(10, 2 / 3)), 9), bool(task.gap(task.x0) > 5)
    (0.0, True)
    """
    return SIMULATED[name](instance) if name in SIMULATED else exact(name, instance, noise)
