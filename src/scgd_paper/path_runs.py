"""Carry out the two-dimensional illustration; :mod:`.path_film` draws it moving."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from scgd.estimators import FirstOrder
from scgd.method import SCGD
from scgd.schedules import InverseTime
from scgd.steps import SGD
from scgd.typing import Floats
from scgd_paper.files import write_whole
from scgd_paper.path_film import film
from scgd_paper.rows import Experiment, Job, Panel
from scgd_paper.table import Curve, Run, Shape, read
from scgd_paper.walking import answer, steps_of

__all__ = ["cost", "execute", "illustrate", "shape"]

RUNS_PER_JOB = 20


def cost(job: Job) -> float:
    """Return the work of a job."""
    return float(len(job.runs))


def shape(panel: Panel, method: Any) -> Shape:
    """Return which rows a run has."""
    per_pass = steps_per_pass(method)
    passes = np.arange(panel.n_passes * per_pass + 1) / per_pass
    return Shape(panel.measures, passes, 2 if method.name == "musketeer" else 0)


def steps_per_pass(method: Any) -> int:
    """Return how many steps move both coordinates."""
    return 1 if method.policy.dense else 2


def execute(job: Job) -> Iterator[Run]:
    """Return the paths of a method."""
    for run in job.runs:
        started = time.perf_counter()
        path, weights = walk(job, run)
        spent = np.linspace(0, time.perf_counter() - started, len(path))
        steps = np.arange(float(len(path)))
        passes = steps / steps_per_pass(job.method)
        values = (path[:, 0], path[:, 1], job.panel.problem.value(*path.T))
        curves = [
            Curve(measure, passes, steps, spent, value)
            for measure, value in zip(job.panel.measures, values, strict=True)
        ]
        learned = None if job.method.name != "musketeer" else weights
        yield Run(job.key(run), curves, np.array(job.panel.problem.curvatures), learned)


def walk(job: Job, run: int) -> tuple[Floats, Floats]:
    """Return the iterates and the weights learned."""
    problem, policy = job.panel.problem, job.method.policy
    rate = InverseTime(problem.scale, problem.offset, per="pass")
    recipe = SCGD(policy, FirstOrder(), SGD(), rate, name=job.method.name)
    seed = np.random.SeedSequence(job.entropy(run))
    steps = steps_of(recipe, problem.start, lambda rng: rng.normal(size=2), seed)
    path = [steps.point.x.copy()]
    while len(path) <= job.panel.n_passes * steps_per_pass(job.method):
        before = steps.t
        answer(steps, lambda x, xi: np.nan, lambda x, k, xi: problem.gradient(x, xi)[k])
        if steps.t > before:
            path.append(steps.point.x.copy())
    return np.array(path), steps.sampler.weights()


def illustrate(experiment: Experiment, panels: Sequence[Panel], options: Any) -> None:
    """Write an animated GIF per panel, where Pillow is installed."""
    if find_spec("PIL") is None:
        return
    table = read(options.out / f"{experiment.id}.csv")
    for panel in panels:
        rows = table[(table["panel"] == panel.name) & (table["run"] == 0)]
        paths = {}
        for method, part in rows.groupby("method", sort=False, observed=True):
            wide = part.pivot_table(index="pass", columns="measure", values="value")
            paths[str(method)] = (wide.index.to_numpy(), wide[["x", "y"]].to_numpy())
        write_whole(options.out / f"{experiment.id}-{panel.name}.gif", film(panel, paths))
