"""The page of results: ``python -m scgd_arena.results docs/arena-results.md``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from scgd_arena.cells import Cell
from scgd_arena.rows import STORED, Rows
from scgd_arena.score import Class, Score, behind, classes, floored, scores
from scgd_arena.suites import CONFIRM, DESIGN, suite

__all__ = ["page"]

HEAD = """# The arena's results

This page is generated from the rows in `src/scgd_arena/rows` by
`python -m scgd_arena.results docs/arena-results.md`. A test fails where page and rows differ.
[The arena](arena.md) says how the rows are made and how to make them again.
Rows of an older `auto` are not kept: a class has the cells that were run again since it changed.

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

Instances {first} to {last} of each function; of the newer suites the first three.
"""
CONFIRMED = """
## Instances never looked at

Instances {first} to {last}, drawn for this release: aggregates only.
"""
HELD = """
## What must hold

The share of cells within 2x of the best rival, and the mean ratio. 0.2.0 was measured on
other cells of the kind. Design instances count where the confirmation has no rows.
"""
LOSING = """
## Cells in which a rival is more than twice as good

Design instances; the ratio and the rival behind each cell, the largest first.
"""
CROSSED = """
## The grid of bounds, noise, failures and samples

{n} cells. {found} comparisons in which a cell with bounds (or samples) is more than 1.3 times worse
than the same cell without, or any cell more than 2 times worse than pycma:
"""
AIMS: tuple[tuple[str, str, str, float, float], ...] = (
    ("BBOB, exact", "noiseless", "76%, 2.5", 0.85, 1.5),
    ("BBOB, noisy", "noisy", "83%, 1.46", 0.85, 1.3),
    ("BBOB, exact, bounds", "noiseless, bounds", "76%, 1.5", 0.85, 1.4),
    ("BBOB, noisy, bounds", "noisy, bounds", "77%, 6.1", 0.85, 1.4),
    ("outside, exact", "outside", "55%, 3.2", 0.75, 1.8),
    ("outside, noisy", "outside, noise", "50%, 5.0", 0.70, 2.0),
    ("50 evaluations", "few, 50", "mean 1.6", 0.0, 1.2),
    ("100 evaluations", "few, 100", "mean 1.7", 0.0, 1.2),
    ("200 evaluations", "few, 200", "mean 1.5", 0.0, 1.2),
)
"""What a row is called, its group or family, what 0.2.0 had on other cells, and what must hold."""
NAMED: tuple[tuple[str, str, str, float], ...] = (
    ("fishing, 50 days", "fishing50@2500", "cma", 2.0),
    ("plateaus", "plateaus20@2000", "cma", 2.0),
    ("sawtooth, noise 1e-6", "sawtooth10-s1e-06@1000", "", 2.0),
    ("300 inputs, noise, bounds", "inputs300-s0.15@3000", "", 0.01),
)
"""What a row is called, its cell, and what must hold: gap, or ratio to that rival, at most."""
NEWER = ("outside", "outside, noise", "few", "grid")
"""Groups whose rows are those of three instances."""
COLUMNS = (
    "class", "cells", "gap of auto", "best rival", "its gap", "within 2x", "within 10x",
    "mean ratio", "rivals",
)  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """The stored rows of some instances, and their scores."""

    ending: str
    instances: Sequence[int]

    @cached_property
    def own(self) -> Rows:
        """The rows of `auto`."""
        return Rows(STORED / f"auto{self.ending}.csv")

    @cached_property
    def peers(self) -> Rows:
        """The rows of rivals."""
        return Rows(STORED / f"peers{self.ending}.csv")

    @cached_property
    def scores(self) -> list[Score]:
        """The scores of all cells that have rows."""
        cells = suite("all")
        newer = [cell for cell in cells if cell.group in NEWER]
        older = [cell for cell in cells if cell.group not in NEWER]
        found = scores(older, self.own, self.peers, self.instances)
        return found + scores(newer, self.own, self.peers, self.instances[:3])

    def row(self, name: str) -> Class | None:
        """Return the row of a group or a family, if it has scores."""
        both = [*classes(self.scores, lambda cell: cell.group)]
        both += classes(self.scores, lambda cell: cell.family)
        return next((row for row in both if row.name == name), None)


def page() -> str:
    """Return the page as Markdown."""
    design, confirm = Stored("", list(DESIGN)), Stored("-confirm", list(CONFIRM))
    parts = [HEAD, HELD, held(design, confirm), DESIGNED.format(first=DESIGN[0], last=DESIGN[-1])]
    parts += [table(classes(design.scores, by)) for by in (by_group, by_family)]
    lines, n = behind(design.own, design.peers, list(DESIGN)[:3])
    parts += [LOSING, losing(design.scores), CROSSED.format(n=n, found=len(lines)), listed(lines)]
    parts.append(CONFIRMED.format(first=CONFIRM[0], last=CONFIRM[-1]))
    parts.append(table(classes(confirm.scores, by_group)))
    return "\n".join(parts).rstrip() + "\n"


def by_group(cell: Cell) -> str:
    """Return the group of a cell."""
    return cell.group


def by_family(cell: Cell) -> str:
    """Return the family of a cell."""
    return cell.family


def held(design: Stored, confirm: Stored) -> str:
    """Return the table of what must hold, and whether it does."""
    lines = [
        "| class | cells | 0.2.0 | must | design | never looked at | holds |",
        "|---" * 7 + "|",
    ]
    for name, part, before, within, mean in AIMS:
        rows = [stored.row(part) for stored in (design, confirm)]
        last = rows[1] or rows[0]
        if last is None:
            continue
        texts = ["-" if row is None else f"{row.within_2:.0%}, {row.mean:.2f}" for row in rows]
        good = last.within_2 >= within and last.mean <= mean
        must = f"{within:.0%}, {mean:g}" if within else f"mean {mean:g}"
        lines.append(
            f"| {name} | {last.cells} | {before} | {must} | {' | '.join(texts)} | {yes(good)} |"
        )
    for name, key, rival, most in NAMED:
        gap = floored(design.own.gap(key, "auto", design.instances[:3]))
        other = floored(design.peers.gap(key, rival, design.instances[:3])) if rival else 1.0
        if gap / other == gap / other:
            must = f"{most:g} times pycma" if rival else f"gap {most:g}"
            lines.append(
                f"| {name} | 1 | - | {must} | {gap / other:.2g} | - | {yes(gap / other <= most)} |"
            )
    keys = {c.key for c in suite("grid") if c.shape[0] < 100 and not c.shape[1]}
    ratio = design.own.micros(keys, "auto") / design.peers.micros(keys, "cma")
    if ratio == ratio:
        found = f"{len(keys)} | - | that of pycma | {ratio:.2g} times | - | {yes(ratio <= 1)}"
        lines.append(f"| CPU per evaluation, noise | {found} |")
    return "\n".join([*lines, ""])


def yes(good: bool) -> str:
    """Return what stands in the last column."""
    return "yes" if good else "**no**"


def losing(found: Sequence[Score]) -> str:
    """Return a line per group with the cells in which a rival is more than twice as good."""
    parts: dict[str, list[Score]] = {}
    for score in sorted(found, key=lambda score: -score.ratio):
        parts.setdefault(score.cell.group, [])
        if score.ratio > 2:
            parts[score.cell.group].append(score)
    return listed(
        f"{group} ({len(part)}): "
        + (", ".join(f"`{s.cell.own_key}` {s.ratio:.3g} ({s.rival})" for s in part) or "none")
        for group, part in sorted(parts.items())
    )


def listed(lines: Iterable[str]) -> str:
    """Return a Markdown list."""
    return "\n".join([*(f"- {line}" for line in lines), ""])


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
