"""What each rule and constant of `auto` is worth: ``python -m scgd_arena.ablation``.

Each is switched off, or moved by half, on instances that nothing was designed on. Rows are kept as
they are made, so a run goes on where it was stopped; only cells are run whose code uses what is
changed.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import numpy as np

from scgd_arena.cells import Cell
from scgd_arena.oracle import FLOOR
from scgd_arena.peers import METHODS
from scgd_arena.runner import run_one
from scgd_arena.switches import Change, Name, changes, names_used

__all__ = ["ROWS", "Table", "cells", "gaps_of", "main", "page", "worth"]

FIRST, AGAIN = (201, 202), (211, 212, 213)
"""Instances on which changes are tried, and on which what looks useless is tried again."""
MOST = 10.0
"""A cell counts with at most this factor: one lucky restart is not a rule's worth."""
WORTH, NEEDED = 0.02, 0.10
"""What is worth less overall, and less in each class, is deleted."""
HEADER = ("change", "first", "cell", "gaps")
AS_IT_IS = ""
ROWS = Path(__file__).parent / "ablation.csv"
T = TypeVar("T")
R = TypeVar("R")


@cache
def cells() -> list[Cell]:
    """Return the cells: dimensions and budgets of no other suite, where a suite is by formula."""
    found = [Cell("exact", "", f"ioh-f{f}-d12", 720) for f in range(1, 25)]
    found += [Cell("exact, bounds", "", f"ioh-f{f}-d12", 600, True) for f in range(2, 25, 3)]
    noises = ((12, 30, "0.01", 2), (12, 100, "0.0001", 3), (25, 60, "0.1", 3))
    found += [
        Cell("noise", "", f"ioh-f{f}-d{d}-s{s}", per * d)
        for d, per, s, every in noises
        for f in (1, 2, 3, 6, 7, 8, 10, 12, 14, 15, 17, 21)[::every]
    ]
    found += [
        Cell("few", "", f"ioh-f{f}-d{d}", n, True)
        for d, n in ((8, 60), (16, 100), (30, 100))
        for f in (1, 3, 8, 10, 15, 21)
    ]
    found += [Cell("noise", "", "ioh-f1-d8-s0.05", 4800)]  # enough for joint directions
    found += [Cell("noise, bounds", "", f"ioh-f{f}-d12-s0.01", 480, True) for f in (1, 8, 15, 21)]
    applied = (
        ("coating10", 400), ("bragg16", 800), ("fishing50", 1500), ("lotka", 300),
        ("linear40", 1000), ("plateaus20", 1200), ("sawtooth10", 600), ("beam", 250),
        ("reducer", 400), ("levy10", 700),
    )  # fmt: skip
    found += [Cell("outside", "", name, n) for name, n in applied]
    noisy = (("coating10-s0.01", 400), ("lotka-s0.05", 300), ("sawtooth10-s1e-06", 600),
             ("inputs300-s0.15", 1600))  # fmt: skip
    found += [Cell("outside, noise", "", name, n) for name, n in noisy]
    often = (("walled-d10", 800), ("absolute-d10", 600), ("turned-d10", 400),
             ("lost-half-d10", 800), ("largest-line-d10", 800), ("units-d5", 300))  # fmt: skip
    found += [Cell("everyday", "", name, n) for name, n in often]
    found += [Cell("sparse", "", f"ng-rastrigin-10+90{s}", 2000) for s in ("", "-s0.1")]
    found += [Cell("samples", "", f"grid-{p}-s{s}-f0-sampled-box", n)
              for p, n in ((6, 600), (20, 1200)) for s in ("0.01",)]  # fmt: skip
    return found


# ---- rows --------------------------------------------------------------------------------------


@dataclass
class Table:
    """The stored gaps: of every cell as `auto` is, and of changed cells for each change.

    A change that is done has a line without a cell: its other cells are as they were.
    """

    path: Path

    def __post_init__(self) -> None:
        self.gaps: dict[tuple[str, int], dict[str, tuple[float, ...]]] = {}
        if self.path.exists():
            with self.path.open(newline="") as file:
                for name, first, cell, gaps in list(csv.reader(file))[1:]:
                    known = self.gaps.setdefault((name, int(first)), {})
                    known[cell] = tuple(map(float, gaps.split()))

    def has(self, name: str, first: int) -> bool:
        """Tell whether a change is done."""
        return "" in self.gaps.get((name, first), {})

    def add(self, name: str, first: int, gaps: dict[str, tuple[float, ...]]) -> None:
        """Keep the gaps of a change, in the file too."""
        self.gaps[name, first] = {**gaps, "": ()}
        fresh = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if fresh:
                writer.writerow(HEADER)
            for cell, values in self.gaps[name, first].items():
                writer.writerow((name, first, cell, " ".join(f"{value:.3g}" for value in values)))

    def clear(self) -> None:
        """Forget everything."""
        self.gaps = {}
        self.path.unlink(missing_ok=True)


