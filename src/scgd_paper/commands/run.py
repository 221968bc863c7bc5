"""``python -m scgd_paper run ID...``: the paper's experiments, with a table and a report."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

from scgd.errors import check_folder

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser("run", help="run experiments of the paper, with a report")
    parser.add_argument("ids", nargs="+", metavar="ID", help="see list; all runs everything")
    parser.add_argument("--panel", action="append", default=[], metavar="P", help="only this panel")
    parser.add_argument(
        "--method", action="append", default=[], metavar="M", help="only this method"
    )
    parser.add_argument(
        "--extra", action="append", default=[], metavar="M",
        help="a method that came after the paper, beside its own (auto, musketeer-today)",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=X",
        help="another setting: gamma=3, k0, h, lambda, eta, T, n, p, passes, ...; "
        "tables then go to DIR/gamma=3",
    )  # fmt: skip
    parser.add_argument("--runs", type=positive, metavar="N", help="runs per method")
    parser.add_argument(
        "--settings", choices=("published", "paper", "both"),
        help="default: published; both for all, where both exist",
    )  # fmt: skip
    parser.add_argument("--workers", type=positive, metavar="N", help="processes (default: cores)")
    parser.add_argument("--cluster", metavar="ADDRESS", help="a Dask scheduler to run it on")
    parser.add_argument("--out", type=Path, default=Path("results"), metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="short runs, to see that all works")
    parser.add_argument("--data", metavar="FOLDER", help="data sets (or SCGD_DATA)")
    parser.add_argument("--published", metavar="FOLDER", help="published curves to lay over ours")
    parser.add_argument("--no-progress", action="store_true", help="no bar")


MOST = 10_000
"""Runs or processes beyond which a number is a slip."""


def positive(text: str) -> int:
    """Return a whole number above zero that can be meant."""
    if not text.isdecimal() or text.strip("0") == "":
        raise argparse.ArgumentTypeError(f"must be a whole number above zero, got {text!r}")
    if len(text) > len(str(MOST)) or int(text) > MOST:
        raise argparse.ArgumentTypeError(f"must be {MOST} at most, got {text[:40]!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Run what is missing, then write the report; 1 if anything had to be left out."""
    from scgd.errors import CommandError
    from scgd_paper.published import published_folder
    from scgd_paper.registry import EXPERIMENTS, find
    from scgd_paper.report import build, say, terminal_summary
    from scgd_paper.runner import Options, run_experiment
    from scgd_paper.variation import read_changes, varied

    changes = read_changes(args.set)
    experiments = EXPERIMENTS | {row.id: varied(row, changes) for row in find(args.ids)}
    rows = [experiments[row.id] for row in find(args.ids)]
    wanted = settings_of(args.settings, args.ids)
    published = published_folder(args.published)
    check_folder(args.out, "--out")
    out = args.out / "quick" if args.quick and args.out == Path("results") else args.out
    out = out / ",".join(sorted(args.set)) if changes else out
    started = time.monotonic()
    troubles: list[str] = []  # one experiment that fails does not stop the others
    tables = []
    for settings, chosen in selections(rows, wanted, args).items():
        options = Options(
            out, settings, args.runs, args.workers or cores(), args.quick, args.data,
            not args.no_progress, args.cluster,
        )  # fmt: skip
        for id, panels in chosen.items():
            try:
                left_out = run_experiment(experiments[id], panels, options)
                troubles += [f"{id}: {sentence}" for sentence in left_out]
                tables.append((experiments[id], settings, [panel.name for panel in panels]))
            except CommandError as error:
                troubles.append(f"{id}: {error}")
    for row, settings, names in tables:
        say(terminal_summary(row, out, settings, names))
    try:
        page = build(out, published, experiments)
        say(f"\n{page} written; {time.monotonic() - started:.1f} s in all")
    except CommandError as error:
        troubles.append(str(error))
    for sentence in troubles:
        print(f"scgd: {sentence}", file=sys.stderr)
    return 1 if troubles else 0


def settings_of(given: str | None, ids: list[str]) -> tuple[str, ...]:
    """Return the settings to run: those asked for, both where all of the paper is redone."""
    if given is None:
        given = "both" if "all" in ids else "published"
    return ("published", "paper") if given == "both" else (given,)


def selections(
    rows: list[Any], wanted: tuple[str, ...], args: argparse.Namespace
) -> dict[str, dict[str, list[Any]]]:
    """Return per setting the experiments and panels to run; those with one setting come once."""
    from scgd.errors import UsageError
    from scgd_paper.registry import select

    out: dict[str, dict[str, list[Any]]] = {}
    problems = []
    for settings in wanted:
        try:
            chosen = select(rows, args.panel, settings, args.method, args.extra)
        except UsageError as error:  # a name may exist in one of the settings only
            problems.append(error)
            continue
        for row in rows:
            if row.id in chosen:
                out.setdefault(row.setting(settings), {}).setdefault(row.id, chosen[row.id])
                if len(wanted) == 1 and settings not in row.panels:
                    what = f"{row.id}: no {settings} settings are known, the paper's are used"
                    print(what, file=sys.stderr)
    if len(problems) == len(wanted):
        raise problems[0]
    return out


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
