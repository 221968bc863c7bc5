"""Read a table from a CSV, Parquet or svmlight file; separators and headers are found."""

from __future__ import annotations

import csv
import gzip
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from scgd.errors import CommandError, UsageError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SPELLINGS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": r"\s+"}
SVMLIGHT = {".svm", ".svmlight", ".libsvm"}
SVMLIGHT_LINE = re.compile(r"\s*[-+.\deE,]+(\s+qid:\d+)?(\s+\d+:[-+.\deE]+)+\s*(#.*)?$")
PARQUET = {".parquet", ".pq"}
SAMPLE = 65_536
"""Characters looked at to find out how a text file is written."""
MISSING_WORDS = ["?"]
"""Written for missing values beside pandas' own (empty, NA, NaN, null ...)."""


@dataclass
class Table:
    """A file's contents: a frame of named columns, or a sparse matrix with its targets."""

    frame: Any = None
    matrix: Any = None
    targets: Any = None
    notes: list[str] = field(default_factory=list)


def separator(word: str | None) -> str | None:
    r"""Return the separator that a word of the command line stands for.

    Examples
    --------
    >>> separator("tab"), separator(";"), separator(" ")
    ('\t', ';', '\\s+')
    """
    if word is None:
        return None
    found = SPELLINGS.get(word, r"\s+" if word == " " else word)
    if found != r"\s+" and (len(found) != 1 or found in '"\n\r'):
        names = ", ".join(name for name in SPELLINGS if name.isalpha())
        raise UsageError(f"--sep must be one character or one of {names}, got {word!r}")
    return found


def read(path: Path, sep: str | None = None, n_features: int | None = None) -> Table:
    """Return the table of a file; ``n_features`` is the width of a known svmlight model."""
    if not path.exists():
        raise CommandError(f"there is no file {path}")
    if not path.is_file():
        raise CommandError(f"{path} is not a file of data")
    try:
        return parse(path, sep, n_features)
    except ImportError as error:
        raise CommandError(f"reading {path} needs pandas: pip install 'scgd[cli]'") from error
    except (ValueError, OSError, OverflowError, EOFError, csv.Error) as error:
        raise CommandError(f"cannot read {path}: {one_line(error)}") from error


def one_line(error: Exception) -> str:
    """Return what an error says, without its line breaks."""
    return " ".join(str(error).split()) or type(error).__name__


def parse(path: Path, sep: str | None, n_features: int | None) -> Table:
    """Return the table of a file that exists."""
    import pandas as pd

    if path.suffix.lower() in PARQUET:
        return named(Table(pd.read_parquet(path).reset_index(drop=True)), path)
    text, encoding = sample(path)
    if path.suffix.lower() in SVMLIGHT or (sep is None and is_svmlight(text)):
        from sklearn.datasets import load_svmlight_file

        matrix, targets = load_svmlight_file(str(path), n_features=n_features, zero_based="auto")
        if not (np.isfinite(matrix.data).all() and np.isfinite(targets).all()):
            raise ValueError("it holds values that are not finite; leave those entries out")
        return Table(matrix=matrix.tocsr(), targets=targets)
    return named(read_text(path, text, encoding, sep), path)


def sample(path: Path) -> tuple[str, str]:
    """Return the beginning of a text file and its encoding."""
    opened = gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")
    with opened as file:
        data = file.read(SAMPLE)
    if not data.strip():
        raise ValueError("it is empty")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="ignore"), "utf-16"
    if b"\0" in data:
        raise ValueError("it is not a text file")
    try:
        return data.decode("utf-8-sig"), "utf-8-sig"
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":  # the sample ends within a character
            return data[: error.start].decode("utf-8-sig"), "utf-8-sig"
        return as_windows(data)


def as_windows(data: bytes) -> tuple[str, str]:
    """Return text as Windows writes it in western languages; latin-1 reads whatever is left."""
    try:
        return data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"


def is_svmlight(text: str) -> bool:
    """Tell whether the first lines are of the form ``target index:value ...``."""
    lines = [line for line in text.splitlines() if line.strip() and line[0] != "#"][:5]
    return bool(lines) and all(SVMLIGHT_LINE.match(line) for line in lines)


