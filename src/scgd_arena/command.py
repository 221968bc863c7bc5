"""``python -m scgd_arena``: methods and peers on problems, on a suite, or on your function."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from scgd import cli
from scgd.errors import UsageError, check_folder

__all__ = ["build_parser", "main", "run"]

QUICK = {
    "problems": "ridge5,quad,hp",
    "methods": "auto,musketeer,cma-sep,powell",
    "budgets": "2000",
    "instances": "1-2",
}


MOST_JOBS, SHORTEST, LAST = 1000, 0.1, 10**6
"""Processes, seconds of a run and instances that can be meant."""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m scgd_arena",
        description="Run methods and peers side by side: on your function, or on a suite.",
    )
    parser.add_argument(
        "function",
        nargs="?",
        metavar="MODULE:FUNCTION",
        help="your own fun(x), importable from here",
    )
    own = parser.add_argument_group("your own function")
    own.add_argument("--dim", type=int, metavar="P", help="start at P zeros")
    own.add_argument("--x0", metavar="X", help="start at 1,2,3 or at the numbers in a file")
    own.add_argument("--bounds", type=float, nargs=2, metavar=("LOW", "HIGH"))
    own.add_argument("--max-evals", type=int, metavar="N", help="evaluations of every run")
    arena = parser.add_argument_group("problems and suites")
    arena.add_argument("--suite", metavar="NAME", help="a suite of cells; see --list")
    arena.add_argument(
        "--confirm", action="store_true", help="this release's instances, aggregates only"
    )
    arena.add_argument("--store", action="store_true", help="keep the rows beside the sources")
    arena.add_argument("--resume", action="store_true", help="go on with the runs of --out")
    arena.add_argument("--problems", help=f"names, comma-separated (default: {QUICK['problems']})")
    arena.add_argument("--budgets", help="evaluations, comma-separated (default: 2000)")
    parser.add_argument(
        "--methods", help="names, comma-separated; with --suite 'peers' stands for all peers"
    )
    parser.add_argument(
        "--instances", "--seeds", metavar="FIRST-LAST",
        help="default: 1-3 of your own function, 1-5 of a suite (design-small 1-3), else 1-2",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument(
        "--max-seconds", type=float, default=60.0, help="of CPU per run (default: 60)"
    )
    parser.add_argument("--out", type=Path, default=Path("arena"), help="folder (default: arena)")
    parser.add_argument("--list", action="store_true", help="list suites, problems and methods")
    parser.set_defaults(run=run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return cli.main(argv, build_parser())


def run(args: argparse.Namespace) -> int:
    """Run the arena; 0 when all went well, 1 when cells became worse."""
    if args.list:
        return show()
    chosen = [name for name in ("function", "suite", "problems") if getattr(args, name)]
    if len(chosen) > 1:
        raise UsageError(f"choose one of MODULE:FUNCTION, --suite and --problems, got {chosen}")
    if not 1 <= args.jobs <= MOST_JOBS:
        wanted = f"a whole number above zero, {MOST_JOBS} at most"
        raise UsageError(f"--jobs must be {wanted}, got {args.jobs}")
    if not SHORTEST <= args.max_seconds < math.inf:
        wanted = f"at least {SHORTEST} and finite"
        raise UsageError(f"--max-seconds must be {wanted}, got {args.max_seconds}")
    if args.budgets and not args.problems and chosen:
        raise UsageError(f"--budgets goes with --problems, not with {chosen[0]}; see --max-evals")
    check_folder(args.out, "--out")
    if args.function:
        from scgd_arena.own import compare_function

        return compare_function(args)
    if args.suite:
        from scgd_arena.arena import run_suite

        return run_suite(args)
    return run_problems(args)


def show() -> int:
    """List what there is."""
    from scgd_arena.applications import APPLICATIONS
    from scgd_arena.mixed import TUNING
    from scgd_arena.outside import OUTSIDE
    from scgd_arena.peers import METHODS
    from scgd_arena.practice import PRACTICE
    from scgd_arena.problems import PROBLEMS
    from scgd_arena.rollouts import ROLLOUTS
    from scgd_arena.suites import SUITES

    print("suites:", ", ".join(f"{name} ({len(cells())} cells)" for name, cells in SUITES.items()))
    print(
        "problems:", ", ".join([*PROBLEMS, *OUTSIDE, *PRACTICE, *ROLLOUTS, *APPLICATIONS, *TUNING])
    )
    print("also: bbob-f8-d20, bbob-largescale-f8-d80, bbob-noisy-f9-d20, bbob-mixint-f8-d10,")
    print("      ioh-f8-d30-s0.01, ng-cigar-10+90-s0.1 with other functions, dimensions and noise,")
    print("      coating10-s0.01 with noise, grid-20-s0.01-f0.1-sampled-corner-box")
    print("methods:", ", ".join(METHODS))
    return 0


def span(text: str) -> list[int]:
    """Return the numbers of ``first-last``.

    Examples
    --------
    >>> span("3-5"), span("7")
    ([3, 4, 5], [7])
    """
    first, _, last = text.partition("-")
    try:
        numbers = range(int(first), int(last or first) + 1)
    except ValueError:
        numbers = range(0)
    if not numbers or numbers[0] < 0 or numbers[-1] > LAST:
        wanted = f"first-last with 0 <= first <= last <= {LAST}"
        raise UsageError(f"--instances must be {wanted}, got {text!r}")
    return list(numbers)


def run_problems(args: argparse.Namespace) -> int:
    """Run chosen methods on chosen problems; a run that --out holds is not made again."""
    from scgd_arena.arena import say
    from scgd_arena.cells import build, named
    from scgd_arena.page import markdown_table, merged, write_page
    from scgd_arena.peers import check_methods
    from scgd_arena.rows import Rows
    from scgd_arena.runner import blocks, fill

    wanted = {name: getattr(args, name) or default for name, default in QUICK.items()}
    methods, instances = wanted["methods"].split(","), span(wanted["instances"])
    check_methods(methods)
    cells = named(wanted["problems"].split(","), budgets(wanted["budgets"]))
    for cell in cells:
        build(cell.name)
    rows = Rows(args.out / "results.csv")
    work = blocks(cells, methods, instances, rows, args.max_seconds)
    fill(work, rows, args.jobs, say(len(work)))
    print(markdown_table(merged(cells, rows, Rows(args.out / "none.csv")), instances))
    write_page(args.out / "report.html", cells, rows, Rows(args.out / "none.csv"), instances)
    print(f"wrote {args.out / 'report.html'}")
    return 0


def budgets(text: str) -> list[int]:
    """Return the budgets of a list such as ``1e4,20000``."""
    try:
        found = [int(float(part)) for part in text.split(",")]
    except ValueError:
        found = [0]
    if min(found) < 1:
        raise UsageError(f"--budgets must be numbers above zero, comma-separated, got {text!r}")
    return found