# ---- runs --------------------------------------------------------------------------------------


def gaps_of(cell: Cell, instances: Sequence[int]) -> tuple[float, ...]:
    """Return the gaps of `auto` on some instances, to three digits as they are stored."""
    run = METHODS["auto"].run
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = [run_one(cell.task(i), run, cell.budget, i, 30.0) for i in instances]
    return tuple(float(f"{each.run.gap:.3g}") for each in done)


def as_it_is(cell: Cell, instances: Sequence[int]) -> tuple[tuple[float, ...], set[Name]]:
    """Return the gaps of `auto` as it is, and the names its code uses."""
    with names_used() as names:
        gaps = gaps_of(cell, instances)
    return gaps, names


def tried(
    name: str,
    instances: Sequence[int],
    base: dict[str, tuple[float, ...]],
    names: dict[str, set[Name]],
) -> dict[str, tuple[float, ...]]:
    """Return the gaps of a change where they differ; a run that fails counts as no run at all."""
    change = by_name()[name]
    found = {}
    for cell in cells():
        if change.uses & names[cell.own_key]:
            with change.made():
                gaps = gaps_of(cell, instances)
            if gaps != base[cell.own_key]:
                found[cell.own_key] = gaps
    return found


@cache
def by_name() -> dict[str, Change]:
    """Return all changes by their names."""
    return {change.name: change for change in changes()}


def look(table: Table, instances: Sequence[int], jobs: int) -> dict[str, set[Name]]:
    """Run `auto` as it is, and return the names used; if it is another one, rows are forgotten."""
    found, names = {}, {}
    each = partial(as_it_is, instances=instances)
    for cell, (gaps, used) in zip(cells(), mapped(each, cells(), jobs), strict=True):
        found[cell.own_key], names[cell.own_key] = gaps, used
    known = table.gaps.get((AS_IT_IS, instances[0]), {})
    if {**found, "": ()} != known:
        if known:
            print("auto is not what it was when the rows were made: they are made anew")
            table.clear()
        table.add(AS_IT_IS, instances[0], found)
    return names


def mapped(call: Callable[[T], R], entries: Sequence[T], jobs: int) -> Iterator[R]:
    """Map over entries, in processes of their own if there are several jobs."""
    if jobs == 1:
        yield from map(call, entries)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(call, entries)


# ---- what it is worth --------------------------------------------------------------------------


@dataclass(frozen=True)
class Worth:
    """What a change does to the gaps: factors, overall and by class.

    Attributes
    ----------
    name
        The change.
    mean, error
        By how much gaps grow over all cells, geometric mean less 1, and its standard error.
    groups
        The same by class of cells.
    n_cells, worse, better
        Cells that changed, and those by more than a quarter.
    """

    name: str
    mean: float
    error: float
    groups: dict[str, float]
    n_cells: int
    worse: int
    better: int

    @property
    def useless(self) -> bool:
        """Whether it is worth less than two percent, and no class needs it."""
        little = self.mean < WORTH and max(self.groups.values()) < NEEDED
        return little and self.n_cells > 0

    @property
    def small(self) -> bool:
        """Whether it changes little, either way."""
        return abs(self.mean) < WORTH and max(map(abs, self.groups.values())) < NEEDED


def worth(table: Table, name: str, firsts: Iterable[int]) -> Worth:
    """Return what a change is worth, over the instances that were run."""
    logs: dict[str, list[float]] = {}
    for first in firsts:
        base = table.gaps[AS_IT_IS, first]
        now = table.gaps[name, first]
        for cell in cells():
            gaps = base[cell.own_key], now.get(cell.own_key, base[cell.own_key])
            before, after = (max(float(np.median(each)), FLOOR) for each in gaps)
            change = math.log(after / before)
            logs.setdefault(cell.group, []).append(float(np.clip(change, *LOG)))
    every = np.concatenate([*logs.values()])
    groups = {group: float(np.expm1(np.mean(part))) for group, part in logs.items()}
    return Worth(
        name, float(np.expm1(every.mean())), float(every.std() / np.sqrt(every.size)), groups,
        int(np.count_nonzero(every)), int((every > math.log(1.25)).sum()),
        int((every < -math.log(1.25)).sum()),
    )  # fmt: skip


LOG = (-math.log(MOST), math.log(MOST))
HEAD = """# What the rules of `auto` are worth

This page is generated from `src/scgd_arena/ablation.csv` by `make ablation`. A test fails
where page and rows differ. Each rule of `auto` is switched off, or another one takes its
place (in brackets), and constants are moved by half, on {cells} cells of instances {instances},
which nothing was designed on.

How to read a row:

- **all**: by how much the gap f(x) - f* grows without the rule, geometric mean over all cells, with
  its standard error. A cell counts with a factor of {most:g} at most.
- **class that needs it**: the class of cells whose gaps grow most.
- **changed**: cells whose answers are not the same; in brackets worse and better ones, by more than
  a quarter.

What is worth less than {worth:.0%}, and less than {needed:.0%} in each class, is tried on further
instances ({again}), and deleted if they agree.
"""
COLUMNS = "| {} | all | class that needs it | changed |"


