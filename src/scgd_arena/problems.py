r"""Test problems whose true value is known at every point.

A :class:`Task` hands out what an optimiser may see (a function, a start, perhaps a way to hold the
sample fixed) and keeps what only the judge may see, the true gap :math:`f(x) - f^\\star`. One
evaluation is the loss of one sample or one call of f.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.optimize import minimize as scipy_minimize

from scgd.compiling import njit
from scgd.linear.losses import softplus
from scgd.spaces import Space
from scgd.typing import Floats

__all__ = ["PROBLEMS", "Task", "build", "scaled"]


@dataclass(frozen=True)
class Task:
    """What an optimiser is given, and how it is judged.

    Attributes
    ----------
    name
        Row of the report.
    x0
        The start.
    sample
        Number of samples that can be held fixed, or None.
    make
        ``make(seed)`` returns the objective of one run, ``fun(x, rows)`` with ``sample``, else
        ``fun(x)``; independent noise comes from that seed.
    gap
        The true distance of f(x) from its minimum.
    bounds, scale
        Further arguments for methods that take them.
    domain
        Where peers look: (low, high), numbers or arrays; without one it is x0 +- .75.
    repeats
        Whether f gives the same value again; then the best point seen is a method's answer.
    lowest
        The value of f at its minimum, where f repeats.
    looks
        Whether the judge is cheap enough to follow a run.
    space
        The search space whose unit cube x lies in, for methods that know steps.
    """

    name: str
    x0: Floats
    sample: int | None
    make: Callable[[int], Callable[..., float]]
    gap: Callable[[Floats], float]
    bounds: Any = None
    scale: Any = None
    domain: tuple[Any, Any] | None = None
    repeats: bool = False
    lowest: float = 0.0
    looks: bool = True
    space: Space | None = None

    @property
    def box(self) -> tuple[Floats, Floats]:
        """Lower and upper corner of where peers look."""
        low, high = self.domain or (self.x0 - 0.75, self.x0 + 0.75)
        return np.broadcast_to(low, self.x0.shape) + 0.0, np.broadcast_to(high, self.x0.shape) + 0.0

    @property
    def width(self) -> float:
        """Mean length of that box's edges."""
        low, high = self.box
        return float(np.mean(high - low))


@njit(cache=True, fastmath=True)
def ridge_loss(x, row, features, targets, l2):  # type: ignore[no-untyped-def]
    """Return half the squared residual of one sample plus the ridge penalty."""
    z, norm = 0.0, 0.0
    for k in range(len(x)):
        z += features[row, k] * x[k]
        norm += x[k] * x[k]
    return 0.5 * (z - targets[row]) ** 2 + 0.5 * l2 * norm


@njit(cache=True, fastmath=True)
def logistic_loss(x, row, features, targets, l2):  # type: ignore[no-untyped-def]
    """Return the logistic loss of one sample plus the ridge penalty."""
    z, norm = 0.0, 0.0
    for k in range(len(x)):
        z += features[row, k] * x[k]
        norm += x[k] * x[k]
    return softplus(-targets[row] * z) + 0.5 * l2 * norm


