"""Run policies on quadratics and measure what the theorems speak of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from scgd import theory
from scgd.compiling import njit
from scgd.estimators import ForwardDifference
from scgd.experiments.rows import Job, Panel
from scgd.experiments.table import Curve, Run, Shape
from scgd.experiments.theory_rows import TheoryProblem
from scgd.explore import choose
from scgd.optimizer import Optimizer
from scgd.recipes import Recipe
from scgd.searches import Stepping, Stop
from scgd.steps import SGD
from scgd.typing import Floats, Ints

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
    passes = np.unique(np.geomspace(1, panel.n_passes, N_POINTS).round().astype(np.int64))
    return Shape(panel.measures, np.concatenate([[0], passes]))


def execute(job: Job) -> Iterator[Run]:
    """Return the curves of a method, or the bound."""
    problem = job.panel.problem
    passes = shape(job.panel, job.method).passes
    queries = 2.0 * passes * problem.n_coords
    for run in job.runs:
        started = time.perf_counter()
        if job.method.policy is None:
            values = bound(job, passes)
        else:
            values = measure(job, run, passes)
        spent = (time.perf_counter() - started) * passes / passes[-1]
        found = {job.panel.measures[0]: values}
        if "slope" in job.panel.measures:
            found["slope"] = slopes(passes, values)
        curves = [Curve(name, passes, queries, spent, found[name]) for name in job.panel.measures]
        yield Run(job.key(run), curves)


def slopes(passes: Ints, gaps: Floats) -> Floats:
    """Return the slope of log gap against log t, over the last tenfold of passes or from pass 1."""
    since = np.maximum(np.searchsorted(passes, passes / 10, side="right") - 1, 1)
    here = np.maximum(np.arange(len(passes)), 2)  # there is nothing to compare with before pass 2
    return np.asarray(np.log(gaps[here] / gaps[since]) / np.log(passes[here] / passes[since]))


def curvatures_of(problem: TheoryProblem) -> Floats:
    """Return k^-decay."""
    return np.arange(1, problem.n_coords + 1) ** -problem.decay


def noise_of(problem: TheoryProblem) -> Floats:
    """Return the noise vectors, the same for every run."""
    rng = np.random.default_rng(0)
    sizes = problem.noise * np.arange(1, problem.n_coords + 1) ** -problem.noise_decay
    noise = sizes * rng.standard_normal((N_NOISE, problem.n_coords))
    return np.ascontiguousarray(noise - noise.mean(axis=0))


def measure(job: Job, run: int, passes: Ints) -> Floats:
    """Run a policy and measure at the given passes."""
    problem = job.panel.problem
    recipe = Recipe(
        job.method.name, job.method.policy, ForwardDifference(), SGD(), problem.learning_rate,
        problem.h, relative_rate=False, relative_radius=False, importance=job.method.importance,
    )  # fmt: skip
    opt = Optimizer(
        np.full(problem.n_coords, problem.start), recipe, sample=N_NOISE,
        seed=np.random.SeedSequence(job.entropy(run)),
    )  # fmt: skip
    curvatures, walk = curvatures_of(problem), opt.run.plan.active
    assert isinstance(walk, Stepping)
    advance = mover(opt, walk, (curvatures, noise_of(problem)))
    look = METERS[job.panel.measures[0]]
    per_pass = 1 if walk.policy.dense else problem.n_coords
    values, seen = np.empty(len(passes)), 0.0
    for i, n_passes in enumerate(passes.tolist()):
        advance(n_passes * per_pass - walk.t)
        value = look(walk, curvatures)
        if job.panel.measures[0] == "term":
            # The bound speaks of the mean over steps, here over the times looked at.
            gone = n_passes - (passes[i - 1] if i else 0)
            seen += value * max(gone, 1)
            value = seen / max(n_passes, 1) if i else value
        values[i] = value
    return values


def mover(opt: Optimizer, walk: Stepping, args: tuple[Any, ...]) -> Callable[[int], None]:
    """Return a function that takes so many steps, by the compiled loop where there is one."""
    body = choose(walk, noisy_quadratic, args, opt.run.ledger)

    def advance(n_steps: int) -> None:
        if body is not None:
            go = partial(body.run, n_steps * walk.step_cost, Stop(), by_phase=False)
            opt.run.run_body(lambda _: go())
            return
        target = walk.t + n_steps
        while walk.t < target:
            for trial in opt.ask():
                opt.tell(trial.id, noisy_quadratic(trial.x, *trial.arguments, *args))

    return advance


def gap(walk: Stepping, curvatures: Floats) -> float:
    """Return f - f*."""
    return float(np.sum(curvatures * walk.point.x**2) / 2)


def gradient_norm(walk: Stepping, curvatures: Floats) -> float:
    """Return the Euclidean norm of the gradient."""
    return float(np.linalg.norm(curvatures * walk.point.x))


def distance(walk: Stepping, curvatures: Floats) -> float:
    """Return how far the weights are from uniform."""
    return float(np.max(len(curvatures) * walk.weights) - 1)


def term(walk: Stepping, curvatures: Floats) -> float:
    """Return the regret term at this point under the weights in force."""
    return float(theory.regret_terms(curvatures * walk.point.x, walk.weights))


def deviation(walk: Stepping, curvatures: Floats) -> float:
    """Return the root mean square of the rescaled iterate."""
    rate = np.asarray(walk.recipe.learning_rate(np.array([walk.t // len(curvatures)])))[0]
    return float(np.sqrt(np.mean(walk.point.x**2) / rate))


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
    curvatures = curvatures_of(problem)
    # Per coordinate E g^2 <= 2 (a x)^2 + (a h)^2 / 2 + noise^2 with h^2 <= gamma; bias L h / 2.
    constants = theory.Constants(
        smoothness=float(curvatures.max()),
        convexity=float(curvatures.min()),
        growth=2 * float(curvatures.max()),
        noise=problem.noise**2 + float(curvatures.max()) ** 2 * problem.learning_rate.scale / 2,
        bias=theory.bias_constant(float(curvatures.max()), problem.n_coords),
    )
    start = float(np.sum(curvatures) * problem.start**2 / 2)
    rate, beta = problem.learning_rate, 1.0 / problem.n_coords
    common = {"gamma": rate.scale, "alpha": rate.power, "beta": beta, "gap": start}
    steps = passes * problem.n_coords
    if job.method.name == "recursion":
        return theory.gap_recursion(int(steps[-1]), constants, **common)[steps]
    if job.method.name == "one-over-t":
        return theory.gap_order(constants, rate.scale, beta) / np.maximum(steps, 1)
    values = theory.gap_bound(np.maximum(steps, 1), constants, **common)
    values[0] = max(values[0], start)
    return values
