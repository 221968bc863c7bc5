"""Time what a user of the experiments waits for: ``python benchmarks/bench_experiments.py``.

Per method of the headline figure, processor time per run (minimum over repeats run in turn), and
that as a multiple of the floor: a random row gather and a dot per step, written in numba. Then the
parts of the command around the runs: table and report.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from numba import njit

from scgd_paper import linear_runs
from scgd_paper.registry import EXPERIMENTS
from scgd_paper.report import build
from scgd_paper.rows import Job, Panel
from scgd_paper.table import Table


@njit(cache=True, error_model="numpy", fastmath=True)
def floor(X, theta, rows):  # type: ignore[no-untyped-def]
    """Gather random rows and multiply each with theta."""
    total = 0.0
    for i in rows:
        row = X[i]
        for k in range(len(theta)):
            total += row[k] * theta[k]
    return total


def jobs_of(panel: Panel) -> list[Job]:
    return [Job("zo-linear", "linear", "published", panel, m, (0,), None, 1) for m in panel.methods]


def time_methods(panel: Panel, repeats: int) -> None:
    """Print the time per run of every method."""
    data, _, _ = linear_runs.problem_data(panel.problem)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(data.X), panel.n_passes * data.X.shape[1])
    tasks = {"floor": lambda: floor(data.X, data.theta_star, rows)}
    for job in jobs_of(panel):
        tasks[job.method.name] = lambda job=job: list(linear_runs.execute(job))
    best = dict.fromkeys(tasks, np.inf)
    for _ in range(repeats + 1):
        for name, task in tasks.items():
            started = time.process_time()
            task()
            best[name] = min(best[name], time.process_time() - started)
    print(f"{panel.name}, {panel.n_passes} passes, recorded every {panel.every}")
    for name, seconds in best.items():
        print(f"  {name:<22}{1e3 * seconds:>9.1f} ms{seconds / best['floor']:>9.2f} x floor")


def time_around(panel: Panel) -> None:
    """Print the time of writing and reporting the runs of a panel."""
    runs = [run for job in jobs_of(panel) for run in linear_runs.execute(replace(job, runs=(0, 1)))]
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        table = Table(Path(folder) / "zo-linear.csv", {panel.name: (float(panel.n_passes), 1)})
        for run in runs:
            table.append(run)
        table.close()
        wrote = time.process_time()
        build(Path(folder))
        print(f"  table {1e3 * (wrote - started) / len(runs):.2f} ms per run, ", end="")
        print(f"report {time.process_time() - wrote:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer passes and repeats")
    args = parser.parse_args()
    for name in ("ridge-alpha5", "logistic-alpha5"):
        panel = EXPERIMENTS["zo-linear"].panel(name, "published")
        if args.quick:
            panel = replace(panel, n_passes=10)
        time_methods(panel, 1 if args.quick else 5)
        time_around(panel)


if __name__ == "__main__":
    main()
