"""The page of results: ``python -m scgd_arena.results docs/arena-results.md``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from scgd_arena.rows import STORED, Rows
from scgd_arena.score import Class, classes, scores
from scgd_arena.suites import CONFIRM, DESIGN, suite

__all__ = ["page"]

HEAD = """# The arena's results

This page is generated from the rows in `src/scgd_arena/rows` by
`python -m scgd_arena.results docs/arena-results.md`. A test fails where page and rows differ.
[The arena](arena.md) says how the rows are made and how to make them again.

How to read a row:

- **cells**: functions, dimensions and budgets of the class.
- **gap**: the median of f(x) - f* at the point that is recommended.
- **best rival**: the single method that is nearest to the best of every cell.
- **within 2x**, **within 10x**: the share of cells in which `auto` is within that factor of
  whichever rival is best in that cell.
- **mean ratio**: the geometric mean of max(1, `auto` / best rival of the cell). 1 is the best.
- **rivals**: the median number of rivals run per cell. With two of them a class looks better than
  it is.

Classes that lose most stand first.
"""
DESIGNED = """
## Instances used for design

Instances {first} to {last} of each function.
"""
CONFIRMED = """
## Instances nobody looked at

Instances {first} to {last}, aggregates only. `auto` was not designed on them.
"""
COLUMNS = (
    "class", "cells", "gap of auto", "best rival", "its gap", "within 2x", "within 10x",
    "mean ratio", "rivals",
)  # fmt: skip


def page() -> str:
    """Return the page as Markdown."""
    parts = [HEAD, DESIGNED.format(first=DESIGN[0], last=DESIGN[-1])]
    parts += tables("", list(DESIGN), by_family=True)
    parts.append(CONFIRMED.format(first=CONFIRM[0], last=CONFIRM[-1]))
    parts += tables("-confirm", list(CONFIRM), by_family=False)
    return "\n".join(parts).rstrip() + "\n"


def tables(ending: str, instances: Sequence[int], *, by_family: bool) -> list[str]:
    """Return the tables of some instances: by group and, where wanted, by family."""
    own, peers = Rows(STORED / f"auto{ending}.csv"), Rows(STORED / f"peers{ending}.csv")
    found = scores(suite("all"), own, peers, instances)
    parts = [table(classes(found, lambda cell: cell.group))]
    return [*parts, table(classes(found, lambda cell: cell.family))] if by_family else parts


def table(rows: Sequence[Class]) -> str:
    """Return a Markdown table, the largest mean ratio first."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    for row in sorted(rows, key=lambda row: (-row.mean, row.name)):
        entries = (
            row.name, str(row.cells), f"{row.gap:.2g}", row.peer, f"{row.peer_gap:.2g}",
            f"{row.within_2:.0%}", f"{row.within_10:.0%}", f"{row.mean:.2f}", str(row.n_peers),
        )  # fmt: skip
        lines.append("| " + " | ".join(entries) + " |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
