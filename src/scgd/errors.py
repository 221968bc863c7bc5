"""Errors that end a command with one clear line instead of a traceback."""

import difflib
from collections.abc import Iterable

__all__ = ["CommandError", "UsageError", "nearest"]


class CommandError(Exception):
    """Something failed that the user can mend: a folder, a file, a package (exit code 1)."""


class UsageError(Exception):
    """The command line asks for something that does not exist (exit code 2)."""


MOST = 50
"""Names that one line of an error lists: the longest registry of ours has fewer."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence that suggests what may have been meant.

    Examples
    --------
    >>> nearest("zo-liner", ["zo-linear", "theory"])
    "; did you mean 'zo-linear'? Known: zo-linear, theory"
    """
    known = list(known)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    guess = f"; did you mean {' or '.join(map(repr, close))}?" if close else "."
    more = f" and {len(known) - MOST} more" if len(known) > MOST else ""
    return f"{guess} Known: {', '.join(known[:MOST])}{more}"