def page(path: Path = ROWS) -> str:
    """Return the page as Markdown."""
    table = Table(path)
    head = HEAD.format(
        cells=len(cells()), instances=f"{FIRST[0]} and {FIRST[-1]}", most=MOST, worth=WORTH,
        needed=NEEDED, again=f"{AGAIN[0]} to {AGAIN[-1]}",
    )  # fmt: skip
    parts = [head]
    named = {change.name: change.kind for change in changes()}
    for title, kind in (("Rules, switched off", "rule"), ("Constants, moved by half", "constant")):
        done = [name for name in named if named[name] == kind and table.has(name, FIRST[0])]
        some = "All" if len(done) == sum(entry == kind for entry in named.values()) else len(done)
        parts.append(f"## {title}\n\n{some} have been tried.\n")
        parts.append(shown([worth(table, name, FIRST[:1]) for name in done], kind))
    again = [name for name in named if table.has(name, AGAIN[0])]
    if again:
        parts.append(f"## Tried again, on instances {AGAIN[0]} to {AGAIN[-1]}\n")
        parts.append(shown([worth(table, name, AGAIN[:1]) for name in again], "change"))
    parts.append("## See also\n\n[The arena](arena.md), [what `auto` does](auto.md).")
    return "\n".join(parts).rstrip() + "\n"


def shown(found: Sequence[Worth], kind: str) -> str:
    """Return a Markdown table, the largest worth first; small changes of constants are counted."""
    lines = [COLUMNS.format(kind), "|---" * 4 + "|"]
    same = [each for each in found if not each.n_cells]
    rest = [each for each in found if kind == "constant" and each.small and each.n_cells]
    for each in sorted(found, key=lambda each: -each.mean):
        group = max(each.groups, key=lambda name: each.groups[name])
        needs = f"{group} {each.groups[group]:+.0%}" if each.groups[group] > 0.005 else "none"
        if each not in rest and each not in same:
            lines.append(
                f"| {each.name} | {each.mean:+.1%} ({each.error:.1%}) | {needs} |"
                f" {each.n_cells} ({each.worse}, {each.better}) |"
            )
    if same and kind != "constant":
        names = "; ".join(each.name for each in same)
        lines.append(f"\nOf these no cell changes, so nothing is known: {names}.")
    if same and kind == "constant":
        lines.append(f"\nOf {len(same)} other changes no cell changes, so nothing is known.")
    if rest:
        lines.append(
            f"\n{len(rest)} other changes of constants move all cells by less than {WORTH:.0%} and "
            f"no class by {NEEDED:.0%}."
        )
    return "\n".join([*lines, ""])


def main(argv: Sequence[str] | None = None) -> int:
    """Make the rows that are missing; tell what is worth little; write the page."""
    parser = argparse.ArgumentParser(prog="python -m scgd_arena.ablation", description=__doc__)
    parser.add_argument("--only", default="", help="changes whose names match this expression")
    parser.add_argument("--kind", choices=("rule", "constant"), help="only these")
    parser.add_argument("--part", default="1/1", help="a part of them: 2/3 is the second of three")
    parser.add_argument("--again", action="store_true", help="useless ones, on other instances")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--rows", type=Path, default=ROWS, help="where they are")
    parser.add_argument("--page", type=Path, help="the page to write")
    args = parser.parse_args(argv)
    table, instances = Table(args.rows), AGAIN if args.again else FIRST
    chosen = [
        change.name
        for change in changes()
        if re.search(args.only, change.name) and args.kind in (None, change.kind)
    ]
    if args.again:
        done = [name for name in chosen if table.has(name, FIRST[0])]
        chosen = [name for name in done if worth(table, name, FIRST[:1]).useless]
    names = look(table, instances, args.jobs)
    part, n_parts = map(int, args.part.split("/"))
    todo = [name for name in chosen if not table.has(name, instances[0])][part - 1 :: n_parts]
    base = table.gaps[AS_IT_IS, instances[0]]
    each = partial(tried, instances=instances, base=base, names=names)
    for name, gaps in zip(todo, mapped(each, todo, args.jobs), strict=True):
        table.add(name, instances[0], gaps)
        found = worth(table, name, instances[:1])
        print(f"{found.mean:+7.1%} {found.n_cells:4d} cells  {name}", file=sys.stderr, flush=True)
    if args.page:
        args.page.write_text(page(args.rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
