"""Carry out the experiments on linear models, through the compiled engine's own threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from scgd.estimators import DirectionEstimator
from scgd.policies import Musketeer
from scgd.typing import Array
from scgd_paper.linear import solve
from scgd_paper.linear.inputs import as_problem
from scgd_paper.linear.objective import objective
from scgd_paper.linear.problems import BlockData, block_data, optimum
from scgd_paper.linear_rows import LaterMethod, LinearProblem
from scgd_paper.rows import Job, Panel
from scgd_paper.table import Curve, Run, Shape

__all__ = ["cost", "execute", "problem_data", "shape"]

RUNS_PER_JOB = 40
THREADED = True
DIRECTION_COST = 12.0
"""Time of a step along a random direction, that of a single difference being one."""


def cost(job: Job) -> float:
    """Return the work of a job, in samples looked at."""
    problem, panel = job.panel.problem, job.panel
    per_step = float(problem.batch_size)
    if isinstance(job.method.estimator, DirectionEstimator):
        per_step *= DIRECTION_COST
    if job.method.name == "sgd":
        per_step /= 10  # one step for all coordinates
    return per_step * panel.n_passes * problem.n_coords * (problem.n_coords + 50) * len(job.runs)  # type: ignore[no-any-return]


def shape(panel: Panel, method: Any) -> Shape:
    """Return which rows a run has."""
    passes = np.arange(0.0, panel.n_passes + 1, panel.every)
    learns = isinstance(method.policy, Musketeer)
    return Shape(panel.measures, passes, panel.problem.n_coords if learns else 0)


@lru_cache(maxsize=4)
def column_sizes(row: LinearProblem) -> Array:
    """Return the standard deviations of the columns."""
    return np.asarray(problem_data(row)[0].X.std(axis=0))


@lru_cache(maxsize=4)
def problem_data(row: LinearProblem) -> tuple[BlockData, float, float]:
    """Return the data of a problem, the weight of its penalty and its minimum."""
    law, decay = ("published", row.decay) if row.published else ("paper", 2 * row.decay)
    data = block_data(
        row.model,
        row.n_samples,
        row.n_coords,
        decay,
        row.block_size,
        law,
        truth=row.truth,
    )
    l2 = row.penalty / row.n_samples
    if row.penalty == 1.0:
        return data, l2, data.f_star
    penalized = as_problem(data.X, data.y, loss=data.loss, l2=l2)
    return data, l2, float(objective(penalized, optimum(penalized)[None])[0])


def execute(job: Job) -> Iterator[Run]:
    """Return the runs of a method on a panel."""
    f_star, sizes = problem_data(job.panel.problem)[2], column_sizes(job.panel.problem)
    learns = isinstance(job.method.policy, Musketeer)
    for run, history, weights in solved(job):
        values = history["loss"] - f_star
        curve = Curve("gap", history["pass"], history["queries"], history["seconds"], values)
        yield Run(job.key(run), [curve], sizes, weights if learns else None)


def solved(job: Job) -> Iterator[tuple[int, dict[str, Array], Array]]:
    """Return history and weights of each run; a run that diverges ends at infinity."""
    if isinstance(job.method, LaterMethod):
        for run in job.runs:
            yield run, later(job, run), np.empty(0)
        return
    try:
        result = call(job, job.runs)
    except FloatingPointError:
        if len(job.runs) == 1:
            yield job.runs[0], diverged(job), np.full(job.panel.problem.n_coords, np.nan)
            return
        for run in job.runs:
            yield from solved(replace(job, runs=(run,)))
        return
    for i, run in enumerate(job.runs):
        history = {
            name: array[i] if array.ndim == 2 else array for name, array in result.history.items()
        }
        yield run, history, result.weights[i]


def later(job: Job, run: int) -> dict[str, Array]:
    """Return the history of a run of ``scgd.minimize``."""
    from scgd_paper.linear_extras import minimized

    data, l2, _ = problem_data(job.panel.problem)
    problem = as_problem(data.X, data.y, loss=data.loss, l2=l2)
    passes = shape(job.panel, job.method).passes
    return minimized(job, problem, data, passes, seed_of(job, run))


def call(job: Job, runs: tuple[int, ...]) -> Any:
    """Run the engine for some seeds."""
    row, method = job.panel.problem, job.method
    data, l2, _ = problem_data(row)
    return solve(
        data.X,
        data.y,
        loss="cross-entropy" if row.wrong_gradient else data.loss,
        record_loss=data.loss if row.wrong_gradient else None,
        l2=l2,
        policy=method.policy,
        estimator=method.estimator,
        learning_rate=method.learning_rate,
        radius=method.radius,
        importance=method.importance,
        shared_sample=not method.independent,
        batch_size=row.batch_size,
        n_passes=job.panel.n_passes,
        record_every=job.panel.every,
        seed=[seed_of(job, run) for run in runs],
        n_jobs=job.workers,
    )


def seed_of(job: Job, run: int) -> int:
    """Return the engine's seed of a run."""
    low, high = np.random.SeedSequence(job.entropy(run)).generate_state(2)
    return int(low) << 32 | int(high)


def diverged(job: Job) -> dict[str, Array]:
    """Return the history of a run that left the finite numbers."""
    passes = shape(job.panel, job.method).passes
    losses = np.full(len(passes), np.inf)
    losses[0] = problem_data(job.panel.problem)[0].f_start
    queries = 2.0 * passes * job.panel.problem.n_coords
    return {"pass": passes, "queries": queries, "seconds": np.zeros(len(passes)), "loss": losses}
