"""The tables of paper-results.md that are made from stored rows.

``python docs/paper_tables.py`` writes them into the page again, from ``paper-rows.csv``; with
``--from FOLDER ...`` it first takes rows from tables that ``python -m scgd_paper run`` has written.
"""

import argparse
import re
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
PAGE, ROWS = HERE / "paper-results.md", HERE / "paper-rows.csv"
COLUMNS = ["experiment", "panel", "settings", "method", "measure", "runs", "mean", "std", "median"]
BLOCK = re.compile(r"(<!-- rows: ([\w-]+) -->\n).*?(<!-- end -->)", re.S)
LINEAR = {
    "ridge-alpha5": "ridge α=5", "ridge-alpha10": "ridge α=10", "logistic-alpha2": "logistic α=2",
    "logistic-alpha5": "logistic α=5", "logistic-alpha10": "logistic α=10",
}  # fmt: skip
METHODS = {
    "full": "full", "uniform": "uniform", "sphere": "sphere", "musketeer-average": "average",
    "musketeer-absolute": "absolute", "musketeer-square": "square",
}  # fmt: skip
LATER = {
    "musketeer-absolute": "absolute, as published", "musketeer-today": "Musketeer today",
    "auto": "auto",
}  # fmt: skip
THEORY = {
    "gradient-norm": "Theorems 1 to 3: gradient norm after 300 passes",
    "bound": "Theorem 4, α = 1", "bound-0.75": "Theorem 4, α = 3/4",
    "bound-0.5": "Theorem 4, α = 1/2", "weights": "Theorem 5: largest p·d − 1",
    "regret": "Regret term (B.3)", "regret-bound": "Regret bound (B.3)",
    "phase-length": "Phase length, p = 100", "rescaled": "Conjecture: deviation over √γ",
}  # fmt: skip


def number(value: float) -> str:
    """Return a number in three digits: 0.0171, 2.53e-3."""
    if value == 0 or 0.01 <= abs(value) < 10_000:
        return f"{value:.3g}"
    digits, power = f"{value:.2e}".split("e")
    return f"{digits}e{int(power)}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def figure_1(rows: pd.DataFrame) -> str:
    """Ours beside the published ends: mean (standard deviation) of 20 runs."""
    from scgd_paper.summary import published_finals

    here = rows[(rows["experiment"] == "zo-linear") & (rows["runs"] == 20)]
    out = []
    for panel, title in LINEAR.items():
        mine = here[here["panel"] == panel].set_index("method")
        known = published_finals("zo-linear", panel, 200.0)["gap"]
        out.append([title, "ours", *(spread(mine.loc[m]) for m in METHODS)])
        out.append(["", "published", *(spread(known[m]["final"]) for m in METHODS)])
    return table(["panel", "", *METHODS.values()], out)


def spread(row) -> str:
    return f"{number(row['mean'])} ({number(row['std'])})"


def came_after(rows: pd.DataFrame) -> str:
    """Median final gaps of three runs, at equal queries."""
    here = rows[(rows["experiment"] == "zo-linear") & (rows["runs"] == 3)]
    gaps = here.pivot_table(index="method", columns="panel", values="median")
    out = [[name, *(number(gaps.loc[m, p]) for p in LINEAR)] for m, name in LATER.items()]
    ratios = (gaps.loc["musketeer-absolute", p] / gaps.loc["auto", p] for p in LINEAR)
    out.append(["auto is lower by", *(f"{ratio:.2g} times" for ratio in ratios)])
    return table(["", *LINEAR.values()], out)


def theory(rows: pd.DataFrame) -> str:
    """Final figures of the panels of ``theory``, in the order of the table."""
    here = rows[rows["experiment"] == "theory"]
    out = []
    for panel, title in THEORY.items():
        some = here[(here["panel"] == panel) & (here["measure"] != "slope")]  # of single runs
        for i, row in enumerate(some.sort_values("median").to_dict("records")):
            figures = (number(row[c]) for c in ("mean", "std", "median"))
            out.append([title if i == 0 else "", row["method"], str(row["runs"]), *figures])
    return table(["what", "method", "runs", "mean", "std", "median"], out)


BLOCKS = {"figure-1": figure_1, "came-after": came_after, "theory": theory}


def rendered(page: str, rows: pd.DataFrame) -> str:
    """Return the page with its tables made again."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{BLOCKS[found[2]](rows)}\n{found[3]}", page)


def stored() -> pd.DataFrame:
    """Return the rows that are kept."""
    return pd.read_csv(ROWS)


def taken(folders: list[Path]) -> pd.DataFrame:
    """Return the final figures of tables that were run."""
    from scgd_paper import EXPERIMENTS
    from scgd_paper.summary import summarize

    rows = []
    for folder in folders:
        for experiment in EXPERIMENTS.values():
            if not (folder / f"{experiment.id}.csv").exists():
                continue
            for panel in summarize(experiment, folder):
                for row in panel["finals"]:
                    rows.append({"experiment": experiment.id} | panel | row)
    found = pd.DataFrame(rows)[COLUMNS]
    figures = ["mean", "std", "median"]
    return found.assign(**{c: found[c].map(lambda v: float(f"{v:.6g}")) for c in figures})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", nargs="+", type=Path, dest="folders", default=[])
    args = parser.parse_args()
    if args.folders:
        taken(args.folders).to_csv(ROWS, index=False)
    PAGE.write_text(rendered(PAGE.read_text(), stored()))


if __name__ == "__main__":
    main()
