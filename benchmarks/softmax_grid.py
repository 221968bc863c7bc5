"""The eta and lambda of the softmax that made the published Fashion-MNIST curves.

A grid of sharpness eta and mixing lambda, three runs per cell in the published settings of
``zo-networks``, against the whole published curves. Runs are written as they are finished, so that
a stopped grid goes on where it was::

    python benchmarks/softmax_grid.py run grid.csv --data FOLDER
    python benchmarks/softmax_grid.py show grid.csv --published FOLDER

The figure of a cell is the root mean square over the epochs of the difference between our mean
accuracy and the published one; "noise" is what as many published runs, drawn at random, are away
from the mean of the others, in the median.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from scgd.experiments.published import published_curves
from scgd.experiments.registry import EXPERIMENTS
from scgd.experiments.rows import Job

ETAS = (0.5, 1.0, 2.0, 5.0)
LAMBDAS = (0.2, 0.5, 0.8)
GAINS = ("absolute", "average", "square")
N_RUNS = 3
N_SUBSETS = 200


def cells(gain: str) -> Iterator[tuple[str, float, float, int]]:
    """Return what is to be run: gain, eta, lambda, run; the first run of every cell first."""
    for run, eta, mixing in itertools.product(range(N_RUNS), ETAS, LAMBDAS):
        yield gain, eta, mixing, run


def curve(gain: str, eta: float, mixing: float, run: int, data: str | None) -> list[float]:
    """Return the test accuracy after each epoch."""
    from scgd.experiments import network_runs

    panel = EXPERIMENTS["zo-networks"].panel("fashion-mnist", "published")
    method = next(m for m in panel.methods if m.name == f"musketeer-{gain}-softmax")
    method = replace(method, policy=replace(method.policy, sharpness=eta, mixing=mixing))
    job = Job("zo-networks", "zeroth-order network", "published", panel, method, (run,), data)
    (done,) = network_runs.execute(job)
    return next(c.values for c in done.curves if c.measure == "accuracy").tolist()


def load(path: Path) -> dict[tuple[str, float, float, int], np.ndarray]:
    """Return the runs that are there."""
    if not path.exists():
        return {}
    with path.open() as file:
        rows = [row for row in csv.reader(file) if len(row) == 104]
    return {(r[0], float(r[1]), float(r[2]), int(r[3])): np.array(r[4:], float) for r in rows}


def run(args: argparse.Namespace) -> None:
    """Do what is missing."""
    known = load(args.file)
    for gain in args.gain or GAINS[:1]:
        for cell in cells(gain):
            if cell not in known:
                values = curve(*cell, args.data)
                with args.file.open("a") as file:
                    csv.writer(file).writerow([*cell, *(f"{v:.4f}" for v in values)])
                print(*cell, f"{values[49]:.3f} {values[-1]:.3f}", flush=True)


def show(args: argparse.Namespace) -> None:
    """Print the table of the cells."""
    known = load(args.file)
    stored = published_curves("zo-networks", "fashion-mnist", args.published)
    for gain in dict.fromkeys(cell[0] for cell in known):
        _, published = stored["accuracy", f"musketeer-{gain}-softmax"]
        target = published.mean(axis=0)
        ends = " ".join(f"{target[i]:.3f}" for i in (24, 49, 74, 99))
        print(f"\n{gain}: published {ends} at epochs 25, 50, 75, 100")
        print("  eta lambda  runs   e25   e50   e75  e100   distance  noise")
        for eta, mixing in itertools.product(ETAS, LAMBDAS):
            runs = [v for (g, e, m, _), v in known.items() if (g, e, m) == (gain, eta, mixing)]
            if runs:
                mean = np.mean(runs, axis=0)
                ends = " ".join(f"{mean[i]:.3f}" for i in (24, 49, 74, 99))
                away = np.sqrt(np.mean((mean - target) ** 2))
                level = noise(published, len(runs))
                print(f"{eta:5g} {mixing:6g} {len(runs):5d} {ends} {away:10.3f} {level:6.3f}")


def noise(published: np.ndarray, n_runs: int) -> float:
    """Return how far some published runs are from the mean of the others, in the median."""
    rng, away = np.random.default_rng(0), []
    for _ in range(N_SUBSETS):
        order = rng.permutation(len(published))
        ours, rest = published[order[:n_runs]].mean(axis=0), published[order[n_runs:]].mean(axis=0)
        away.append(np.sqrt(np.mean((ours - rest) ** 2)))
    return float(np.median(away))


def main() -> None:
    """Run or show the grid."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=("run", "show"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--gain", action="append", choices=GAINS)
    parser.add_argument("--data", help="folder of the data sets (or SCGD_DATA)")
    parser.add_argument("--published", help="folder of the published curves")
    args = parser.parse_args()
    run(args) if args.action == "run" else show(args)


if __name__ == "__main__":
    main()
