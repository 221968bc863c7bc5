"""Run policies on quadratics and measure what the theorems speak of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from scgd.compiling import njit
from scgd.descent import CoordinateDescent
from scgd.estimators import ForwardDifference
from scgd.method import SCGD
from scgd.steps import SGD
from scgd.typing import Floats, Ints
from scgd_paper import theory
from scgd_paper.rows import Job, Panel
from scgd_paper.table import Curve, Run, Shape
from scgd_paper.theory_oracle import mean_steps, oracle_norms
from scgd_paper.theory_rows import TheoryProblem
from scgd_paper.walking import mover, steps_of

__all__ = ["cost", "execute", "shape"]

RUNS_PER_JOB = 1
N_NOISE = 4096
"""Noise vectors that are sampled from; their mean is taken off, so that f is known exactly."""
N_POINTS = 150
SLOW_FACTOR = 100.0
"""How much longer a step takes that is not in the compiled loop."""


@njit(cache=True)
def noisy_quadratic(x, rows, curvatures, noise):  # type: ignore[no-untyped-def]
    """Return f(x, xi)."""
    total, xi = 0.0, noise[rows[0]]
    for k in range(len(x)):
        total += 0.5 * curvatures[k] * x[k] * x[k] + xi[k] * x[k]
    return total


def cost(job: Job) -> float:
    """Return the work of a job, in compiled steps."""
    steps = len(job.runs) * job.panel.n_passes * job.panel.problem.n_coords
    if job.method.policy is None:
        return 1.0
    slow = job.method.policy.needs_gradient or job.method.policy.dense
    return float(steps * (SLOW_FACTOR if slow else 1.0))


def shape(panel: Panel, method: Any) -> Shape:
    """Return which rows a run has."""
    if panel.measures == ("step",):
        return Shape(panel.measures, np.arange(1, panel.problem.n_coords + 1))
    passes = np.unique(np.geomspace(1, panel.n_passes, N_POINTS).round().astype(np.int64))
    return Shape(panel.measures, np.concatenate([[0], passes]))


def execute(job: Job) -> Iterator[Run]:
    """Return the curves of a method, or the bound."""
    problem = job.panel.problem
    passes = shape(job.panel, job.method).passes
    queries = 2.0 * passes * problem.n_coords
    for run in job.runs:
        started = time.perf_counter()
        values = values_of(job, run, passes)
        spent = (time.perf_counter() - started) * passes / passes[-1]
        found = {job.panel.measures[0]: values}
        if "slope" in job.panel.measures:
            found["slope"] = slopes(passes, values)
        curves = [Curve(name, passes, queries, spent, found[name]) for name in job.panel.measures]
        yield Run(job.key(run), curves)


def values_of(job: Job, run: int, passes: Ints) -> Floats:
    """Return what a run brings: a bound, mean steps, or what is measured on the way."""
    method, problem = job.method, job.panel.problem
    if method.policy is None:
        return bound(job, passes)
    if job.panel.measures == ("step",):
        rng = np.random.default_rng(job.entropy(run))
        return mean_steps(problem, law_of(job, run), method.importance, rng)
    if method.oracle:
        rng = np.random.default_rng(job.entropy(run))
        return oracle_norms(problem, method.policy, passes, noise_of(problem), rng)
    if job.panel.name == "regret-bound":
        return averaged(job, run, passes)
    return measure(job, run, passes)


def slopes(passes: Ints, gaps: Floats) -> Floats:
    """Return the slope of log gap against log t, over the last tenfold of passes or from pass 1."""
    since = np.maximum(np.searchsorted(passes, passes / 10, side="right") - 1, 1)
    here = np.maximum(np.arange(len(passes)), 2)  # there is nothing to compare with before pass 2
    return np.asarray(np.log(gaps[here] / gaps[since]) / np.log(passes[here] / passes[since]))


def noise_of(problem: TheoryProblem) -> Floats:
    """Return the noise vectors, the same for every run."""
    rng = np.random.default_rng(0)
    sizes = problem.noise * np.arange(1, problem.n_coords + 1) ** -problem.noise_decay
    noise = sizes * rng.standard_normal((N_NOISE, problem.n_coords))
    return np.ascontiguousarray(noise - noise.mean(axis=0))


def started(job: Job, run: int) -> tuple[CoordinateDescent, Callable[[int], None]]:
    """Return an optimizer at the start, and a function that takes so many of its steps."""
    problem = job.panel.problem
    method = SCGD(
        job.method.policy, ForwardDifference(), SGD(), problem.learning_rate, problem.h,
        importance=job.method.importance, name=job.method.name,
    )  # fmt: skip
    steps = steps_of(
        method, np.full(problem.n_coords, problem.start), N_NOISE,
        np.random.SeedSequence(job.entropy(run)),
    )  # fmt: skip
    return steps, mover(steps, noisy_quadratic, (problem.curvatures, noise_of(problem)))


def measure(job: Job, run: int, passes: Ints) -> Floats:
    """Run a policy and measure at the given passes."""
    problem = job.panel.problem
    steps, advance = started(job, run)
    look = METERS[job.panel.measures[0]]
    per_pass = 1 if steps.policy.dense else problem.n_coords
    values, seen = np.empty(len(passes)), 0.0
    for i, n_passes in enumerate(passes.tolist()):
        advance(n_passes * per_pass - steps.t)
        value = look(steps, problem.curvatures)
        if job.panel.measures[0] == "term":
            # The bound speaks of the mean over steps, here over the times looked at.
            gone = n_passes - (passes[i - 1] if i else 0)
            seen += value * max(gone, 1)
            value = seen / max(n_passes, 1) if i else value
        values[i] = value
    return values


def averaged(job: Job, run: int, passes: Ints) -> Floats:
    """Return the gap of the average iterate, or the regret bound on it, at the given passes.

    Every step is looked at: the bound is about the average over all of them.
    """
    problem, (steps, advance) = job.panel.problem, started(job, run)
    variance = noise_of(problem).var(axis=0) if job.method.draws == "bound" else 0.0
    rate, distance = problem.learning_rate.scale, float(np.linalg.norm(steps.point.x))
    sums, values = np.zeros(problem.n_coords), []
    terms: list[float] = []
    for n_steps in np.maximum(passes * problem.n_coords, 1).tolist():
        while len(terms) < n_steps:
            sums += steps.point.x
            gradient = problem.curvatures * steps.point.x
            terms.append(float(theory.regret_terms(gradient, steps.sampler.weights(), variance)))
            advance(1)
        if job.method.draws:
            values.append(theory.regret_bound(np.array(terms), rate, distance))
        else:
            values.append(float(problem.curvatures @ (sums / n_steps) ** 2) / 2)
    return np.array(values)


def law_of(job: Job, run: int) -> Floats:
    """Return the law of a policy's coordinate: learned, or by the gradient at the start."""
    problem, policy = job.panel.problem, job.method.policy
    if job.method.oracle:
        return np.asarray(policy.weights_for(problem.curvatures * problem.start))
    if policy.dense:
        return np.ones(problem.n_coords)
    steps, advance = started(job, run)
    advance(problem.learned * problem.n_coords)
    return np.asarray(steps.sampler.weights())


