"""Errors that end a command with one clear line instead of a traceback."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from pathlib import Path


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
    guess = meant(name, known) or "."
    more = f" and {len(known) - MOST} more" if len(known) > MOST else ""
    return f"{guess} Known: {', '.join(known[:MOST])}{more}"


def meant(name: str, known: Iterable[str]) -> str:
    """Return a question after the nearest names; nothing where none is near.

    Examples
    --------
    >>> meant("centrl", ["central", "spsa"])
    "; did you mean 'central'?"
    """
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters beside tab and line feed, and those that turn the direction of writing."""


def printable(text: str) -> str:
    r"""Return text whose control characters are spelled out, so that no terminal obeys them.

    Examples
    --------
    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def cell(word: str) -> str:
    """Return a word as a table may hold it: a spreadsheet must not take it for a formula.

    Examples
    --------
    >>> cell("=1+1"), cell("-1.5"), cell("a")
    ("'=1+1", '-1.5', 'a')
    """
    if not word.startswith(("=", "+", "-", "@", "\t", "\r")):
        return word
    try:
        float(word)
    except ValueError:
        return f"'{word}"
    return word


def check_place(
    path: Path | None, option: str, suffixes: tuple[str, ...] = (), *others: Path | None
) -> None:
    """Refuse a file that cannot be written, or that is another file of the command."""
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        raise UsageError(f"{option} must end in {' or '.join(suffixes)}, got {path}")
    if not path.parent.is_dir():
        raise UsageError(f"{option}: there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        raise UsageError(f"{option}: {path} is not a file")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{option}: {path} cannot be written")
    if any(other is not None and other.resolve() == path.resolve() for other in others):
        raise UsageError(f"{option}: {path} is already in use by this command; choose another name")


def check_folder(path: Path, option: str) -> None:
    """Refuse a folder that cannot be made or written in."""
    for place in (path, *path.parents):
        if place.exists():
            if not place.is_dir():
                raise UsageError(f"{option}: {place} is not a folder")
            if not os.access(place, os.W_OK):
                raise UsageError(f"{option}: {place} cannot be written")
            return
