"""The picture of the paper's pages: ``python docs/images/figure_1.py`` draws figure-1.csv.

``--from FOLDER`` first takes medians and quartiles from the table that ``make run`` has written.
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import lines  # noqa: E402

NAMES = {
    "musketeer-absolute": ("absolute gain", lines.OURS),
    "musketeer-average": ("average gain", "#5fb8b4"),
    "musketeer-square": ("square gain", "#e0701a"),
    "sphere": ("sphere", "#8a5cc9"),
    "uniform": ("uniform", lines.OTHER),
    "full": ("full", "#b4bac2"),
}


def take(folder):
    """Keep medians and quartiles of one panel."""
    import pandas as pd

    table = pd.read_csv(folder / "zo-linear.csv")
    table = table[(table["panel"] == "ridge-alpha10") & (table["settings"] == "published")]
    with (HERE / "figure-1.csv").open("w") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("method", "pass", "low", "middle", "high"))
        for (method, k), some in table.groupby(["method", "pass"], sort=False):
            if k % 5 == 0:
                out.writerow(
                    (
                        method,
                        int(k),
                        *(f"{v:.4g}" for v in np.quantile(some["value"], (0.25, 0.5, 0.75))),
                    )
                )


def draw():
    """Write the picture."""
    with (HERE / "figure-1.csv").open() as file:
        rows = list(csv.DictReader(file))
    curves = {}
    for method, (name, colour) in NAMES.items():
        mine = [row for row in rows if row["method"] == method]
        columns = [[float(row[c]) for row in mine] for c in ("pass", "low", "middle", "high")]
        curves[name] = (*columns, colour)
    ratio = curves["uniform"][2][-1] / curves["absolute gain"][2][-1]
    title = f"Learned probabilities: {ratio:.0f} times below uniform"
    note = "Ridge, α = 10: gap to the minimum; median and quartiles of 20 runs"
    marks = (0, 50, 100, 150, 200)
    svg = lines.picture(curves, title, note, "passes over the coordinates", marks)
    (HERE / "figure-1.svg").write_text(svg)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", type=Path, dest="folder")
    folder = parser.parse_args().folder
    if folder is not None:
        take(folder)
    draw()
