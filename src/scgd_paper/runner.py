"""Carry out experiments on all cores, writing each run to the table as it is finished.

Jobs are handed out in the order of the table and their results are written in that order, so that a
table is the same for any number of workers and, stopped and started again, the same as without the
stop (but for measured seconds).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from importlib import import_module
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from scgd.command import connect
from scgd.errors import CommandError
from scgd_paper.datasets import load
from scgd_paper.provenance import read_note, record, write_note
from scgd_paper.rows import KINDS, Experiment, Job, Panel
from scgd_paper.table import COLUMNS, Key, Run, Shape, Table

__all__ = ["Options", "run_experiment", "run_panel"]


@dataclass(frozen=True)
class Options:
    """What a command line says about how to run.

    Parameters
    ----------
    out
        The folder of the tables.
    settings
        ``"published"`` or ``"paper"``.
    n_runs
        Runs per method; None keeps each panel's own number.
    workers
        Processes; 1 stays in this one.
    cluster
        The address of a Dask scheduler that runs the jobs instead.
    quick
        Short runs that only show that everything works.
    data
        The folder of the data sets, if one was named.
    progress
        Show a bar with the time left.
    """

    out: Path
    settings: str = "published"
    n_runs: int | None = None
    workers: int = 1
    quick: bool = False
    data: str | None = None
    progress: bool = True
    cluster: str | None = None


def run_experiment(experiment: Experiment, panels: Sequence[Panel], options: Options) -> list[str]:
    """Run what is missing of an experiment; return what had to be left out, and why."""
    settings = experiment.setting(options.settings)
    kind = import_kind(experiment.kind)
    wanted, left_out = available(panels, options)
    if options.quick:
        wanted = [p.quick() for p in wanted]
    check_same_kind(options.out, experiment.id, options.quick)
    table = Table(options.out / f"{experiment.id}.csv", shapes(experiment, kind, options.quick))
    try:
        every = (jobs_of(experiment, settings, p, options, table.done) for p in wanted)
        jobs = [job for some in every for job in some]
        if jobs:
            record(options.out / f"{experiment.id}.json")
        with Bar(experiment.id, sum(kind.cost(job) for job in jobs), options.progress) as bar:
            n_workers = 1 if kind_is_threaded(kind) else options.workers
            for job, runs in results(jobs, n_workers, options.cluster):
                for run in runs:
                    table.append(run)
                bar.advance(kind.cost(job), f"{job.panel.name} {job.method.name}")
        if hasattr(kind, "illustrate"):
            kind.illustrate(experiment, wanted, options)
    finally:
        table.close()
    return left_out


def run_panel(
    panel: Panel,
    *,
    n_runs: int | None = None,
    workers: int = 1,
    data: str | None = None,
    kind: str | None = None,
) -> Any:
    """Run one panel, whoever made it, and return its table.

    Parameters
    ----------
    panel
        What to run: one of the paper's (``EXPERIMENTS["zo-linear"].panel("ridge-alpha5",
        "paper")``), one with other settings (:func:`scgd_paper.varied_panel`), or your own.
    n_runs
        Runs per method; by default the panel's.
    workers
        Processes, or threads where a kind has its own.
    data
        The folder of the data sets.
    kind
        A key of :data:`scgd_paper.rows.KINDS`; by default what the problem is.

    Returns
    -------
    pandas.DataFrame
        A row per measurement: method, run, pass, queries, seconds, value, measure.

    Examples
    --------
    >>> from scgd_paper import EXPERIMENTS, varied_panel
    >>> panel = EXPERIMENTS["fo-rates"].panel("p20-gamma1", "paper")
    >>> table = run_panel(varied_panel(panel, {"gamma": 3, "passes": 4}), n_runs=1)
    >>> sorted(set(table["method"]))
    ['adaptive', 'musketeer', 'sgd', 'uniform']
    """
    import pandas as pd

    kind = KIND_OF[type(panel.problem).__name__] if kind is None else kind
    own = Experiment("panel", panel.title, "", kind, {"paper": (panel,)})
    options = Options(Path(), "paper", n_runs, workers, data=data, progress=False)
    n_workers = 1 if kind_is_threaded(import_kind(kind)) else workers
    jobs = list(jobs_of(own, "paper", panel, options, ()))
    rows = [row for _, runs in results(jobs, n_workers) for run in runs for row in run.rows()]
    table = pd.DataFrame(rows, columns=list(COLUMNS)).drop(columns=list(COLUMNS[:3]))
    numbers = ["pass", "queries", "seconds", "value"]
    return table.astype(dict.fromkeys(numbers, "float64"))


KIND_OF = {
    "LinearProblem": "linear",
    "NetworkProblem": "zeroth-order network",
    "PathProblem": "path",
    "TheoryProblem": "theory",
}


def shapes(experiment: Experiment, kind: Any, quick: bool) -> dict[tuple[str, ...], Shape]:
    """Return which rows the runs of every method have, in any setting."""
    return {
        (experiment.id, panel.name, settings, method.name): kind.shape(
            panel.quick() if quick else panel, method
        )
        for settings, panels in experiment.panels.items()
        for panel in panels
        for method in panel.methods + panel.extras
    }


def import_kind(kind: str) -> Any:
    """Return the module that carries out a kind of experiment."""
    try:
        return import_module(KINDS[kind])
    except ModuleNotFoundError as error:
        extra = "torch" if error.name == "torch" else "cli"
        raise CommandError(
            f"this experiment needs {error.name}; install it with: pip install 'scgd[{extra}]'"
        ) from None


def available(panels: Sequence[Panel], options: Options) -> tuple[list[Panel], list[str]]:
    """Return the panels whose data set is at hand and whole, and a sentence for each other."""
    wanted, left_out = [], []
    for panel in panels:
        try:
            if panel.needs:
                load(panel.needs, options.data)
            wanted.append(panel)
        except CommandError as trouble:
            left_out.append(f"{panel.name} left out: {trouble}")
    return wanted, left_out


def check_same_kind(out: Path, id: str, quick: bool) -> None:
    """Refuse to mix quick and full runs in one table; note what made the table."""
    path = out / f"{id}.json"
    try:
        out.mkdir(parents=True, exist_ok=True)
        known = read_note(path) if (out / f"{id}.csv").exists() else {}
        if known.get("quick", quick) != quick:
            kinds = ("full", "quick")
            raise CommandError(
                f"{out} holds {kinds[known['quick']]} runs of {id}; "
                f"use another --out for {kinds[quick]} ones"
            )
        write_note(path, known | {"quick": quick})
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}; use --out DIR") from None


def jobs_of(
    experiment: Experiment, settings: str, panel: Panel, options: Options, done: Collection[Key]
) -> Iterator[Job]:
    """Return the jobs of a panel that are not done yet, in the table's order."""
    kind = import_kind(experiment.kind)
    n_runs = panel.n_runs if options.n_runs is None else options.n_runs
    threads = options.workers if kind_is_threaded(kind) else 1
    for method in panel.methods:
        job = Job(
            experiment.id, experiment.kind, settings, panel, method, (), options.data, threads
        )
        every = range(min(n_runs, getattr(method, "n_runs", n_runs)))
        runs = [run for run in every if job.key(run) not in done]
        for i in range(0, len(runs), kind.RUNS_PER_JOB):
            yield replace(job, runs=tuple(runs[i : i + kind.RUNS_PER_JOB]))


