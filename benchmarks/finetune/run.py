"""Fine-tune MiniLM with every method at equal CPU seconds; rows that exist are not run again.

    python benchmarks/finetune/run.py --seconds 300 --seeds 0 1 2 3 4
    python benchmarks/finetune/run.py --shifted --seconds 45 --seeds 0 1 --rate 2e-4 --methods default

``--shifted`` takes the vowels out of longer words, so that the lower layers must change.

Every method's rates are tried for ``--trial`` seconds on a seed with test sentences of its own, then
the best rate is judged on the other seeds, one seed over all methods after the other. A run may be
stopped and started again at any time: rows go to results.csv beside this file as they are ready.
``table.py`` prints the table.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from methods import FURTHER, LEADERS, METHODS, RIVALS
from sentences import TUNING

HERE = Path(__file__).parent
SHIFTED = "shifted.csv"
"""The file whose rows are of sentences whose long words have no vowels."""
FIELDS = (
    "method", "rate", "seed", "seconds", "steps", "accuracy", "loss", "gradients_state_mb",
    "activations_mb", "process_mb", "visits",
)  # fmt: skip


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows stored so far."""
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def store(path: Path, fields: tuple[str, ...], row: dict[str, Any]) -> None:
    """Append a row to a file, which begins with the names of its fields."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, fields)
        if new:
            writer.writeheader()
        writer.writerow(row)


def train(path: Path, method: str, rate: float, seed: int, seconds: float) -> dict[str, Any]:
    """Return the row of one cell, run in a process of its own on one thread."""
    command = [sys.executable, str(HERE / "cell.py"), method, str(rate), str(seed), str(seconds)]
    command += ["shifted"] if path.name == SHIFTED else []
    one = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=one)
    row: dict[str, Any] = json.loads(done.stdout.split("ROW ")[1])
    return row


def run(path: Path, method: str, rate: float, seed: int, seconds: float) -> None:
    """Run one cell, unless its row exists."""
    for row in read(path):
        key = (row["method"], float(row["rate"]), int(row["seed"]), float(row["seconds"]))
        if key == (method, rate, seed, seconds):
            return
    row = train(path, method, rate, seed, seconds)
    store(path, FIELDS, row)
    print(method, rate, seed, "accuracy", row["accuracy"], "loss", row["loss"], flush=True)


def best_rate(path: Path, method: str, seconds: float) -> float:
    """Return the rate with the lowest loss on the tuning seed."""
    rows = [
        r for r in read(path)
        if r["method"] == method and int(r["seed"]) == TUNING and float(r["seconds"]) == seconds
    ]  # fmt: skip
    return float(min(rows, key=lambda r: float(r["loss"]))["rate"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--trial", type=float, default=60.0, help="seconds of a run for the rates")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), help="instead of the plan")
    parser.add_argument("--shifted", action="store_true", help="long words without vowels")
    parser.add_argument("--rate", type=float, help="one for all seeds: nothing is tuned")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.out = options.out or HERE / (SHIFTED if options.shifted else "results.csv")
    seeds = options.seeds
    stages = [(LEADERS, seeds[:1]), (RIVALS, seeds[:1]), (LEADERS + RIVALS, seeds[1:])]
    stages += [(FURTHER, seeds)]
    if options.methods:
        stages = [(options.methods, seeds)]
    for methods, judged in stages:
        for method in methods:
            for rate in METHODS[method].rates if options.rate is None else ():
                run(options.out, method, rate, TUNING, options.trial)
        for seed in judged:
            for method in methods:
                rate = options.rate or best_rate(options.out, method, options.trial)
                run(options.out, method, rate, seed, options.seconds)


if __name__ == "__main__":
    main()
