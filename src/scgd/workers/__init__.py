"""One way to evaluate the probes of a step, whoever does the work.

``workers`` is 1 (this process), a number of local processes, a ``concurrent.futures.Executor``, a
``distributed.Client`` or a map-like callable. Workers own no randomness: a task carries the point
and the rows or the seed of its sample, so results do not depend on who computes them, and a task
that is done twice gives the same number twice. All engines may do a task twice and some lose one;
:class:`~scgd.workers.remote.RemoteEvaluator` keeps the ledger that makes up for it.
"""

from __future__ import annotations

import multiprocessing.pool
import os
from concurrent.futures import Executor
from typing import Any

import numpy as np

from scgd.checks import number
from scgd.options import Workers
from scgd.workers.cluster import ClusterEngine, is_client
from scgd.workers.engines import Engine, ExecutorEngine, MapEngine, ProcessEngine
from scgd.workers.local import Evaluator
from scgd.workers.remote import RemoteEvaluator
from scgd.workers.tasks import Job

__all__ = ["Evaluator", "RemoteEvaluator", "evaluator"]

MOST = 4096
"""Local processes that anybody could want."""


def evaluator(workers: Workers, job: Job, *, skip: bool = False) -> Evaluator:
    """Turn the ``workers`` argument into an evaluator."""
    vectorized, timeout = workers.vectorized, workers.timeout
    if timeout is not None:
        timeout = number(timeout, "timeout", 0, ends="(]", wanted="be a positive number of seconds")
    if vectorized and workers.engine != 1:
        raise ValueError("vectorized=True evaluates in this process; leave out the engine")
    engine = None if vectorized else choose(workers.engine, job)
    if timeout is not None and (engine is None or not engine.interruptible):
        raise ValueError(
            "timeout needs workers that can be left behind; use Workers(2, timeout=...), an "
            "Executor or a distributed.Client"
        )
    if engine is None:
        return Evaluator(job, vectorized)
    return RemoteEvaluator(engine, timeout, skip=skip)


def choose(workers: Any, job: Job) -> Engine | None:
    """Return the engine that ``workers`` stands for; None for this process."""
    if isinstance(workers, int | np.integer) and not isinstance(workers, bool):
        n_workers = (os.cpu_count() or 1) if workers == -1 else int(workers)
        if not 1 <= n_workers <= MOST:
            raise ValueError(f"workers must be a number >= 1 or -1 for all cores, got {workers}")
        return None if n_workers == 1 else ProcessEngine(job, n_workers)
    if isinstance(getattr(workers, "__self__", workers), multiprocessing.pool.Pool):
        raise TypeError(
            "multiprocessing.Pool hangs for ever when a worker dies; pass workers=n or a "
            "concurrent.futures.ProcessPoolExecutor instead"
        )
    if is_client(workers):
        return ClusterEngine(job, workers)
    if isinstance(workers, Executor):
        return ExecutorEngine(job, workers)
    if callable(workers):
        return MapEngine(job, workers)
    raise TypeError(
        "workers must be a number, an Executor, a distributed.Client or a map-like callable, "
        f"got {type(workers).__name__}"
    )