def read_text(path: Path, text: str, encoding: str, sep: str | None) -> Table:
    """Return the table of a text file."""
    found = sep or find_separator(text)
    notes = []
    if sep is None and found != ",":
        notes.append(f"columns are separated by {SEPARATORS[found]}")
    records = cut(text, found)
    if len(records[0]) == 1 < len(cut(text, find_separator(text))[0]):
        raise CommandError(f"--sep does not cut the lines of {path}; leave it out to have it found")
    words: dict[str, Any] = {"sep": found}
    if found != "," and has_decimal_commas(records):
        words["decimal"] = ","
        notes.append("numbers are written with decimal commas")
    if all(is_number(word) for word in records[0]):
        words["header"] = None
        notes.append("the first line holds numbers only, so columns are named x0, x1, ...")
    try:
        frame = load(path, encoding=encoding, **words)
    except UnicodeDecodeError:  # beyond the sample
        encoding = as_windows(path.read_bytes())[1]
        frame = load(path, encoding=encoding, **words)
    if encoding in ("cp1252", "latin-1"):
        notes.append(f"{path.name} is not UTF-8; read as {encoding}")
    if "header" in words:
        frame.columns = [f"x{k}" for k in range(frame.shape[1])]
    return Table(frame, notes=notes)


def load(path: Path, **words: Any) -> Any:
    """Return the frame of a text file whose way of writing is known."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(
                path,
                index_col=False,
                skipinitialspace=True,
                na_values=MISSING_WORDS,
                low_memory=False,
                **words,
            )
        except pd.errors.ParserWarning:
            raise ValueError("some lines have more fields than the first one") from None


def cut(text: str, sep: str) -> list[list[str]]:
    """Return the fields of each line that has some."""
    lines = text.splitlines()
    rows = map(str.split, lines) if sep == r"\s+" else csv.reader(lines, delimiter=sep)
    if not (found := [row for row in rows if row]):
        raise ValueError("it is empty")
    return found


def find_separator(text: str) -> str:
    r"""Return the separator that cuts most lines into as many fields as the first one.

    Examples
    --------
    >>> find_separator('a;b\n"1,5;2";3\n')
    ';'
    """
    scores = {}
    for candidate in SEPARATORS:
        rows = cut(text, candidate)
        width = len(rows[0])
        same = sum(len(row) == width for row in rows) / len(rows)
        scores[candidate] = (same, width) if width > 1 else (0.0, 0)
    return max(scores, key=lambda candidate: scores[candidate])


def has_decimal_commas(records: list[list[str]]) -> bool:
    """Tell whether numbers are written as 1,5 and never as 1.5."""
    words = [word.strip() for row in records[1:200] for word in row]
    commas = any(re.fullmatch(r"[-+]?\d+,\d+", word) for word in words)
    return commas and not any(re.fullmatch(r"[-+]?\d+\.\d+", word) for word in words)


def is_number(word: str) -> bool:
    """Tell whether a word is a number."""
    try:
        float(word)
    except ValueError:
        return False
    return word.strip().lower() not in ("nan", "inf", "infinity")


def named(table: Table, path: Path) -> Table:
    """Return the table with names that are words, without a counter of rows; refuse empty ones."""
    frame = table.frame
    frame.columns = [str(name).strip() for name in frame.columns]
    if frame.columns.has_duplicates:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"two columns are called {twice!r}; rename one")
    if len(frame) == 0:
        raise ValueError("it has a header but no rows")
    first = frame.columns[0]
    if first.startswith("Unnamed") and frame.shape[1] > 1 and counts_rows(frame[first]):
        table.frame = frame.drop(columns=first)
        table.notes.append("the first column has no name and counts the rows; it is left out")
    return table


def counts_rows(column: Any) -> bool:
    """Tell whether a column holds whole numbers that go up by one."""
    if column.dtype.kind not in "iu":
        return False
    return bool(np.all(np.diff(column.to_numpy()) == 1))
