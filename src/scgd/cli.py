"""The ``scgd`` command: one registry of commands, each a module of its own.

A command's module has ``add_parser(subparsers)``, which describes its arguments and must stay cheap
to import, and ``run(args)``, which does the work and returns an exit code: 0 when all went well, 1
when something failed (said in one line on standard error), 2 when the command line is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from scgd import __version__
from scgd.errors import CommandError, UsageError, nearest, printable
from scgd.files import settled

COMMANDS = (
    "scgd.linear.tables.fit",
    "scgd.linear.tables.predict",
    "scgd.command",
    "scgd.screen_command",
)
"""The modules of the commands, in the order of ``scgd --help``."""


def build_parser(
    modules: Sequence[str] = COMMANDS,
    prog: str = "scgd",
    description: str = "SGD with coordinate sampling, from the shell.",
) -> argparse.ArgumentParser:
    """Return the parser of a whole command line, by default that of ``scgd``.

    Examples
    --------
    >>> build_parser().parse_args(["predict", "model.npz", "new.csv"]).command
    'predict'
    """
    parser = Parser(prog=prog, description=description)
    parser.add_argument("--version", action="version", version=f"scgd {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in modules:
        module = import_module(name)
        known = set(subparsers.choices)
        module.add_parser(subparsers)
        for command in set(subparsers.choices) - known:
            subparsers.choices[command].set_defaults(run=module.run)
    return parser


class Parser(argparse.ArgumentParser):
    """A parser that suggests the nearest command for one that does not exist."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            hint = nearest(str(value), action.choices)
            raise argparse.ArgumentError(action, f"{value!r} is not known{hint}")


UNTOLD = (errno.ENOSPC, errno.EIO, errno.EDQUOT)
"""What printing meets where standard output is a file and its disk is full."""


def main(argv: Sequence[str] | None = None, parser: argparse.ArgumentParser | None = None) -> int:
    """Run one command of a parser, by default that of ``scgd``, and return its exit code."""
    try:
        args = (build_parser() if parser is None else parser).parse_args(argv)
        check_words(args)
        code = int(args.run(args))
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except UsageError as error:
        return complain(error, 2)
    except CommandError as error:
        return complain(error, 1)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        if error.filename is not None or error.errno not in UNTOLD:
            raise
        with contextlib.suppress(OSError):
            sys.stdout.close()  # what is left in it would fail once more at the end
        return complain(f"the answer cannot be printed: {error.strerror}", 1)
    except KeyboardInterrupt:
        return complain("stopped; the same command goes on from here", 1)


PLACES = (
    "checkpoint", "data", "folder", "log", "model", "out", "plot", "published", "space", "status",
)  # fmt: skip
"""Options that name a file or a folder."""
LONGEST = 255
"""Bytes of a name that file systems take."""
FOLDERS = ("data", "folder", "out", "published")
"""Those that may be a folder."""


def check_words(args: argparse.Namespace) -> None:
    """Refuse names that no file can have, whatever the command would do with them."""
    for name, value in vars(args).items():
        words = [str(w) for w in (value if isinstance(value, list) else [value])]
        if "" in words and name != "time_ordered":  # which may stand without a word
            raise UsageError(f"{name} must not be empty")
        if any("\0" in word for word in words):
            raise UsageError(f"{name} must not hold a NUL character")
        parts = [part for word in words for part in word.split(os.sep)]
        if name in PLACES and max(len(os.fsencode(part)) for part in parts) > LONGEST:
            raise UsageError(f"{name} must be a name of at most {LONGEST} bytes")
        for word in words if name in PLACES and value is not None else ():
            if not (name in FOLDERS and os.path.isdir(word)):
                check_file(word, name)


def check_file(word: str, name: str) -> None:
    """Refuse pipes, which would be waited for, folders and loops of links."""
    try:
        settled(word, name)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from None


def complain(message: object, code: int) -> int:
    """Say in one line what went wrong and return the exit code."""
    print("scgd:", printable(" ".join(str(message).splitlines())), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
