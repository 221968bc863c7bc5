"""``scgd screen MODULE:FUNCTION``: which inputs of a function matter, from the command line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from scgd.command import add_running, check_places, find, running, start, write_json, write_page
from scgd.errors import UsageError, printable


def add_parser(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser("screen", help="find the inputs of a function that matter")
    parser.add_argument("function", metavar="MODULE:FUNCTION", help="fun(x), importable from here")
    inputs = parser.add_mutually_exclusive_group(required=True)
    inputs.add_argument("--dim", type=int, metavar="P", help="P inputs between --bounds")
    inputs.add_argument("--space", metavar="FILE", help="the parameters in a .toml file")
    parser.add_argument("--bounds", type=float, nargs=2, metavar=("LOW", "HIGH"))
    parser.add_argument("--max-evals", type=int, metavar="N", help="hard budget of evaluations")
    parser.add_argument("--fdr", type=float, default=0.1, help="false-discovery rate (0.1)")
    parser.add_argument("--level", type=float, default=0.95, help="of the intervals (0.95)")
    parser.add_argument(
        "--negligible", type=float, default=0.1, help="part of the largest effect (0.1)"
    )
    add_running(parser)


def run(args: argparse.Namespace) -> int:
    """Screen; 0 when the run ended as planned, 1 when nothing could be told."""
    from scgd import Reporting, screen

    check_places(args)
    module, fun = find(args.function)
    space: Any = start(args)
    if args.dim is not None:
        if args.bounds is None:
            raise UsageError("--dim needs --bounds LOW HIGH, between which the inputs vary")
        space = [tuple(args.bounds)] * args.dim
    elif args.bounds is not None:
        raise UsageError("--bounds makes no sense with --space, whose parameters have their own")
    with running(args, module) as keywords:
        found = screen(
            fun,
            space,
            max_evals=args.max_evals,
            fdr=args.fdr,
            level=args.level,
            negligible=args.negligible,
            reporting=Reporting(progress=not args.no_progress, log=args.log),
            **keywords,
        )
    if args.out is not None:
        write_json(found.to_dict(), Path(args.out))
    if args.plot is not None:
        write_page(found.plot().to_html(include_plotlyjs=True), args)
    print("\n".join(printable(line) for line in repr(found).splitlines()))
    return 0 if found.n_pairs else 1
