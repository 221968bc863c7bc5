"""Write docs/benchmarks.md from benchmarks/measured.json: ``python benchmarks/measured_page.py``.

A measurement is an entry of ``measured``: what was run, when, and the rows it printed. Where
``ours`` names a column, the page says in how many rows it is ahead; of columns of ratios it says the
mean and the worst. No one writes these by hand.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import geometric_mean
from typing import Any

HERE = Path(__file__).parent
ROWS = HERE / "measured.json"
PAGE = HERE.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

This page is generated from `benchmarks/measured.json` by `python benchmarks/measured_page.py`. A
test fails where page and rows differ. Two cores without a GPU. Each claim of speed has a script that
times scgd and a rival in the same run; `make bench` runs all of them.

## On pages of their own

| question | command | results |
| --- | --- | --- |
"""
END = """
## See also

[The arena's results](arena-results.md), [the paper's results](paper-results.md), [PyTorch
benchmarks](torch-benchmarks.md), [what it is not for](when-not.md).
"""
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?$")


def page() -> str:
    """Return the page."""
    stored = json.loads(ROWS.read_text())
    parts = [HEAD]
    parts += [f"| {what} | `{how}` | {where} |\n" for what, how, where in stored["elsewhere"]]
    parts += [section(entry) for entry in stored["measured"]]
    return "".join(parts) + END


def section(entry: dict[str, Any]) -> str:
    """Return what was run, when, the table, and how often ours is lowest."""
    command = f"`{entry['command']}`, " if entry["command"] else ""
    lines = [f"\n## {entry['title']}\n", f"{entry['note']}\n", f"{command}{entry['date']}.\n"]
    lines += [row(entry["columns"]), row(["---"] * len(entry["columns"]))]
    lines += [row(cells) for cells in entry["rows"]]
    if "ours" in entry:
        lines += ["", counted(entry)]
    for k, name in enumerate(entry["columns"]):
        if name.startswith("ratio"):
            ratios = [value(cells[k]) for cells in entry["rows"]]
            lines += [
                "",
                f"{name}: geometric mean {geometric_mean(ratios):.2f} over {len(ratios)} rows, worst {max(ratios)}.",
            ]
    return "\n".join(lines) + "\n"


def row(cells: list[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def counted(entry: dict[str, Any]) -> str:
    """Return in how many rows ours is below each rival, and level with it."""
    mine, said = entry["columns"].index(entry["ours"]), []
    for other, name in enumerate(entry["columns"]):
        pairs = [(value(cells[mine]), value(cells[other])) for cells in entry["rows"]]
        pairs = [(a, b) for a, b in pairs if a is not None and b is not None]
        if other <= mine or not pairs:
            continue
        below, level = sum(a < b for a, b in pairs), sum(a == b for a, b in pairs)
        behind = len(pairs) - below - level
        said.append(f"{name} in {below} of {len(pairs)}, level in {level}, behind in {behind}")
    return f"{entry['ours']} is ahead of {'; of '.join(said)}."


def value(cell: str) -> float | None:
    """Return the number a cell begins with; nothing where it has none.

    Examples
    --------
    >>> value("0.46*"), value("55.93 (55.12, 55.96)"), value("")
    (0.46, 55.93, None)
    """
    words = cell.replace("*", "").split()
    if not words or not NUMBER.match(words[0]):
        return None
    return float(words[0].replace(",", ""))


if __name__ == "__main__":
    PAGE.write_text(page())
