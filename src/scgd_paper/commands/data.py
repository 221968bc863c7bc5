"""``python -m scgd_paper data``: where the data sets are, and how to get them."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser("data", help="show where data sets are, or get them")
    parser.add_argument("action", nargs="?", choices=("show", "get"), default="show")
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets (default: all)")
    parser.add_argument("--data", metavar="FOLDER", help="where to look (or SCGD_DATA)")


def run(args: argparse.Namespace) -> int:
    """Show or get data sets."""
    from scgd.errors import UsageError, nearest
    from scgd_paper.datasets import DATASETS, MissingData, fetch, locate, require

    for name in args.names:
        if name not in DATASETS:
            raise UsageError(f"there is no data set {name!r}{nearest(name, DATASETS)}")
    for name in args.names or DATASETS:
        if args.action == "get" and locate(name, args.data) is None:
            fetch(name)
        try:
            print(f"{name:<15}{require(name, args.data)}")
        except MissingData as missing:
            print(f"{name:<15}{missing}")
    return 0
