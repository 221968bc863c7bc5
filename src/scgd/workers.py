"""One way to evaluate the probes of a step, whoever does the work.

``workers`` is 1 (this process), a number of local processes, a ``concurrent.futures.Executor`` or a
map-like callable. Workers own no randomness: a task carries the point, the rows or the seed of its
sample, so results do not depend on who computes them, and a task that is done twice gives the same
number twice.
"""

from __future__ import annotations

import multiprocessing.pool
import os
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np

from scgd.estimators import BASE, Probes
from scgd.typing import Floats

__all__ = ["Evaluator", "evaluator"]

Fun = Callable[..., Any]
MAX_RESTARTS = 20


class Evaluator:
    """Evaluate probes in this process, poking the optimizer's own x and putting it back.

    Parameters
    ----------
    fun, jac, args
        The user's functions and their extra arguments.
    vectorized
        Whether ``fun`` takes a matrix of points and returns their values.
    """

    def __init__(
        self, fun: Fun, jac: Fun | None, args: tuple[Any, ...], vectorized: bool = False
    ) -> None:
        self.fun = fun
        self.jac = jac
        self.args = args
        self.vectorized = vectorized

    def close(self) -> None:
        """Release what was started."""

    def evaluate(self, probes: Probes, theta: Floats) -> list[Any]:
        """Return the values of all probes; ``theta`` is restored whatever happens."""
        extra = sample_of(probes) + self.args
        if probes.kind == "partials":
            assert self.jac is not None
            return [self.jac(probes.theta, probes.support, *extra)]
        if self.vectorized:
            return check_batch(self.fun(probes.points(), *extra), len(probes))
        if probes.joint:
            return self._evaluate_joint(probes, theta, extra)
        return [self._evaluate_one(probes, j, theta, extra) for j in range(len(probes))]

    def _evaluate_one(self, probes: Probes, j: int, theta: Floats, extra: tuple[Any, ...]) -> Any:
        k = probes.coords[j]
        if k == BASE:
            return self.fun(probes.theta, *extra)
        entry = theta[k]
        try:
            theta[k] = probes.entries[j]
            return self.fun(probes.theta, *extra)
        finally:
            theta[k] = entry

    def _evaluate_joint(self, probes: Probes, theta: Floats, extra: tuple[Any, ...]) -> list[Any]:
        everywhere = len(probes.support) == len(theta)
        place: Any = slice(None) if everywhere else probes.support
        saved = theta[place].copy()
        try:
            values = []
            for entries in probes.entries:
                theta[place] = entries
                values.append(self.fun(probes.theta, *extra))
            return values
        finally:
            theta[place] = saved


def sample_of(probes: Probes) -> tuple[Any, ...]:
    """Return the sample argument of the user's function, if there is one."""
    if probes.rows is not None:
        return (probes.rows,)
    return () if probes.xi is None else (probes.xi,)


def check_batch(values: Any, n: int) -> list[Any]:
    """Return the values of a vectorized function as a list."""
    array = np.asarray(values)
    if array.shape != (n,):
        raise TypeError(
            f"a vectorized fun must return {n} values for {n} points, got shape {array.shape}"
        )
    return array.tolist()  # type: ignore[no-any-return]


class RemoteTask:
    """One evaluation as a small picklable object: theta, what to set, and the sample's recipe."""

    def __init__(self, fun: Fun, args: tuple[Any, ...], probes: Probes, j: int) -> None:
        self.fun, self.args, self.theta = fun, args, np.asarray(probes.theta)
        self.where = probes.support if probes.joint else probes.coords[j]
        self.entry = probes.entries[j]
        self.partials = probes.kind == "partials"
        self.support = probes.support
        self.extra = sample_of(probes)

    def __call__(self) -> Any:
        """Evaluate."""
        if self.partials:
            return self.fun(self.theta, self.support, *self.extra, *self.args)
        x = self.theta.copy()
        if np.ndim(self.where) or self.where != BASE:
            x[self.where] = self.entry
        x.flags.writeable = False
        return self.fun(x, *self.extra, *self.args)


def call(task: RemoteTask) -> Any:
    """Run a task (a module-level function, so that any executor can ship it)."""
    return task()


