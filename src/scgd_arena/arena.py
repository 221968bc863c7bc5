"""Run a suite of the arena: `auto` anew, against the rows of peers that are stored."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from scgd.errors import UsageError
from scgd_arena.cells import Cell
from scgd_arena.command import span
from scgd_arena.page import write_page
from scgd_arena.peers import OURS, STANDING, check_methods
from scgd_arena.rows import STORED, Line, Rows
from scgd_arena.runner import Block, blocks, fill
from scgd_arena.score import KEPT, Score, behind, class_table, classes, compared, scores, worse
from scgd_arena.suites import CONFIRM, DESIGN, SPENT, suite

__all__ = ["run_suite", "say"]

SMALL_INSTANCES = (1, 2, 3)


def run_suite(args: argparse.Namespace) -> int:
    """Run a suite, print its score, write its page; 1 if cells became worse."""
    cells, instances = suite(args.suite), chosen_instances(args)
    methods = chosen_methods(args)
    own, peers = files(args, instances)
    if all(name in OURS for name in methods):
        cells = comparable(cells, peers)
    if "auto" in methods and not args.resume:
        own.forget({cell.own_key for cell in cells}, instances)
    first = frozenset(cell.key for cell in suite("design-small"))
    for rows, names in (
        (own, [name for name in methods if name in OURS]),
        (peers, [name for name in methods if name not in OURS]),
    ):
        work = blocks(cells, names, instances, rows, args.max_seconds, first)
        fill(work, rows, args.jobs, say(len(work)))
        if work and args.store:
            rows.pack()
    found = scores(cells, own, peers, instances)
    if not found:
        print("no cell has both rows of auto and rows of peers; --methods peers makes them")
        return 0
    tell(args, cells, own, peers, instances, found)
    return regressions(args, cells, own, instances)


def comparable(cells: Sequence[Cell], peers: Rows) -> list[Cell]:
    """Return the cells in which `auto` can be compared: with peers, or with its own stored rows."""
    known = {*peers.by_cell(), *Rows(STORED / "auto.csv").by_cell()}
    known |= {*Rows(STORED / "auto-0.1.csv").by_cell()}
    found = [cell for cell in cells if cell.key in known or cell.own_key in known]
    if out := len(cells) - len(found):
        print(f"{out} of {len(cells)} cells have no stored rows and are left out")
    return found


def chosen_instances(args: argparse.Namespace) -> Sequence[int]:
    """Return the instances: of the design, of the confirmation, or as given."""
    if args.instances and args.confirm:
        raise UsageError(
            f"--confirm has instances of its own; leave out --instances {args.instances}"
        )
    if args.confirm:
        return list(CONFIRM)
    if args.instances:
        given = span(args.instances)
        if {*given} & {*CONFIRM}:
            raise UsageError(
                f"instances {CONFIRM[0]} to {CONFIRM[-1]} are for confirmation, looked at as "
                "aggregates only; use --confirm"
            )
        return given
    return list(SMALL_INSTANCES if args.suite == "design-small" else DESIGN)


def chosen_methods(args: argparse.Namespace) -> list[str]:
    """Return the methods to run; `auto` alone unless said otherwise."""
    names: list[str] = []
    for name in (args.methods or "auto").split(","):
        names.extend(STANDING if name == "peers" else [name])
    check_methods(names)
    return names


def files(args: argparse.Namespace, instances: Sequence[int]) -> tuple[Rows, Rows]:
    """Return our rows and the peers'."""
    ending = "-confirm" if instances[0] >= SPENT[0] else ""
    folder = STORED if args.store else args.out
    path = folder / f"auto{ending}.csv"
    peers = Rows(STORED / f"peers{ending}.csv")
    if not args.store:
        peers.path = args.out / f"peers{ending}.csv"
        for line in Rows(peers.path).lines:
            peers.remember(line)
    return Rows(path), peers


def say(total: int) -> Callable[[Block, list[Line]], None]:
    """Return a report of progress, one line about every two seconds."""
    began = last = time.monotonic()
    count = 0

    def report(block: Block, lines: list[Line]) -> None:
        nonlocal last, count
        count += 1
        failed = [line.note for line in lines if "failed" in line.note]
        now = time.monotonic()
        if failed or now - last > 2 or count == total:
            last = now
            note = f"  {failed[0]}" if failed else ""
            text = f"[{count}/{total}, {now - began:.0f} s] {block.method} {block.key}{note}"
            print(text, file=sys.stderr, flush=True)

    return report


def tell(
    args: argparse.Namespace,
    cells: Sequence[Cell],
    own: Rows,
    peers: Rows,
    instances: Sequence[int],
    found: Sequence[Score],
) -> None:
    """Print the score by class and write the page; of a confirmation, aggregates only."""
    table = classes(found, lambda cell: cell.group)
    if not args.confirm:
        table = [*classes(found, lambda cell: cell.family), *table]
    print(class_table(table))
    if len(found) < len(cells):
        print(f"{len(cells) - len(found)} of {len(cells)} cells have no peers' rows")
    path = args.out / f"{args.suite}{'-confirm' if args.confirm else ''}.html"
    title = f"Peer arena: {args.suite}, instances {instances[0]} to {instances[-1]}"
    write_page(
        path,
        [score.cell for score in found],
        own,
        peers,
        instances,
        table,
        title,
        each=not args.confirm,
    )
    print(f"wrote {path}")
    if any(cell.group == "grid" for cell in cells):
        lines, n = behind(own, peers, instances)
        print("\n".join(lines))
        print(f"{len(lines)} comparisons of {n} cells of the grid are worse than they may be")


def regressions(
    args: argparse.Namespace, cells: Sequence[Cell], own: Rows, instances: Sequence[int]
) -> int:
    """Tell the cells that are worse than the stored rows of `auto`."""
    if args.store or args.confirm:
        return 0
    won = [cell for cell in cells if cell.group == "home" or cell.name == "epidemic"]
    first, stored = Rows(STORED / "auto-0.1.csv"), Rows(STORED / "auto.csv")
    lost = worse(won, own, first, instances, KEPT)
    found = worse(cells, own, stored, instances)
    for title, part in (("behind version 0.1", lost), ("worse", found)):
        for cell, now, then in part:
            print(f"{title}: {cell.own_key} {now:.3g}, stored {then:.3g} ({now / then:.3g}x)")
    if n := len(compared(won, own, first, instances)):
        print(f"{len(lost)} of {n} cells that version 0.1 was made for: more than 1.1x behind")
    n = len(compared(cells, own, stored, instances))
    if n:
        print(f"{len(found)} of {n} cells more than 1.25x worse than the stored rows of auto")
    if missing := len(cells) - n:
        print(f"{missing} cells have no stored rows of auto for these instances: nothing is known")
    return 1 if found else 0
