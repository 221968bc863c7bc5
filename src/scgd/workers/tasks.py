"""What travels to a worker: a job per run, what a step has in common, a few numbers per task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from scgd.estimators import BASE, Probes
from scgd.problem import Sampling
from scgd.typing import Floats, Ints

__all__ = ["Call", "Job", "Step", "Task", "perform", "tasks_of"]

Fun = Callable[..., Any]


@dataclass(frozen=True)
class Job:
    """What all evaluations of a run have in common."""

    fun: Fun
    jac: Fun | None
    args: tuple[Any, ...]
    sampling: Sampling


@dataclass(frozen=True)
class Step:
    """What all evaluations of a step have in common.

    ``seed`` is the (step, purpose) from which the worker makes xi; ``rows`` the row numbers.
    """

    theta: Floats
    support: Ints
    joint: bool
    partials: bool
    rows: Ints | None
    seed: tuple[int, int] | None

    @property
    def nbytes(self) -> int:
        """The size of the arrays."""
        rows = 0 if self.rows is None else self.rows.nbytes
        return self.theta.nbytes + self.support.nbytes + rows


class Task(NamedTuple):
    """One evaluation: its number in the run, the coordinate to set, and what to."""

    id: int
    coord: int
    entry: Any


def tasks_of(probes: Probes) -> tuple[Step, list[Task]]:
    """Return the common part and the tasks of a step; theta is copied because it moves on."""
    seed = None if probes.draw is None else (probes.draw.step, probes.draw.purpose)
    partials = probes.kind == "partials"
    step = Step(probes.theta.copy(), probes.support, probes.joint, partials, probes.rows, seed)
    entries = probes.entries if probes.joint else probes.entries.tolist()
    ids, coords = probes.ids.tolist(), probes.coords.tolist()
    return step, [Task(*parts) for parts in zip(ids, coords, entries, strict=True)]


def perform(job: Job, step: Step, coord: int, entry: Any) -> Any:
    """Make one evaluation."""
    extra: tuple[Any, ...] = ()
    if step.rows is not None:
        extra = (step.rows,)
    elif step.seed is not None:
        extra = (job.sampling.xi(*step.seed),)
    x = step.theta.copy()
    if step.joint:
        x[step.support] = entry
    elif coord != BASE:
        x[coord] = entry
    x.flags.writeable = False
    if step.partials:
        assert job.jac is not None
        return job.jac(x, step.support, *extra, *job.args)
    return job.fun(x, *extra, *job.args)


@dataclass(frozen=True)
class Call:
    """A task with all it needs, for engines that keep nothing between tasks."""

    job: Job
    step: Step
    task: Task

    def __call__(self) -> Any:
        """Make the evaluation."""
        return perform(self.job, self.step, self.task.coord, self.task.entry)


def make(call: Call) -> Any:
    """Make the evaluation of a call (a module-level function, so that any engine can ship it)."""
    return call()


installed: list[Job] = []
"""The job of this worker process, where the engine is able to install it once."""


def install(job: Job) -> None:
    """Keep the job in this worker process."""
    installed[:] = [job]


def perform_installed(step: Step, task: Task) -> Any:
    """Make one evaluation of the installed job."""
    return perform(installed[0], step, task.coord, task.entry)
