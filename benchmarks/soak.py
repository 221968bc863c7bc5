"""Runs of every kind in one process for ten minutes: memory and open files stay where they are.

``python benchmarks/soak.py [SECONDS]`` goes round over methods, ways of asking, checkpoints and local
workers, looks at the process after every round, and prints what grew between the second quarter and
the last one.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import scgd


def bowl(x: np.ndarray) -> float:
    """Fall towards one half."""
    return float(np.sum((x - 0.5) ** 2))


NOISE = np.random.default_rng(0)


def noisy(x: np.ndarray) -> float:
    """Fall towards one half, under noise that nobody controls."""
    return bowl(x) + 0.1 * float(NOISE.standard_normal())


def by_method(seed: int, folder: Path) -> int:
    """Run every method but the Gaussian process."""
    names = [name for name in scgd.METHODS if name != "gp"]
    done = [
        scgd.minimize(fun, np.zeros(20), method=name, scale=1.0, max_evals=500, seed=seed).nfev
        for name in names
        for fun in (bowl, noisy)
    ]
    return sum(done)


def by_asking(seed: int, folder: Path) -> int:
    """Ask and tell."""
    opt = scgd.Optimizer(np.zeros(20), "musketeer", scale=1.0, max_evals=2000, seed=seed)
    while not opt.done:
        for trial in opt.ask():
            opt.tell(trial.id, bowl(trial.x))
    return int(opt.result().nfev)


def with_checkpoints(seed: int, folder: Path) -> int:
    """Write a checkpoint, take it up with a larger budget, keep a log."""
    path, n = folder / "run.npz", 0
    for budget in (400, 800, 1200):
        n = scgd.minimize(
            bowl, np.zeros(20), method="musketeer", scale=1.0, max_evals=budget, seed=seed,
            checkpoint=scgd.Checkpoint(path, every=0.01), reporting=scgd.Reporting(log=folder / "run.csv")).nfev  # fmt: skip
    for file in folder.iterdir():
        file.unlink()
    return int(n)


def with_workers(seed: int, folder: Path) -> int:
    """Start two processes and end them."""
    return int(
        scgd.minimize(
            bowl,
            np.zeros(20),
            scale=1.0,
            max_evals=200,
            seed=seed,
            workers=2,
            method=scgd.SCGD(block_size=4),
        ).nfev
    )


WAYS: tuple[Callable[[int, Path], int], ...] = (
    by_method,
    by_asking,
    with_checkpoints,
    with_workers,
)


def looked() -> tuple[float, int, int]:
    """Return megabytes, open files and children."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return (
        pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        len(os.listdir("/proc/self/fd")),
        len(children),
    )


def main() -> None:
    """Go round until the time is up; print what was seen."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    began, seen, n_evals, seed = time.monotonic(), [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() - began < seconds:
            n_evals += sum(way(seed, Path(folder)) for way in WAYS)
            seed += 1
            seen.append((time.monotonic() - began, *looked()))
            at, size, files, children = seen[-1]
            print(f"{at:7.1f} s {size:7.1f} MB {files:3d} files {children:2d} children", flush=True)
    times, *columns = np.array(seen).T
    early = (times > seconds / 4) & (times <= seconds / 2)
    late = times > 3 * seconds / 4
    print(f"{seed} rounds, {n_evals} evaluations in {times[-1]:.0f} s")
    for name, column in zip(("MB", "files", "children"), columns, strict=True):
        first, last = np.median(column[early]), np.median(column[late])
        print(f"{name:9} {first:.1f} in the second quarter, {last:.1f} in the last")


if __name__ == "__main__":
    main()
