"""The functions of BBOB by instance: COCO's suites, and ioh's in any dimension.

Both packages define the same functions; COCO stops at its own dimensions, ioh does not. A start is
drawn in [-4, 4], as COCO advises; peers are told the domain [-5, 5], where the minimum lies.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from hashlib import blake2b
from math import sqrt
from typing import Any

import numpy as np

from scgd.typing import Floats
from scgd_arena.problems import Task, observed

__all__ = ["coco", "crumpled", "ioh"]

DOMAIN = (-5.0, 5.0)
SKIPPED = 20_000
"""Noise of COCO that a run leaves out before it begins, at most."""
CALLS = 200
"""Calls after which the noise-free value must have shown; one in five is noisy at most."""


def coco(suite: str, function: int, dimension: int, instance: int = 1) -> Task:
    """Return a function of COCO: suite ``bbob``, ``bbob-largescale`` or ``bbob-noisy``.

    COCO gives every function it makes the same sequence of noise, so every run makes its own and
    begins that sequence somewhere else: else five instances would be five times the same luck.
    """
    noisy = suite == "bbob-noisy"
    x0 = start(function, dimension, instance)

    def make(seed: int) -> Callable[..., float]:
        function_of_run = problem(suite, function, dimension, instance)
        skipped = np.random.default_rng([seed, instance]).integers(SKIPPED) if noisy else 0
        for _ in range(skipped):
            function_of_run(x0)
        return lambda x: float(function_of_run(x))

    judge = problem(suite, cauchy(function) if noisy else function, dimension, instance)
    lowest = settled(judge, minimiser(judge), noisy)

    def gap(x: Floats) -> float:
        return settled(judge, np.asarray(x, np.float64), noisy) - lowest

    name = f"{suite}-f{function}-d{dimension}"
    return Task(
        name, x0, None, make, gap, domain=DOMAIN, repeats=not noisy, lowest=lowest
    )  # fmt: skip


def problem(suite: str, function: int, dimension: int, instance: int) -> Any:
    """Return COCO's problem; it keeps its suite alive."""
    import cocoex

    options = f"function_indices:{function} dimensions:{dimension}"
    found = cocoex.Suite(suite, f"instances: {instance}", options)
    if not len(found):
        raise ValueError(f"{suite} has no function {function} in dimension {dimension}")
    return found[0]


def minimiser(problem: Any) -> Floats:
    """Return where COCO's problem has its minimum; COCO writes it to a file where it stands."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        problem._best_parameter("print")
        return np.loadtxt("._bbob_problem_best_parameter.txt", ndmin=1)


def cauchy(function: int) -> int:
    """Return the sibling with Cauchy noise of a noisy function: same function, rare noise.

    Functions 3k-2, 3k-1 and 3k have Gaussian, uniform and Cauchy noise.
    """
    return function + -function % 3


def settled(problem: Any, x: Floats, noisy: bool) -> float:
    """Return the value; of a noisy problem the one that comes twice, which has no noise in it.

    Cauchy noise adds a constant to all values and more to one in five, so its true gap is the
    difference of two such values. COCO does not tell noise-free values itself.
    """
    if not noisy:
        return float(problem(x))
    seen: set[float] = set()
    for _ in range(CALLS):
        value = float(problem(x))
        if value in seen:
            return value
        seen.add(value)
    raise ValueError(f"{problem.id} gave {CALLS} different values at one point")


def start(function: int, dimension: int, instance: int) -> Floats:
    """Return the start of a run."""
    return np.random.default_rng([instance, function, dimension]).uniform(-4, 4, dimension)


def crumpled(fun: Callable[[Floats], float], size: float) -> Callable[[Floats], float]:
    """Return a function with jitter of a standard deviation that depends on x alone.

    Examples
    --------
    >>> fun = crumpled(lambda x: 1.0, 1e-3)
    >>> values = [fun(np.array([k / 7])) for k in range(1000)]
    >>> fun(np.ones(2)) == fun(np.ones(2)), bool(0.9e-3 < np.std(values) < 1.1e-3)
    (True, True)
    """

    def jittery(x: Floats) -> float:
        digest = blake2b(np.ascontiguousarray(x, np.float64).tobytes(), digest_size=8).digest()
        uniform = int.from_bytes(digest, "little") / 2**64 - 0.5
        return float(fun(x)) + size * sqrt(12) * uniform

    return jittery


def ioh(
    function: int, dimension: int, instance: int = 1, noise: float = 0.0, grain: float = 0.0
) -> Task:
    """Return ioh's BBOB function, with additive noise in units of the start's gap if wanted.

    ``grain`` is such noise that repeats itself: what a solver's tolerance leaves in a simulator.
    """
    import ioh as package

    made = package.get_problem(
        function,
        instance=instance,
        dimension=dimension,
        problem_class=package.ProblemClass.BBOB,
    )
    lowest = float(made.optimum.y)
    x0 = start(function, dimension, instance)

    def gap(x: Floats) -> float:
        return float(made(np.asarray(x, np.float64))) - lowest

    name = f"ioh-f{function}-d{dimension}" + (f"-s{noise:g}" if noise else "")
    name += f"-g{grain:g}" if grain else ""
    make = observed(crumpled(made, grain * gap(x0)) if grain else made, noise * gap(x0))
    return Task(
        name, x0, None, make, gap, domain=DOMAIN, repeats=noise == 0, lowest=lowest
    )  # fmt: skip