def block_features(rng: np.random.RandomState, n: int, p: int, size: int, decay: float) -> Floats:
    """Return Gaussian features in blocks with standard deviation (1 + block)^-decay, shuffled.

    The legacy generator reproduces the paper's own data from its seed.
    """
    blocks = [rng.normal(0, (j + 1.0) ** -decay, (n, size)) for j in range(p // size)]
    return np.ascontiguousarray(np.hstack(blocks)[:, rng.permutation(p)])


def rotation(p: int, seed: int) -> Floats:
    """Return a random orthogonal matrix."""
    return np.linalg.qr(np.random.default_rng([seed, 3]).standard_normal((p, p)))[0]


@cache
def ridge(
    decay: float, seed: int = 0, n: int = 10_000, p: int = 250, rotated: bool = False
) -> Task:
    """Return the paper's ridge regression as a single-sample oracle.

    With ``rotated`` no coordinate stands out: the features are turned by a random rotation.
    """
    rng = np.random.RandomState(seed)
    features = block_features(rng, n, p, 10, decay)
    if rotated:
        features = np.ascontiguousarray(features @ rotation(p, seed))
    targets = features @ rng.uniform(-1, 1, p) + rng.normal(0, 0.01, n)
    l2 = 1.0 / n
    second, first = features.T @ features / n + l2 * np.eye(p), features.T @ targets / n
    best = np.linalg.solve(second, first)

    def gap(x: Floats) -> float:
        return 0.5 * float((x - best) @ second @ (x - best))

    name = f"ridge{decay:g}{'rotated' if rotated else ''}"
    return Task(name, np.zeros(p), n, single(ridge_loss, features, targets, l2), gap)


@cache
def logistic(decay: float, seed: int = 0, n: int = 10_000, p: int = 250, size: int = 5) -> Task:
    """Return the paper's logistic regression as a single-sample oracle."""
    rng = np.random.RandomState(seed)
    features = block_features(rng, n, p, size, decay)
    score = 1 / (1 + np.exp(-features @ rng.uniform(0, 1, p))) + rng.normal(0, 0.01, n)
    targets = np.where(score <= 0.5, -1.0, 1.0)
    return logistic_task(f"logistic{decay:g}", features, targets)


def logistic_task(name: str, features: Floats, targets: Floats) -> Task:
    """Return logistic regression on given data, one sample per evaluation."""
    n, p = features.shape
    l2 = 1.0 / n

    def loss(x: Floats) -> float:
        return float(np.mean(np.logaddexp(0.0, -targets * (features @ x))) + 0.5 * l2 * x @ x)

    def slope(x: Floats) -> Floats:
        z = targets * (features @ x)
        return -features.T @ (targets / (1 + np.exp(z))) / n + l2 * x  # type: ignore[no-any-return]

    tight = {"maxiter": 20_000, "maxfun": 30_000, "ftol": 1e-15, "gtol": 1e-10}
    best = scipy_minimize(loss, np.zeros(p), jac=slope, method="L-BFGS-B", options=tight).fun
    make = single(logistic_loss, features, targets, l2)
    return Task(name, np.zeros(p), n, make, lambda x: loss(np.asarray(x)) - best)


def single(loss: Any, features: Floats, targets: Floats, l2: float) -> Callable[[int], Any]:
    """Return the maker of a function of (x, rows) that reads one row."""

    def make(seed: int) -> Callable[..., float]:
        return lambda x, rows: float(loss(x, rows[0], features, targets, l2))

    return make


@njit(cache=True, fastmath=True)
def weighted_square(x, centre, weights):  # type: ignore[no-untyped-def]
    """Return half the weighted squared distance from the centre."""
    total = 0.0
    for k in range(len(x)):
        total += weights[k] * (x[k] - centre[k]) ** 2
    return 0.5 * total


@njit(cache=True)
def hidden_rosenbrock(x, where, faint):  # type: ignore[no-untyped-def]
    """Return the chained Rosenbrock function of some entries plus a faint square of all."""
    total = 0.0
    for i in range(len(where) - 1):
        a, b = x[where[i]], x[where[i + 1]]
        total += 100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2
    rest = 0.0
    for k in range(len(x)):
        rest += x[k] * x[k]
    for i in range(len(where)):
        rest -= x[where[i]] ** 2
    return total + 0.5 * faint * rest


def observed(value: Callable[[Floats], float], noise: float) -> Callable[[int], Any]:
    """Return the maker of a function with independent additive Gaussian noise."""

    def make(seed: int) -> Callable[..., float]:
        if noise == 0:
            return value
        rng = np.random.default_rng([seed, 77])
        return lambda x: value(x) + noise * rng.standard_normal()

    return make


@cache
def quadratic(p: int = 1000, active: int = 20, noise: float = 0.0, seed: int = 0) -> Task:
    """Return a sparse quadratic: a few curvatures between 1 and 100, the rest 1e-6."""
    rng = np.random.default_rng(seed)
    weights = np.full(p, 1e-6)
    weights[rng.permutation(p)[:active]] = np.logspace(0, 2, active)
    centre = rng.uniform(-1, 1, p)

    def value(x: Floats) -> float:
        return float(weighted_square(x, centre, weights))

    name = f"quad{'noisy' if noise else ''}{'' if p == 1000 else p}"
    return Task(name, np.zeros(p), None, observed(value, noise), value, repeats=not noise)


@cache
def rosenbrock(p: int = 1000, active: int = 20, noise: float = 0.0, seed: int = 0) -> Task:
    """Return a chained Rosenbrock function hidden in many faint coordinates."""
    where = np.random.default_rng(seed).permutation(p)[:active]

    def value(x: Floats) -> float:
        return float(hidden_rosenbrock(x, where, 1e-6))

    name = f"rosen{'noisy' if noise else ''}{'' if p == 1000 else p}"
    return Task(name, np.zeros(p), None, observed(value, noise), value, repeats=not noise)


@cache
def hyperparameters(p: int = 50, active: int = 8, noise: float = 0.05, seed: int = 0) -> Task:
    """Return a saturating score in which a few of many settings matter and mildly interact."""
    rng = np.random.default_rng(seed)
    where = rng.permutation(p)[:active]
    weights = np.full(p, 1e-3)
    weights[where] = np.logspace(-1, 1, active)
    centre = rng.uniform(-1, 1, p)
    mixed = rng.standard_normal((active, active)) * 0.1

    def value(x: Floats) -> float:
        away = x - centre
        part = np.sqrt(weights[where]) * away[where]
        bent = part + mixed @ part
        rest = float(weights @ away**2) - float(part @ part)
        return float(1.0 - np.exp(-0.5 * (bent @ bent + rest)))

    return Task("hp", np.zeros(p), None, observed(value, noise), value)


@cache
def dense(p: int = 200, condition: float = 1e3, noise: float = 0.0, seed: int = 0) -> Task:
    """Return a rotated quadratic: all coordinates matter, none stands out."""
    turn = rotation(p, seed)
    bends = turn.T @ (np.logspace(0, -np.log10(condition), p)[:, None] * turn)
    centre = np.random.default_rng(seed).uniform(-1, 1, p)

    def value(x: Floats) -> float:
        return 0.5 * float((x - centre) @ bends @ (x - centre))

    name = f"dense{'noisy' if noise else ''}"
    return Task(name, np.zeros(p), None, observed(value, noise), value, repeats=not noise)


@cache
def rastrigin(p: int = 100, seed: int = 0) -> Task:
    """Return Rastrigin's function, whose local minima lie on a grid."""
    centre = np.random.default_rng(seed).uniform(-2, 2, p)

    def value(x: Floats) -> float:
        away = x - centre
        return float(away @ away + 10 * np.sum(1 - np.cos(2 * np.pi * away)))

    return Task("rastrigin", np.zeros(p), None, observed(value, 0.0), value, repeats=True)


def scaled(task: Task, f_scale: float = 1.0, f_shift: float = 0.0, x_scale: float = 1.0) -> Task:
    """Return the same problem in other units: x in units of ``x_scale``, f scaled and shifted."""

    def make(seed: int) -> Callable[..., float]:
        inner = task.make(seed)
        return lambda x, *rest: f_scale * inner(x / x_scale, *rest) + f_shift

    def gap(x: Floats) -> float:
        return task.gap(x / x_scale)

    name = f"{task.name} f*{f_scale:g}+{f_shift:g} x*{x_scale:g}"
    return replace(
        task, name=name, x0=task.x0 * x_scale, make=make, gap=gap,
        lowest=f_scale * task.lowest + f_shift,
    )  # fmt: skip


PROBLEMS: dict[str, Callable[[], Task]] = {
    **{f"ridge{a}": partial(ridge, a) for a in (1, 2, 5, 10)},
    **{f"logistic{a}": partial(logistic, a) for a in (1, 2, 5, 10)},
    "quad": quadratic,
    "quad10000": lambda: quadratic(10_000),
    "rosen": rosenbrock,
    "rosen10000": lambda: rosenbrock(10_000),
    "quadnoisy": lambda: quadratic(noise=0.1),
    "rosennoisy": lambda: rosenbrock(noise=0.1),
    "hp": hyperparameters,
    "ridge5rotated": lambda: ridge(5, rotated=True),
    "dense": dense,
    "densenoisy": lambda: dense(noise=0.1),
    "rastrigin": rastrigin,
}


def build(name: str) -> Task:
    """Return a problem by name."""
    if name not in PROBLEMS:
        raise ValueError(f"problem must be one of {sorted(PROBLEMS)}, got {name!r}")
    return PROBLEMS[name]()
