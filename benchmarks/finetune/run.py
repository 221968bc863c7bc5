"""Fine-tune MiniLM with every method at equal CPU seconds; rows that exist are not run again.

    python benchmarks/finetune/run.py --seconds 300 --seeds 0 1 2 3 4

First every method's rates are tried on a seed of its own (``--tuning``), then the best rate is
judged on the others. Rows go to results.csv beside this file; ``table.py`` prints the table.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import torch
from cell import train
from methods import METHODS

HERE = Path(__file__).parent
FIELDS = (
    "method", "rate", "seed", "seconds", "steps", "accuracy", "loss", "gradients_state_mb",
    "activations_mb", "visits",
)  # fmt: skip


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows stored so far."""
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def run(path: Path, method: str, rate: float, seed: int, seconds: float) -> None:
    """Run one cell, unless its row exists."""
    for row in read(path):
        key = (row["method"], float(row["rate"]), int(row["seed"]), float(row["seconds"]))
        if key == (method, rate, seed, seconds):
            return
    row = train(method, rate, seed, seconds)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        writer.writerow(row)
    print(method, rate, seed, "accuracy", row["accuracy"], "loss", row["loss"], flush=True)


def best_rate(path: Path, method: str, tuning: int, seconds: float) -> float:
    """Return the rate with the lowest test loss on the tuning seed."""
    rows = [
        r for r in read(path)
        if r["method"] == method and int(r["seed"]) == tuning and float(r["seconds"]) == seconds
    ]  # fmt: skip
    return float(min(rows, key=lambda r: float(r["loss"]))["rate"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--tuning", type=int, default=100)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument(
        "--untuned", action="store_true", help="take the middle rate of each method"
    )
    parser.add_argument("--out", type=Path, default=HERE / "results.csv")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if not options.untuned:
        for method in options.methods:
            for rate in METHODS[method].rates:
                run(options.out, method, rate, options.tuning, options.seconds)
    for seed in options.seeds:
        for method in options.methods:
            rate = METHODS[method].rates[1]
            if not options.untuned:
                rate = best_rate(options.out, method, options.tuning, options.seconds)
            run(options.out, method, rate, seed, options.seconds)


if __name__ == "__main__":
    main()