def gap(steps: CoordinateDescent, curvatures: Floats) -> float:
    """Return f - f*."""
    return float(np.sum(curvatures * steps.point.x**2) / 2)


def gradient_norm(steps: CoordinateDescent, curvatures: Floats) -> float:
    """Return the Euclidean norm of the gradient."""
    return float(np.linalg.norm(curvatures * steps.point.x))


def distance(steps: CoordinateDescent, curvatures: Floats) -> float:
    """Return how far the weights are from uniform."""
    return float(np.max(steps.problem.n_coords * steps.sampler.weights()) - 1)


def term(steps: CoordinateDescent, curvatures: Floats) -> float:
    """Return the regret term at this point under the weights in force."""
    return float(theory.regret_terms(curvatures * steps.point.x, steps.sampler.weights()))


def deviation(steps: CoordinateDescent, curvatures: Floats) -> float:
    """Return the root mean square of the rescaled iterate."""
    rate = steps.method.learning_rate(np.array([steps.t // steps.problem.n_coords]))[0]
    return float(np.sqrt(np.mean(steps.point.x**2) / rate))


METERS = {
    "gap": gap,
    "gradient-norm": gradient_norm,
    "distance": distance,
    "term": term,
    "deviation": deviation,
}


def bound(job: Job, passes: Ints) -> Floats:
    """Return the bound of Theorem 4, the recursion it solves or what that tends to."""
    problem = job.panel.problem
    curvatures = problem.curvatures
    # Per coordinate E g^2 <= 2 (a x)^2 + (a h)^2 / 2 + noise^2 with h^2 <= gamma; bias L h / 2. A
    # panel with a radius of its own has one so short that g = a x + noise.
    biased, largest = problem.radius is None, float(curvatures.max())
    constants = theory.Constants(
        smoothness=largest,
        convexity=float(curvatures.min()),
        growth=2 * largest if biased else largest,
        noise=problem.noise**2 + (largest**2 * problem.learning_rate.scale / 2 if biased else 0.0),
        bias=theory.bias_constant(largest, problem.n_coords) if biased else 0.0,
    )
    start = float(np.sum(curvatures) * problem.start**2 / 2)
    rate, beta = problem.learning_rate, 1.0 / problem.n_coords
    common = {"gamma": rate.scale, "alpha": rate.power, "beta": beta, "gap": start}
    steps = passes * problem.n_coords
    if job.method.name == "recursion":
        return np.asarray(theory.gap_recursion(int(steps[-1]), constants, **common)[steps])
    if job.method.name == "order":
        order = theory.gap_order(constants, rate.scale, beta, rate.power)
        return np.asarray(order * np.maximum(steps, 1.0) ** -rate.power)
    values = theory.gap_bound(np.maximum(steps, 1), constants, **common)
    values[0] = max(values[0], start)
    return values
