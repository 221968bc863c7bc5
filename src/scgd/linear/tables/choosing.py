"""Choose what becomes of each column of a table, and say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from scgd.linear.tables.columns import BUCKETS, Column, Dates, Hashed, Levels, Numbers
from scgd.linear.tables.values import MOST, as_numbers, as_words, date_format

HIGH = ("auto", "hash", "drop", "levels")


@dataclass(frozen=True)
class Options:
    """How columns are treated.

    Parameters
    ----------
    missing
        ``"impute"`` fills missing cells and says so, ``"refuse"`` raises.
    max_levels
        Columns of words with more different words than this are of high cardinality.
    high_cardinality
        What becomes of those: ``"hash"``, ``"drop"``, ``"levels"`` (one indicator each), or
        ``"auto"``: dropped when more than half of the words are different, else hashed.
    categorical
        Names of columns whose numbers are names.
    scale
        ``"standard"`` by mean and standard deviation, ``"robust"`` by median and quantiles, with
        values far out brought nearer.
    """

    missing: str = "impute"
    max_levels: int = 100
    high_cardinality: str = "auto"
    categorical: tuple[str, ...] = ()
    scale: str = "standard"


def choose(name: str, column: Any, options: Options, note: Callable[[str], None]) -> Column | None:
    """Return what becomes of a column, or None when it is left out; ``note`` hears the reasons."""
    if column.dtype.kind == "f" and (n_infinite := int(np.isinf(column).sum())):
        note(f"{name!r}: {n_infinite} cells are infinite and count as missing")
        column = column.where(~np.isinf(column))
    cells = column if column.dtype.kind in "biufM" else as_words(column)
    there = cells.notna()
    if not there.any():
        note(f"{name!r} is empty; it is left out")
        return None
    if cells.nunique(dropna=False) == 1:
        note(f"{name!r} is constant; it is left out")
        return None
    if name in options.categorical:
        return words_column(name, column, options, note)
    if (share := readable(column, there)) >= MOST:
        if share < 1.0:
            n_words = int((1.0 - share) * there.sum() + 0.5)
            note(f"{name!r}: {n_words} cells are no numbers and count as missing")
        return Numbers.fit(name, column)
    if form := date_format(column):
        column_of_dates = Dates.fit(name, column, form)
        written = "" if form == "ISO8601" else f", written as {form}"
        note(f"{name!r} holds dates{written}; they become {described(column_of_dates)}")
        return column_of_dates
    return words_column(name, column, options, note)


def readable(column: Any, there: Any) -> float:
    """Return the share of the cells there that are numbers."""
    if column.dtype.kind == "M":
        return 0.0
    return float(np.isfinite(as_numbers(column)).sum() / there.sum())


def described(column: Dates) -> str:
    """Return what dates become, in words."""
    cycles = " and ".join(f"the {word}" for word in column.cycles)
    return "days" + (f" and waves of {cycles}" if cycles else "")


def words_column(
    name: str, column: Any, options: Options, note: Callable[[str], None]
) -> Column | None:
    """Return what becomes of a column of words."""
    words = as_words(column).dropna()
    n_levels = words.nunique()
    if n_levels <= options.max_levels or options.high_cardinality == "levels":
        return Levels.fit(name, column)
    way = options.high_cardinality
    if way == "auto":
        way = "drop" if n_levels > len(words) / 2 else "hash"
    told = f"{name!r} holds {n_levels} different words in {len(words)} cells"
    if way == "drop":
        why = ", like an identifier" if n_levels > len(words) / 2 else ""
        note(f"{told}{why}; it is left out (--high-cardinality hash keeps it)")
        return None
    note(f"{told}; they are hashed into {BUCKETS} columns (--high-cardinality levels keeps them)")
    return Hashed.fit(name, column)
