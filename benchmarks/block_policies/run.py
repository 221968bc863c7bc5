"""Policies of blocks at equal CPU time, where the bottom, the top or all of a model must move.

``python benchmarks/block_policies/run.py`` tries rates for each method and task on seed 100, three of them
and further ones while the best is at an edge, then judges the best on other seeds. A row that stands
in ``rows.csv`` is not run again, so the program can be stopped and started. First the time of a step
is measured, the methods in turn, fifteen steps at a time, so that a machine busy with other things
slows all of them alike; every method then gets the steps that ``--budget`` steps of AdamW would take.
Rates fall linearly to zero. LoRA needs ``peft``, GaLore ``galore-torch``.

    python benchmarks/block_policies/run.py --size SmolLM2 --budget 50 --seeds 2 --turn-steps 8 --turns 3
        --share-rates --methods "musketeer, 6 modules" "inverse cost, short first visits"

runs a pretrained model (``language.py``). There policies of six modules take the rate of the first of
them, policies of a layer that of the first of those.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import language
import tasks
import torch
from tasks import Task, adapt
from torch.nn import functional as F

from scgd.torch import BlockOptimizer
from scgd.torch.blocks import BlockMusketeer, InverseCost

HERE = Path(__file__).parent
FIELDS = ("size", "task", "method", "rate", "seed", "steps", "loss", "accuracy")
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
FIRST = RATES[2:5]
TUNING, ADAMW = 100, "AdamW, all parameters"


def blocks(**settings: Any) -> Callable[[Any, float, int], Any]:
    """Return a block optimizer whose head is always trained."""
    chosen = {"blocks": "layer", "active": 1, **settings}

    def build(model: Any, lr: float, seed: int) -> Any:
        always = getattr(model, "always", ["norm", "head"])
        return BlockOptimizer(model, always=always, lr=lr, seed=seed, **chosen)

    return build


def modules(policy: Any) -> Callable[[Any, float, int], Any]:
    """Return one that trains six modules at a time."""
    return blocks(policy=policy, blocks="module", active=6)


def lora(model: Any, lr: float, _: int) -> Any:
    """Train factors of every matrix of the layers, norm and head."""
    adapt(model)
    return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr)


def galore(model: Any, lr: float, _: int) -> Any:
    """Keep moments of projected gradients for every matrix of the layers."""
    from galore_torch import GaLoreAdamW

    low = [p for p in model.layers.parameters() if p.ndim == 2]
    rest = [p for p in model.parameters() if all(p is not q for q in low)]
    settings = {"rank": 8, "update_proj_gap": 50, "scale": 1.0, "proj_type": "std"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return GaLoreAdamW([{"params": rest}, {"params": low, **settings}], lr)


musketeer = partial(BlockMusketeer, first_period=2, gain_per="step")
METHODS: dict[str, Callable[[Any, float, int], Any]] = {
    ADAMW: lambda model, lr, _: torch.optim.AdamW(model.parameters(), lr),
    "inverse cost": blocks(policy=InverseCost(first_period=10)),
    "inverse cost, short first visits": blocks(policy="inverse-cost"),
    "shuffled (BAdam)": blocks(policy="shuffled"),
    "cyclic": blocks(policy="cyclic"),
    "top 2": blocks(policy="top", active=2),
    "musketeer": blocks(policy=BlockMusketeer(first_period=10, gain_per="step")),
    "musketeer, short first visits": blocks(policy=musketeer()),
    "musketeer per cost, short first visits": blocks(policy=musketeer(gain_per="cost")),
    "musketeer, compared at one moment, per cost": blocks(
        policy=musketeer(gain_per="cost", probe=4, first_cycle=False)
    ),
    "misa, 6 modules": modules("misa"),
    "uniform, 6 modules": modules("uniform"),
    "musketeer, 6 modules": modules(musketeer()),
    "musketeer per cost, 6 modules": modules(musketeer(gain_per="cost")),
    "musketeer, compared at one moment, per cost, 6 modules": modules(
        musketeer(gain_per="cost", probe=4, first_cycle=False)
    ),
    "musketeer per cost, 6 modules, mix 0.3": modules(musketeer(gain_per="cost", mix=0.3)),
    "musketeer, l1 norm per cost, 6 modules": modules(musketeer(gain_per="cost", gain="absolute")),
    "musketeer, compared at one moment, per cost, 6 modules, mix 0.3": modules(
        musketeer(gain_per="cost", probe=4, first_cycle=False, mix=0.3)
    ),
    "musketeer per cost, 6 modules, Adafactor in backward": blocks(
        inner=torch.optim.Adafactor, in_backward=True, blocks="module", active=6
    ),
    "Adafactor in backward, all parameters": blocks(
        inner=torch.optim.Adafactor, in_backward=True, blocks={"all": ".*"}, policy="top"
    ),
    "LoRA, rank 4": lora,
    "GaLore, rank 8": galore,
}
OTHERS = (ADAMW, *list(METHODS)[-3:])
"""What is no policy of blocks."""


def make(given: argparse.Namespace, where: str, seed: int) -> Any:
    """Return a task."""
    if given.size in language.SIZES:
        return language.make(given.size, seed)
    return tasks.make(where, seed, given.cache, given.size)


def train(
    task: Task, optimizer: Any, batches: Iterator[Any], steps: int, falling: bool = False
) -> float:
    """Train for some steps; return the CPU seconds of this process."""
    began = time.process_time()
    rates = [group["lr"] for group in optimizer.param_groups]
    for step, (x, y) in zip(range(steps), batches, strict=False):
        for group, lr in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = lr * (1 - step / steps) if falling else lr
        optimizer.zero_grad()
        F.cross_entropy(task.model(x), y).backward()
        optimizer.step()
    return time.process_time() - began


def step_times(given: argparse.Namespace) -> dict[str, float]:
    """Return the time of a step of each method in steps of AdamW, kept in a file."""
    path = given.rows.with_name("times.csv")
    known = {(r["size"], r["method"]): float(r["time"]) for r in rows(path)}
    wanted = {name: METHODS[name] for name in (ADAMW, *given.methods)}
    if any((given.size, name) not in known for name in wanted):
        running = []
        for name, make_optimizer in wanted.items():
            task = make(given, given.where[-1], TUNING)
            running.append((name, task, make_optimizer(task.model, 1e-3, 0), task.batches()))
        spent = dict.fromkeys(wanted, 0.0)
        for turn in range(given.turns):
            for name, task, optimizer, batches in running:
                seconds = train(task, optimizer, batches, given.turn_steps)
                spent[name] += seconds if turn else 0.0
        known |= {(given.size, name): t / spent[ADAMW] for name, t in spent.items()}
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("size", "method", "time"))
            writer.writerows((*key, f"{value:.3f}") for key, value in known.items())
    return {name: known[given.size, name] for name in wanted}


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
    task = make(given, where, seed)
    torch.manual_seed(seed)
    optimizer = METHODS[method](task.model, rate, seed)
    steps = round(given.budget / given.times[method])
    train(task, optimizer, task.batches(), steps, falling=True)
    loss, accuracy = task.score()
    row = (*key, steps, f"{loss:.4f}", f"{accuracy:.4f}")
    with given.rows.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not done:
            writer.writerow(FIELDS)
        writer.writerow(row)


def tune(given: argparse.Namespace, where: str, method: str) -> None:
    """Try three rates, and further ones while the best is at an edge."""
    tried = given.rates
    while tried:
        for rate in tried:
            cell(given, where, method, rate, TUNING)
        at, known = RATES.index(best(given, where, method)), trials(given, where, method)
        beyond = (*RATES[max(at - 1, 0) : at], *RATES[at + 1 : at + 2])
        tried = tuple(rate for rate in beyond if rate not in known)


def trials(given: argparse.Namespace, where: str, method: str) -> dict[float, float]:
    """Return the losses on the tuning seed by rate."""
    key = (given.rates_of or given.size, where, method, str(TUNING))
    tried = [r for r in rows(given.rows) if (r["size"], r["task"], r["method"], r["seed"]) == key]
    return {float(row["rate"]): float(row["loss"]) for row in tried}


def best(given: argparse.Namespace, where: str, method: str) -> float:
    """Return the rate of the least loss on the tuning seed."""
    losses = trials(given, where, method)
    return min(losses, key=losses.__getitem__)


def leader(given: argparse.Namespace, method: str) -> str:
    """Return the method whose rate a policy takes: itself unless rates are shared."""
    if not given.share_rates or method in (ADAMW, "top 2"):
        return method
    alike = [m for m in given.methods if m not in (ADAMW, "top 2")]
    return next(m for m in alike if m.endswith("6 modules") == method.endswith("6 modules"))


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="small")
    parser.add_argument("--budget", type=int, default=100, help="in steps of AdamW")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--turns", type=int, default=11, help="of measuring times; the first does not count"
    )
    parser.add_argument("--turn-steps", type=int, default=15)
    parser.add_argument("--rates", type=float, nargs="+", default=FIRST, help="tried first")
    parser.add_argument("--rates-of", help="another size, whose rates are taken: nothing is tuned")
    parser.add_argument("--share-rates", action="store_true")
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--rows", type=Path, default=HERE / "rows.csv")
    parser.add_argument("--cache", type=Path, default=Path("results/block_policies"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.where = ("bottom",) if given.size in language.SIZES else tasks.WHERE
    given.times = step_times(given)
    for method in dict.fromkeys(leader(given, m) for m in given.methods):
        for where in () if given.rates_of else given.where:
            tune(given, where, method)
    for seed in range(given.seeds):
        for method in given.methods:
            for where in given.where:
                rate = best(given, where, leader(given, method))
                cell(given, where, method, rate, seed)


if __name__ == "__main__":
    main()