class RemoteEvaluator(Evaluator):
    """Evaluate probes through something that maps tasks to results."""

    def __init__(self, fun: Fun, jac: Fun | None, args: tuple[Any, ...], run: TaskRunner) -> None:
        super().__init__(fun, jac, args)
        self.run = run
        self.warned = run.n_workers is None

    def close(self) -> None:
        """Release what was started."""
        self.run.close()

    def evaluate(self, probes: Probes, theta: Floats) -> list[Any]:
        """Return the values of all probes."""
        self._warn_idle(len(probes))
        fun = self.jac if probes.kind == "partials" else self.fun
        assert fun is not None
        tasks = [RemoteTask(fun, self.args, probes, j) for j in range(len(probes))]
        return self.run(tasks)

    def _warn_idle(self, n_tasks: int) -> None:
        n_workers = self.run.n_workers or 0
        if not self.warned and n_workers > n_tasks:
            self.warned = True
            warnings.warn(
                f"{n_workers} workers for the {n_tasks} evaluations of a step: some stay idle; "
                "raise block_size or use fewer workers",
                RuntimeWarning,
                stacklevel=2,
            )


class TaskRunner:
    """Run tasks with a map-like callable."""

    n_workers: int | None = None

    def __init__(
        self, map_like: Callable[[Callable[[Any], Any], list[Any]], Iterable[Any]]
    ) -> None:
        self.map_like = map_like

    def __call__(self, tasks: list[RemoteTask]) -> list[Any]:
        """Return the results in the order of the tasks."""
        results = list(self.map_like(call, tasks))
        if len(results) != len(tasks):
            raise RuntimeError(f"workers returned {len(results)} results for {len(tasks)} tasks")
        return results

    def close(self) -> None:
        """Release what was started."""


class ExecutorRunner(TaskRunner):
    """Run tasks on a ``concurrent.futures.Executor`` that somebody else owns."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.n_workers = getattr(executor, "_max_workers", None)

    def __call__(self, tasks: list[RemoteTask]) -> list[Any]:
        """Return the results in the order of the tasks."""
        return [future.result() for future in [self.executor.submit(call, t) for t in tasks]]


class ProcessRunner(TaskRunner):
    """Run tasks on local processes; what a dead worker lost is submitted again to fresh ones."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self.n_restarts = 0
        self._executor: Any = None

    def _start(self) -> Any:
        from joblib.externals.loky import ProcessPoolExecutor

        if self._executor is None:
            self._executor = ProcessPoolExecutor(max_workers=self.n_workers)
        return self._executor

    def __call__(self, tasks: list[RemoteTask]) -> list[Any]:
        """Return the results in the order of the tasks."""
        results: dict[int, Any] = {}
        while len(results) < len(tasks):
            try:
                missing = [i for i in range(len(tasks)) if i not in results]
                executor = self._start()
                futures: dict[Future[Any], int] = {
                    executor.submit(call, tasks[i]): i for i in missing
                }
                for future in as_completed(futures):
                    results[futures[future]] = future.result()
            except BrokenProcessPool:
                self._restart()
        return [results[i] for i in range(len(tasks))]

    def _restart(self) -> None:
        self.close()
        self.n_restarts += 1
        if self.n_restarts > MAX_RESTARTS:
            raise RuntimeError(
                f"worker processes died {self.n_restarts} times; "
                "run with workers=1 to see what kills them (memory?)"
            )

    def close(self) -> None:
        """Stop the processes."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)
            self._executor = None


def evaluator(
    workers: Any, fun: Fun, jac: Fun | None, args: tuple[Any, ...], vectorized: bool
) -> Evaluator:
    """Turn the ``workers`` argument into an evaluator."""
    if vectorized:
        if workers != 1:
            raise ValueError("vectorized=True evaluates in this process; use workers=1")
        return Evaluator(fun, jac, args, vectorized=True)
    if isinstance(workers, int | np.integer) and not isinstance(workers, bool):
        n_workers = (os.cpu_count() or 1) if workers == -1 else int(workers)
        if n_workers < 1:
            raise ValueError(f"workers must be a number >= 1 or -1 for all cores, got {workers}")
        if n_workers == 1:
            return Evaluator(fun, jac, args)
        return RemoteEvaluator(fun, jac, args, ProcessRunner(n_workers))
    owner = getattr(workers, "__self__", workers)
    if isinstance(owner, multiprocessing.pool.Pool):
        raise TypeError(
            "multiprocessing.Pool hangs for ever when a worker dies; pass workers=n or a "
            "concurrent.futures.ProcessPoolExecutor instead"
        )
    if isinstance(workers, Executor):
        return RemoteEvaluator(fun, jac, args, ExecutorRunner(workers))
    if callable(workers):
        return RemoteEvaluator(fun, jac, args, TaskRunner(workers))
    raise TypeError(
        "workers must be a number, an Executor or a map-like callable, "
        f"got {type(workers).__name__}"
    )
