"""Laws of blocks at equal CPU time, where the bottom, the top or all of a model must move.

``python benchmarks/block_laws/run.py`` tries three rates for each method and task on seed 100, then
judges the best of them on other seeds. A row that stands in ``rows.csv`` is not run again, so the
program can be stopped and started. ``page.py`` prints the table. First the time of a step is measured,
the methods in turn, fifteen steps at a time, so that a machine busy with other things slows all of
them alike; every method then gets the steps that ``--budget`` steps of AdamW would take.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tasks import WHERE, Task, make
from torch.nn import functional as F

from scgd.torch import BlockOptimizer
from scgd.torch.blocks import BlockMusketeer, InverseCost

HERE = Path(__file__).parent
FIELDS = ("size", "task", "method", "rate", "seed", "steps", "loss", "accuracy")
RATES = (1e-3, 3e-3, 1e-2)
TUNING, ADAMW = 100, "AdamW, all parameters"


def blocks(**settings: Any) -> Callable[[Any, float, int], Any]:
    """Return a block optimizer whose head is always trained."""
    always = ["norm", "head"]
    return lambda model, lr, seed: BlockOptimizer(
        model, always=always, lr=lr, seed=seed, **{"blocks": "layer", "active": 1, **settings}
    )


def modules(policy: Any) -> Callable[[Any, float, int], Any]:
    """Return one that trains six modules at a time."""
    return blocks(policy=policy, blocks="module", active=6)


law = partial(BlockMusketeer, first_period=2, gain_per="step")
METHODS: dict[str, Callable[[Any, float, int], Any]] = {
    ADAMW: lambda model, lr, _: torch.optim.AdamW(model.parameters(), lr),
    "inverse cost": blocks(policy=InverseCost(first_period=10)),
    "shuffled (BAdam)": blocks(policy="shuffled"),
    "cyclic": blocks(policy="cyclic"),
    "top 2": blocks(policy="top", active=2),
    "musketeer": blocks(policy=BlockMusketeer(first_period=10, gain_per="step")),
    "musketeer, short first visits": blocks(policy=law()),
    "musketeer per cost, short first visits": blocks(policy=law(gain_per="cost")),
    "musketeer, compared at one moment, per cost": blocks(
        policy=law(gain_per="cost", probe=4, first_cycle=False)
    ),
    "misa, 6 modules": modules("misa"),
    "uniform, 6 modules": modules("uniform"),
    "musketeer, 6 modules": modules(law()),
    "musketeer per cost, 6 modules": modules(law(gain_per="cost")),
}


def train(task: Task, optimizer: Any, batches: Iterator[Any], steps: int) -> float:
    """Train for some steps; return the CPU seconds of this process."""
    began = time.process_time()
    for x, y in islice(batches, steps):
        optimizer.zero_grad()
        F.cross_entropy(task.model(x), y).backward()
        optimizer.step()
    return time.process_time() - began


def step_times(given: argparse.Namespace) -> dict[str, float]:
    """Return the time of a step of each method in steps of AdamW, kept in a file."""
    path = given.rows.with_name("times.csv")
    known = {(r["size"], r["method"]): float(r["time"]) for r in rows(path)}
    if any((given.size, name) not in known for name in METHODS):
        running = []
        for name, make_optimizer in METHODS.items():
            task = make("all", TUNING, given.cache, given.size)
            running.append((name, task, make_optimizer(task.model, 1e-3, 0), task.batches()))
        spent = dict.fromkeys(METHODS, 0.0)
        for turn in range(11):
            for name, *what in running:
                seconds = train(*what, 15)
                spent[name] += seconds if turn else 0.0
        known |= {(given.size, name): t / spent[ADAMW] for name, t in spent.items()}
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("size", "method", "time"))
            writer.writerows((*key, f"{value:.3f}") for key, value in known.items())
    return {name: known[given.size, name] for name in METHODS}


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows so far."""
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def cell(given: argparse.Namespace, where: str, method: str, rate: float, seed: int) -> None:
    """Run one cell unless its row is there."""
    key = (given.size, where, method, f"{rate:g}", str(seed))
    done = rows(given.rows)
    if key in {tuple(row[name] for name in FIELDS[:5]) for row in done}:
        return
    task = make(where, seed, given.cache, given.size)
    torch.manual_seed(seed)
    optimizer = METHODS[method](task.model, rate, seed)
    steps = round(given.budget / given.times[method])
    train(task, optimizer, task.batches(), steps)
    loss, accuracy = task.score()
    row = (*key, steps, f"{loss:.4f}", f"{accuracy:.4f}")
    with given.rows.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not done:
            writer.writerow(FIELDS)
        writer.writerow(row)


def best(given: argparse.Namespace, where: str, method: str) -> float:
    """Return the rate of the least loss on the tuning seed."""
    key = (given.size, where, method, str(TUNING))
    tried = [r for r in rows(given.rows) if (r["size"], r["task"], r["method"], r["seed"]) == key]
    return float(min(tried, key=lambda row: float(row["loss"]))["rate"])


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="small")
    parser.add_argument("--budget", type=int, default=100, help="in steps of AdamW")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--rows", type=Path, default=HERE / "rows.csv")
    parser.add_argument("--cache", type=Path, default=Path("results/block_laws"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.times = step_times(given)
    for method in given.methods:
        for where in WHERE:
            for rate in RATES:
                cell(given, where, method, rate, TUNING)
    for seed in range(given.seeds):
        for method in given.methods:
            for where in WHERE:
                cell(given, where, method, best(given, where, method), seed)


if __name__ == "__main__":
    main()
