"""Draw which layers each method trained: shares of its visits, means over the judged seeds.

    python benchmarks/finetune/visits.py visits.html

Rows come from results.csv beside this file.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
from table import HERE, judged


def shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the share of each layer in the visits of each method."""
    rows = rows[rows["visits"].notna()]
    counts = rows["visits"].map(json.loads).apply(pd.Series).sort_index(axis=1)
    part = counts.div(counts.sum(axis=1), axis=0)
    return part.groupby(rows["method"], sort=False).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--results", type=Path, default=HERE / "results.csv")
    options = parser.parse_args()
    found = shares(judged(options.results, seconds=300.0, trial=60.0))
    names = [f"layer {int(c) + 1}" for c in found.columns]
    names[0], names[-1] = f"{names[0]}, lowest", f"{names[-1]}, top"
    picture = go.Figure(
        go.Heatmap(
            z=found.to_numpy().T,
            x=list(found.index),
            y=names,
            colorscale="Teal",
            texttemplate="%{z:.2f}",
            showscale=False,
            xgap=3,
            ygap=3,
        )
    )
    picture.update_layout(
        template="plotly_white",
        title="Share of the visits that each layer got",
        width=860,
        height=360,
        margin={"l": 110, "r": 20, "t": 60, "b": 40},
    )
    picture.write_html(options.page, include_plotlyjs=True, config={"displayModeBar": False})


if __name__ == "__main__":
    main()
