"""The commands of the experiments: list, run, report, data."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from scgd import cli

__all__ = ["COMMANDS", "build_parser", "main"]

COMMANDS = ("show", "run", "report", "data")
"""The modules of the commands, in the order of the help."""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of ``python -m scgd_paper``."""
    modules = [f"{__name__}.{name}" for name in COMMANDS]
    return cli.build_parser(modules, "python -m scgd_paper", "The paper's experiments.")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return cli.main(argv, build_parser())
