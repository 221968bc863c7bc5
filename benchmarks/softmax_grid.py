"""The eta and lambda of the softmax that made the published Fashion-MNIST curves.

A grid of sharpness eta and mixing lambda in the published settings of ``zo-networks``, against the
whole published curves: a first look at every cell (run 0), then three fresh runs (1 to 3) of every
cell, or of those named. Runs are written as they are finished, so that a stopped grid goes on where
it was::

    python benchmarks/softmax_grid.py look grid.csv --data FOLDER
    python benchmarks/softmax_grid.py run grid.csv --data FOLDER --cell 2 0.8 --cell 5 0.2
    python benchmarks/softmax_grid.py show grid.csv --published FOLDER

The figure of a cell is the root mean square over the epochs of the difference between the mean
accuracy of its fresh runs and the published one. "noise" is what as many published runs are away
from the mean of the others, in the median over all choices of them, and "farther" the share of
choices that are farther away than the cell: below .05 the cell did not make the published curve.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from scgd_paper.published import published_curves
from scgd_paper.registry import EXPERIMENTS
from scgd_paper.rows import Job

ETAS = (0.5, 1.0, 2.0, 5.0)
LAMBDAS = (0.2, 0.5, 0.8)
GAINS = ("absolute", "average", "square")
RUNS = {"look": (0,), "run": (1, 2, 3)}
Cell = tuple[str, float, float, int]


def cells(args: argparse.Namespace) -> Iterator[Cell]:
    """Return what is to be run: gain, eta, lambda, run; the first run of every cell first."""
    wanted = args.cell or list(itertools.product(ETAS, LAMBDAS))
    for gain, run, (eta, mixing) in itertools.product(
        args.gain or GAINS[:1], RUNS[args.action], wanted
    ):
        yield gain, eta, mixing, run


def curve(gain: str, eta: float, mixing: float, run: int, data: str | None) -> list[float]:
    """Return the test accuracy after each epoch."""
    from scgd_paper import network_runs

    panel = EXPERIMENTS["zo-networks"].panel("fashion-mnist", "published")
    method = next(m for m in panel.methods if m.name == f"musketeer-{gain}-softmax")
    method = replace(method, policy=replace(method.policy, sharpness=eta, mixing=mixing))
    job = Job("zo-networks", "zeroth-order network", "published", panel, method, (run,), data)
    (done,) = network_runs.execute(job)
    return next(c.values for c in done.curves if c.measure == "accuracy").tolist()


def load(path: Path) -> dict[Cell, np.ndarray]:
    """Return the runs that are there."""
    if not path.exists():
        return {}
    with path.open() as file:
        rows = [row for row in csv.reader(file) if len(row) == 104]
    return {(r[0], float(r[1]), float(r[2]), int(r[3])): np.array(r[4:], float) for r in rows}


def run(args: argparse.Namespace) -> None:
    """Do what is missing."""
    known = load(args.file)
    for cell in cells(args):
        if cell not in known:
            values = curve(*cell, args.data)
            with args.file.open("a") as file:
                csv.writer(file).writerow([*cell, *(f"{v:.4f}" for v in values)])
            print(*cell, f"{values[49]:.3f} {values[-1]:.3f}", flush=True)


def show(args: argparse.Namespace) -> None:
    """Print the table of the cells."""
    known = {cell: values for cell, values in load(args.file).items() if cell[3] in RUNS["run"]}
    stored = published_curves("zo-networks", "fashion-mnist", args.published)
    for gain in dict.fromkeys(cell[0] for cell in known):
        _, published = stored["accuracy", f"musketeer-{gain}-softmax"]
        print(f"\n{gain}: published {ends(published.mean(axis=0))} at epochs 25, 50, 75, 100")
        print("  eta lambda  runs   e25   e50   e75  e100   distance  noise  farther")
        for eta, mixing in sorted({cell[1:3] for cell in known if cell[0] == gain}):
            runs = [v for cell, v in known.items() if cell[:3] == (gain, eta, mixing)]
            mean = np.mean(runs, axis=0)
            away, others = distance(mean, published.mean(axis=0)), noise(published, len(runs))
            print(
                f"{eta:5g} {mixing:6g} {len(runs):5d} {ends(mean)} {away:10.3f} "
                f"{np.median(others):6.3f} {np.mean(others >= away):8.2f}"
            )


def ends(curve: np.ndarray) -> str:
    """Return a curve at the ends of its quarters."""
    return " ".join(f"{curve[i]:.3f}" for i in (24, 49, 74, 99))


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """Return the root mean square difference of two curves."""
    return float(np.sqrt(np.mean((a - b) ** 2)))


def noise(published: np.ndarray, n_runs: int) -> np.ndarray:
    """Return how far every choice of some published runs is from the mean of the others."""
    every = set(range(len(published)))
    return np.array([
        distance(published[list(some)].mean(axis=0), published[list(every - set(some))].mean(axis=0))
        for some in itertools.combinations(sorted(every), n_runs)
    ])  # fmt: skip


def main() -> None:
    """Run or show the grid."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=("look", "run", "show"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--gain", action="append", choices=GAINS)
    parser.add_argument("--cell", action="append", nargs=2, type=float, metavar=("ETA", "LAMBDA"))
    parser.add_argument("--data", help="folder of the data sets (or SCGD_DATA)")
    parser.add_argument("--published", help="folder of the published curves")
    args = parser.parse_args()
    show(args) if args.action == "show" else run(args)


if __name__ == "__main__":
    main()
