"""SCGD where samples can be held fixed: differences on common samples, guarded along the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scgd.estimators import ForwardDifference, random_signs
from scgd.method import SCGD
from scgd.policies import RecentGains
from scgd.problem import Problem
from scgd.schedules import Linear, Relative, absolute
from scgd.steps import Learned
from scgd.strategies.asks import Asking, Outcome, Report, Steps, Wait
from scgd.strategies.budget import Budget, Stall
from scgd.strategies.comparison import compare
from scgd.strategies.fixed_method import seed_of
from scgd.strategies.length_scale import LengthScale
from scgd.typing import Floats

PER_COORDINATE, LEAST = 16, 300
"""Evaluations per coordinate from which sweeps on common samples beat pairs along random signs (on
shifted bowls of 6 to 1,000 coordinates), and evaluations that pay for a test of roughness."""
ROUGH = 2.0
"""How much larger the noise of a difference on common samples may be than that on independent ones
before samples count as no help; a factor two is what a ratio from a few samples can show."""
GUARDED, STAGES = 2500, 5
"""Evaluations from which stages are guarded, and how many: comparisons then cost less than a
tenth."""
GAIN = 2.0
"""Standard errors that make a gain significant."""


def pays(n_coords: int, budget: Budget) -> bool:
    """Tell whether so many evaluations are enough for it; fewer do better as independent noise."""
    return budget.total >= max(LEAST, PER_COORDINATE * n_coords)


def common_random_numbers(
    problem: Problem,
    budget: Budget,
    rng: np.random.Generator,
    length: LengthScale,
    error: float = 0.0,
) -> Asking:
    """Let SCGD run on common samples; return None at once where they do not help.

    Between stages the point is compared with the best one so far on common samples; where it is
    worse, SCGD goes back and on with shorter steps. Where f on one sample is so rough that common
    samples do not help (:func:`roughness`), nothing is run: the caller treats the noise as
    independent.

    Parameters
    ----------
    problem, budget, rng
        As for any strategy.
    length
        What :func:`~scgd.strategies.length_scale.length_scale` found.
    error
        The rounding error of f.
    """
    from scgd.descent import CoordinateDescent

    radius = finite_difference_radius(problem.n_coords, length, error)
    if radius > 1:  # f jumps over lengths at which it should be straight
        return None
    reach = length.length if problem.scale is None else 1.0
    rough = yield from roughness(problem, budget, rng, radius * length.length, reach)
    if rough > ROUGH:
        return None
    yield Report(message=f"Common random numbers; length scale {length.length:.3g} times scale.")
    best, stall, probabilities = problem.x0, Stall(budget), list[Floats]()
    while True:
        n_samples = comparison_samples(budget.total)
        n_stages = stall.parts(budget.left, STAGES if budget.total >= GUARDED else 1)
        n_evals = max(1, budget.left // n_stages - 2 * n_samples)
        method: Any = block_method(problem, budget, radius)
        engine = CoordinateDescent(
            method, problem, best, seed_of(rng),
            scale=length.length * problem.unit, budget=n_evals * n_stages,
        )  # fmt: skip
        engine.keep()
        for k in range(n_stages):
            stage = yield Steps(engine, n_evals)
            x = stage.x
            seen = yield from compare(x, best, n_samples)
            stalled = stall.note(seen.better(GAIN))
            last = k == n_stages - 1
            if seen.worse(1 if last else 3):  # stages that follow may make good what looks lost
                engine.go_back()
                rate: Any = absolute(method.learning_rate)
                shorter = Relative(replace(rate, scale=rate.scale / 3))
                method = replace(method, learning_rate=shorter)
                engine.replace_schedules(method)
            else:
                best = engine.keep()
            probabilities.append(stage.weights)
            values = seen.values if np.array_equal(best, x) else seen.others
            yield Report(x=best, values=values, relevance=mean_and_error(probabilities))
            if stalled:
                return Outcome(converged=True)
        while budget.left < budget.total // 50 + 1:  # less does not pay for another start
            yield Wait()


def roughness(
    problem: Problem, budget: Budget, rng: np.random.Generator, radius: float, reach: float = 1.0
) -> Asking:
    r"""Return how noisy differences on common samples are, in units of those on independent ones.

    .. math:: \frac{R}{r} \cdot \frac{\operatorname{sd}(f(x + r u, \xi) - f(x, \xi))}
              {\sqrt{\operatorname{var} f(x, \xi) + \operatorname{var} f(x + R u, \xi)}},

    the geometric mean over a few random signs u. A difference over R (``reach``, in units of the
    scale) tells as much of the slope as R / r differences over the radius r. Below 1 common samples
    help; where f on one sample jumps with x (a simulator whose random numbers get out of step)
    the ratio is large, and the larger the smaller r.
    """
    n, ratios = int(np.clip(budget.total // 200, 4, 8)), []
    for _ in range(5):
        move = reach * problem.unit * random_signs(problem.n_coords, rng)
        centre, _ = problem.centred(problem.x0, np.abs(move))
        step = min(1.0, radius / reach)
        points = problem.clipped(centre + np.outer([0.0, step, 1.0], move))
        values = yield np.broadcast_to(points, (n, *points.shape))
        values = values[np.isfinite(values).all(axis=1)]
        if len(values) > 2:
            base, near, far = values.T
            independent = np.sqrt(base.var(ddof=1) + far.var(ddof=1))
            ratios.append(float((near - base).std(ddof=1) / step / max(independent, 1e-300)))
    return float(np.exp(np.mean(np.log(np.maximum(ratios, 1e-3))))) if ratios else 0.0


def finite_difference_radius(n_coords: int, length: LengthScale, error: float) -> float:
    """Return the radius of differences in units of the length: small, above rounding and jumps."""
    rounding = 2 * np.sqrt(error * n_coords / length.bend) if length.bend > 0 else 0.0
    return max(1e-4, float(rounding), length.rough / length.length)


def block_method(problem: Problem, budget: Budget, radius: float) -> SCGD:
    """Return SCGD with blocks of 16 coordinates that share one base evaluation per sample.

    The policy sweeps once and then follows recent gradients; step lengths are learned. With many
    evaluations per coordinate rates fall quadratically.
    """
    power = 1 + float(np.clip(np.log10(budget.total / (40 * problem.n_coords)), 0, 1))
    return SCGD(
        name="blocks of coordinates",
        policy=RecentGains(),
        estimator=ForwardDifference(),
        step=Learned(),
        learning_rate=Relative(Linear(0.25, power=power)),
        radius=Relative(radius),
        block_size=min(16, problem.n_coords),
        replace=False,
    )


def comparison_samples(n_evals: int) -> int:
    """Return the samples of a comparison: 16 where that is not much of the budget."""
    return int(np.clip(n_evals // 25, 4, max(16, n_evals // 2000)))


def mean_and_error(probabilities: list[Floats]) -> tuple[Floats, Floats] | None:
    """Return mean and standard error of sampling probabilities; a policy forgets, they do not."""
    if not probabilities:
        return None
    mean, n = np.mean(probabilities, axis=0), len(probabilities)
    return mean, np.std(probabilities, axis=0, ddof=1) / np.sqrt(n) if n > 1 else mean * np.nan