def kind_is_threaded(kind: Any) -> bool:
    """Tell whether a kind's own threads use all cores, so that no processes are needed."""
    return bool(getattr(kind, "THREADED", False))


def execute(job: Job) -> list[Run]:
    """Carry out a job, here or in another process."""
    return list(import_kind(job.kind).execute(job))


def results(
    jobs: Sequence[Job], workers: int, cluster: str | None = None
) -> Iterator[tuple[Job, list[Run]]]:
    """Return jobs with their results, in order."""
    if cluster is not None and jobs:
        with connect(cluster) as client, client.get_executor(pure=False) as pool:
            yield from in_order(pool, jobs, 3 * max(1, sum(client.nthreads().values())))
        return
    if workers == 1 or len(jobs) < 2:
        for job in jobs:
            yield job, execute(job)
        return
    with ProcessPoolExecutor(
        min(workers, len(jobs)), get_context("spawn"), initializer=prepare_worker
    ) as pool:
        try:
            yield from in_order(pool, jobs, 3 * workers)
        except BrokenProcessPool:
            raise CommandError(
                "a worker process died (out of memory?); the same command goes on from here, "
                "with --workers 1 it needs least memory"
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in active_children():  # only this process writes, so nothing is lost
                process.terminate()
            raise


def in_order(pool: Executor, jobs: Iterable[Job], ahead: int) -> Iterator[tuple[Job, list[Run]]]:
    """Keep a few jobs in flight and return results in the order of the jobs."""
    waiting: list[tuple[Job, Future[list[Run]]]] = []
    for job in jobs:
        waiting.append((job, pool.submit(execute, job)))
        if len(waiting) >= ahead:
            first, future = waiting.pop(0)
            yield first, future.result()
    for job, future in waiting:
        yield job, future.result()


def prepare_worker() -> None:
    """Give a worker one thread, since workers share the cores, and leave Ctrl-C to their parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"


class Bar:
    """Progress with the time left, in units of work."""

    def __init__(self, name: str, total: float, wanted: bool) -> None:
        self.wanted = wanted and total > 0
        self.total, self.name, self.bar = total, name, None
        self.started = time.monotonic()

    def __enter__(self) -> Bar:
        """Open the bar."""
        if self.wanted:
            try:
                from tqdm import tqdm
            except ImportError:
                return self
            form = "{desc} |{bar}| {percentage:3.0f}% {elapsed} gone, {remaining} left{postfix}"
            self.bar = tqdm(total=self.total, desc=self.name, bar_format=form, file=sys.stderr)
        return self

    def advance(self, work: float, what: str) -> None:
        """Count finished work."""
        if self.bar is not None:
            self.bar.set_postfix_str(what, refresh=False)
            self.bar.update(work)

    def __exit__(self, *_: object) -> None:
        """Close the bar."""
        if self.bar is not None:
            self.bar.set_postfix_str("")
            self.bar.close()
