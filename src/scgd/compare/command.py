"""``scgd compare``: run the arena and write its report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

__all__ = ["add_parser", "run"]

QUICK = {
    "problems": "ridge5,quad,hp",
    "methods": "auto,musketeer,cma-sep,powell",
    "budgets": "2000",
    "seeds": "11-12",
}
FULL = {
    "problems": (
        "ridge10,ridge5,ridge2,ridge1,logistic10,logistic5,logistic2,logistic1,hp,quadnoisy,"
        "rosennoisy,quad,rosen,quad10000,rosen10000,ng-sphere,ng-cigar,largescale-f1,largescale-f2,"
        "largescale-f10,largescale-f15,noisy-f1,noisy-f16,rollout,breast_cancer,digits,ridge5rotated,"
        "dense,densenoisy,rastrigin"
    ),
    "methods": (
        "auto,musketeer,spsa-adam-tuned,cma,cma-sep,cma-vkd,ngopt,tbpsa,ng-noisy,powell,l-bfgs-b,"
        "cobyqa,de,torchzero,optuna-tpe,optuna-cmaes"
    ),
    "budgets": "1e4,1e5",
    "seeds": "11-20",
}


def add_parser(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser(
        "compare", help="run methods on problems side by side and write a report"
    )
    parser.add_argument("--problems", help=f"names, comma-separated (default: {QUICK['problems']})")
    parser.add_argument("--methods", help=f"names, comma-separated (default: {QUICK['methods']})")
    parser.add_argument("--budgets", help="evaluations, comma-separated (default: 2000)")
    parser.add_argument("--seeds", help="first-last (default: 11-12)")
    parser.add_argument("--full", action="store_true", help="the whole arena: hours")
    parser.add_argument("--max-seconds", type=float, default=60.0, help="per run (default: 60)")
    parser.add_argument("--out", type=Path, default=Path("arena"), help="folder (default: arena)")
    parser.add_argument("--list", action="store_true", help="list problems and methods")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the arena; 0 when all went well, 2 for a wrong argument."""
    from scgd.compare.arena import Row, run_arena
    from scgd.compare.outside import OUTSIDE
    from scgd.compare.peers import METHODS
    from scgd.compare.problems import PROBLEMS
    from scgd.compare.report import markdown_table, write_report

    if args.list:
        print("problems:", ", ".join([*PROBLEMS, *OUTSIDE]))
        print("methods:", ", ".join([*METHODS, "spsa-adam-tuned"]))
        return 0
    chosen = dict(FULL if args.full else QUICK)
    chosen.update({name: given for name in chosen if (given := getattr(args, name)) is not None})

    def show(row: Row) -> None:
        text = (
            f"{row.problem:16} {row.method:16} {row.budget:8d} seed {row.seed}: gap {row.gap:.3g}"
        )
        print(f"{text}  {row.seconds:.2f} s  {row.note}", flush=True)

    try:
        first, _, last = chosen["seeds"].partition("-")
        rows = run_arena(
            chosen["problems"].split(","),
            chosen["methods"].split(","),
            [int(float(budget)) for budget in chosen["budgets"].split(",")],
            range(int(first), int(last or first) + 1),
            args.out / "results.csv",
            args.max_seconds,
            show,
        )
    except (ValueError, ModuleNotFoundError) as error:
        print(f"scgd compare: {error}", file=sys.stderr)
        return 2
    write_report(rows, args.out / "report.html")
    print(markdown_table(rows))
    print(f"wrote {args.out / 'report.html'}")
    return 0
