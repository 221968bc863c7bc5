"""``python -m scgd_paper list``: what can be run."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser("list", help="list the experiments and their panels")
    parser.add_argument("ids", nargs="*", metavar="ID", help="only these experiments")


def run(args: argparse.Namespace) -> int:
    """Print the experiments."""
    from scgd_paper.registry import find

    for row in find(args.ids or ["all"]):
        print(f"{row.id:<15}{row.title} ({row.paper}; settings: {', '.join(row.panels)})")
        names = list(dict.fromkeys(p.name for panels in row.panels.values() for p in panels))
        if len(names) > 6 and not args.ids:
            names = [*names[:3], f"... ({len(names)} panels; list {row.id} shows all)"]
        print(f"{'':<15}{' '.join(names)}")
    return 0
