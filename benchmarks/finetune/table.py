"""Print the rows of results.csv as a table: means over the seeds that were not used for tuning."""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=HERE / "results.csv")
    parser.add_argument("--tuning", type=int, default=100)
    options = parser.parse_args()
    rows = pd.read_csv(options.results)
    rows = rows[rows["seed"] != options.tuning]
    titles = (
        "seconds",
        "method",
        "rate",
        "seeds",
        "accuracy, mean (least)",
        "loss, mean (largest)",
    )
    titles += ("steps", "gradients + state, MB", "activations, MB")
    print(f"| {' | '.join(titles)} |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (seconds, method), part in rows.groupby(["seconds", "method"], sort=False):
        print(
            f"| {seconds:g} | {method} | {part['rate'].iloc[0]:g} | {len(part)} "
            f"| {part['accuracy'].mean():.3f} ({part['accuracy'].min():.3f}) "
            f"| {part['loss'].mean():.3f} ({part['loss'].max():.3f}) | {part['steps'].mean():.0f} "
            f"| {part['gradients_state_mb'].max():.1f} | {part['activations_mb'].max():.0f} |"
        )


if __name__ == "__main__":
    main()
