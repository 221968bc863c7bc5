"""``scgd run ID...``: the paper's experiments, with a table and a report."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser("run", help="run experiments of the paper, with a report")
    parser.add_argument("ids", nargs="+", metavar="ID", help="see scgd list; all runs everything")
    parser.add_argument("--panel", action="append", default=[], metavar="P", help="only this panel")
    parser.add_argument("--runs", type=positive, metavar="N", help="runs per method")
    parser.add_argument("--settings", default="published", choices=("published", "paper"))
    parser.add_argument("--workers", type=positive, metavar="N", help="processes (default: cores)")
    parser.add_argument("--cluster", metavar="ADDRESS", help="a Dask scheduler to run it on")
    parser.add_argument("--out", type=Path, default=Path("results"), metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="short runs, to see that all works")
    parser.add_argument("--data", metavar="FOLDER", help="data sets (or SCGD_DATA)")
    parser.add_argument("--published", metavar="FOLDER", help="published curves to lay over ours")
    parser.add_argument("--no-progress", action="store_true", help="no bar")


def positive(text: str) -> int:
    """Return a whole number above zero."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number above zero, got {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Run what is missing, then write the report; 1 if anything had to be left out."""
    from scgd.errors import CommandError
    from scgd.experiments.published import published_folder
    from scgd.experiments.registry import EXPERIMENTS, find, select
    from scgd.experiments.report import build, say, terminal_summary
    from scgd.experiments.runner import Options, run_experiment

    rows = find(args.ids)
    chosen = select(rows, args.panel, args.settings)
    published = published_folder(args.published)
    out = args.out / "quick" if args.quick and args.out == Path("results") else args.out
    options = Options(
        out, args.settings, args.runs, args.workers or cores(), args.quick, args.data,
        not args.no_progress, args.cluster,
    )  # fmt: skip
    started = time.monotonic()
    troubles: list[str] = []  # one experiment that fails does not stop the others
    tables = []
    for id, panels in chosen.items():
        row = EXPERIMENTS[id]
        if args.settings not in row.panels:
            print(
                f"{id}: no {args.settings} settings are known, the paper's are used",
                file=sys.stderr,
            )
        try:
            troubles += [f"{id}: {sentence}" for sentence in run_experiment(row, panels, options)]
            tables.append(row)
        except CommandError as error:
            troubles.append(f"{id}: {error}")
    for row in tables:
        names = [panel.name for panel in chosen[row.id]]
        say(terminal_summary(row, out, row.setting(args.settings), names))
    try:
        page = build(out, published)
        say(f"\n{page} written; {time.monotonic() - started:.1f} s in all")
    except CommandError as error:
        troubles.append(str(error))
    for sentence in troubles:
        print(f"scgd: {sentence}", file=sys.stderr)
    return 1 if troubles else 0


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
