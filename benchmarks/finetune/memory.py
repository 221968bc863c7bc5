"""Memory and time of a step of every method on MiniLM; rows that exist are not measured again.

    python benchmarks/finetune/memory.py --seconds 12

Each method trains for some CPU seconds in a process of its own, several times in turn, and its least
time per step counts. Needs peft, galore-torch, apollo-torch and bitsandbytes for their methods.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from methods import METHODS
from run import read, store

HERE = Path(__file__).parent
FIELDS = (
    "method", "turn", "seconds_per_step", "gradients_state_mb", "activations_mb", "process_mb",
)  # fmt: skip
SHOWN = (
    "adamw", "adamw, 8 bits", "galore", "apollo", "lisa", "adafactor in backward", "lora", "top-2",
    "badam", "misa", "per cost", "per cost, adafactor",
)  # fmt: skip


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "memory.csv")
    options = parser.parse_args()
    one = {**os.environ, "OMP_NUM_THREADS": "1"}
    for turn in range(options.turns):
        for method in SHOWN:
            if any((r["method"], r["turn"]) == (method, str(turn)) for r in read(options.out)):
                continue
            rate = str(METHODS[method].rates[0])
            command = [sys.executable, "-W", "ignore", str(HERE / "cell.py"), method, rate, "0"]
            command += [str(options.seconds), "only-measure"]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=one)
            row = json.loads(done.stdout.split("ROW ")[1])
            row |= {"turn": turn, "seconds_per_step": round(row["seconds"] / row["steps"], 4)}
            store(options.out, FIELDS, {name: row[name] for name in FIELDS})


if __name__ == "__main__":
    main()
