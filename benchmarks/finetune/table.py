"""Print the rows of results.csv as a table: each method at its best rate, on the judged seeds.

    python benchmarks/finetune/table.py

A method whose rate was changed after a judged run has older rows at another rate; they do not count.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from run import best_rate
from sentences import TUNING

HERE = Path(__file__).parent
TITLES = (
    "method", "rate", "seeds", "accuracy, mean (least)", "loss, mean", "seconds per step",
    "gradients + state, MB", "activations, MB", "process, MB",
)  # fmt: skip


def judged(path: Path, seconds: float, trial: float) -> pd.DataFrame:
    """Return the rows at the rate that was best on the tuning seed."""
    rows = pd.read_csv(path)
    rows = rows[(rows["seed"] != TUNING) & (rows["seconds"] == seconds)]
    best = rows["method"].map(lambda method: best_rate(path, method, trial))
    return rows[rows["rate"] == best]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=HERE / "results.csv")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--trial", type=float, default=60.0)
    options = parser.parse_args()
    rows = judged(options.results, options.seconds, options.trial)
    print(f"| {' | '.join(TITLES)} |")
    print("|---" * len(TITLES) + "|")
    parts = [part for _, part in rows.groupby("method")]
    for part in sorted(parts, key=lambda part: -part["accuracy"].mean()):
        print(
            f"| {part['method'].iloc[0]} | {part['rate'].iloc[0]:g} | {len(part)} "
            f"| {part['accuracy'].mean():.3f} ({part['accuracy'].min():.3f}) "
            f"| {part['loss'].mean():.2f} | {(part['seconds'] / part['steps']).mean():.2f} "
            f"| {part['gradients_state_mb'].max():.0f} | {part['activations_mb'].max():.0f} "
            f"| {part['process_mb'].max():.0f} |"
        )


if __name__ == "__main__":
    main()
