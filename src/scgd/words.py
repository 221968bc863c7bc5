"""Words that come from files and users, on their way to a terminal or a spreadsheet."""

from __future__ import annotations

import re

__all__ = ["cell", "printable"]

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
