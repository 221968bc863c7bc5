"""``python -m scgd_paper report DIR``: the page, made again from the tables."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

__all__ = ["add_parser", "run"]


def add_parser(subparsers: Any) -> None:
    """Describe the command."""
    parser = subparsers.add_parser("report", help="write the report of a folder of results")
    parser.add_argument("folder", metavar="DIR", type=Path)
    parser.add_argument("--published", metavar="FOLDER", help="published curves to lay over ours")


def run(args: argparse.Namespace) -> int:
    """Write the report and say where it is."""
    from scgd_paper.published import published_folder
    from scgd_paper.report import build

    print(build(args.folder, published_folder(args.published)))
    return 0
