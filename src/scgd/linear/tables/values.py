"""What the cells of a column say: numbers, dates or words, and which of them are missing."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from scgd.typing import Array, Floats

SIGNS = r"(?:[$€£¥%]|EUR|USD|GBP|CHF)"
WHOLE = r"\d{1,3}(?:[,' \u00a0]\d{3})+|\d+"
MONEY = re.compile(rf"([-+]?){SIGNS}?\s?([-+]?)({WHOLE})(\.\d+)?\s?{SIGNS}?")
"""Numbers with a currency, thousands or a per cent sign: 1,234.50, $5, 12 %."""
SWAPPED = str.maketrans(",.", ".,")
EUROPEAN = re.compile(r"\D*\d{1,3}(\.\d{3})+(,\d+)?\D*|\D*\d+,(\d{1,2}|\d{4,})\D*")
AMERICAN = re.compile(r"\D*\d{1,3}(,\d{3})+(\.\d+)?\D*|\D*\d*\.(\d{1,2}|\d{4,})\D*")
DAYS = (
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%Y/%m/%d",
    "%d-%m-%Y",
    "%d %b %Y",
    "%b %d, %Y",
    "%d.%m.%y",
)
TIMES = ("", " %H:%M", " %H:%M:%S")
FORMATS = ("ISO8601", *(day + time for day in DAYS for time in TIMES))
DATE_LIKE = re.compile(r"\D*\d{1,4}\D.*\d")
MOST = 0.9
"""The share of cells that must read as a number or date for the column to be one."""
LOOKED_AT = 200
SECONDS = 86_400.0


def as_words(column: Any) -> Any:
    """Return a column of stripped words, None where a cell is missing or blank.

    Examples
    --------
    >>> as_words(pd.Series([" red", "", None, 2.0, True])).tolist()
    ['red', None, None, '2', 'True']
    """
    try:
        codes, cells = pd.factorize(column)
    except TypeError:  # lists and the like, from Parquet
        codes, cells = pd.factorize(column.map(str, na_action="ignore"))
    words = np.array([*map(word, cells), None], object)
    return pd.Series(words[codes], column.index, object, column.name)


def word(cell: Any) -> str | None:
    """Return a cell as a word; 2 and 2.0 are the same one, since a gap in a column adds the .0."""
    whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell) if whole else cell).strip() or None


def as_numbers(column: Any) -> Floats:
    """Return a column of numbers, NaN where a cell is missing, infinite or no number.

    Examples
    --------
    >>> as_numbers(pd.Series(["1,234.5", "$7", "12 %", "-3e2", "many", None]))
    array([1234.5,    7. ,   12. , -300. ,    nan,    nan])
    >>> as_numbers(pd.Series(["1.234,56", "45,5 €", "1.000"]))
    array([1234.56,   45.5 , 1000.  ])
    """
    if column.dtype.kind in "biuf":
        values = column.to_numpy(np.float64, na_value=np.nan).copy()
    else:
        codes, words = pd.factorize(as_words(column))
        european = writes_decimal_commas(words)
        # One more for missing cells, coded -1. Not pandas' own reading: it may miss the last bit.
        values = np.array([*(as_number(w, european) for w in words), np.nan])[codes]
    values[~np.isfinite(values)] = np.nan
    return np.asarray(values)


def writes_decimal_commas(words: Any) -> bool:
    """Tell whether some words can only be read with decimal commas, and none only without."""
    # 1.000 may be one or a thousand: only words with a comma, or two dots, are sure.
    sure = [w for w in words if EUROPEAN.fullmatch(w) and ("," in w or w.count(".") > 1)]
    return bool(sure) and not any(
        AMERICAN.fullmatch(w) and not EUROPEAN.fullmatch(w) for w in words
    )


def as_number(cell: str, european: bool = False) -> float:
    """Return what a cell says as Python reads it, else as people write it."""
    if european:
        return as_money(cell.translate(SWAPPED))
    try:
        return float(cell) if "_" not in cell else np.nan
    except ValueError:
        return as_money(cell)


def as_money(cell: str) -> float:
    """Return a number written with signs around it, or a truth as 0 or 1; NaN for other words."""
    if match := MONEY.fullmatch(cell):
        sign, after, whole, fraction = match.groups("")
        return float((sign or after) + re.sub(r"\D", "", whole) + fraction)
    return {"True": 1.0, "False": 0.0}.get(cell, np.nan)


def date_format(column: Any) -> str | None:
    """Return how the dates of a column are written; None when they are no dates.

    Examples
    --------
    >>> date_format(pd.Series(["24.12.2024", "1.1.2025"]))
    '%d.%m.%Y'
    """
    if column.dtype.kind == "M":
        return "ISO8601"
    words = as_words(column).dropna()
    few = words.iloc[:LOOKED_AT]
    if not len(few) or np.mean([bool(DATE_LIKE.match(word)) for word in few]) < MOST:
        return None
    read = {form: np.isfinite(days(few, form)).mean() for form in FORMATS}
    best = max(read, key=lambda form: read[form])
    if read[best] < MOST:
        return None
    # 3/4/2024 reads either way; later cells may tell.
    rivals = [form for form in FORMATS if read[form] == read[best]]
    return max(rivals, key=lambda form: np.isfinite(days(words, form)).mean())


def days(column: Any, form: str) -> Floats:
    """Return days since 1970-01-01 (UTC), NaN where a cell is no date.

    Examples
    --------
    >>> days(pd.Series(["1970-01-02 12:00", None]), "ISO8601")
    array([1.5, nan])
    """
    cells = column if column.dtype.kind == "M" else as_words(column)
    dates = pd.to_datetime(cells, format=form, utc=True, errors="coerce")
    stamps: Array = dates.dt.tz_localize(None).to_numpy("datetime64[us]")
    seconds = stamps.astype(np.int64) / 1e6
    return np.where(np.isnat(stamps), np.nan, seconds / SECONDS)
