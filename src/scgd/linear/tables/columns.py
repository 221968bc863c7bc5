"""What becomes of a column: numbers, cycles of dates, indicators of levels, hashed buckets.

Each kind is one class whose fields are plain values, so a model file can hold it as JSON. ``dense``
kinds give a few columns of real numbers, the others a sparse block of indicators.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import sparse

from scgd.linear.tables.values import as_numbers, as_words, days
from scgd.typing import Floats, Ints

BUCKETS, MOST_BUCKETS = 256, 1 << 20
YEAR = 365.2425
CYCLES = {"year": YEAR, "week": 7.0, "day": 1.0}
MISSING = "(missing)"


@dataclass(frozen=True)
class Column:
    """A column of the table and what it becomes."""

    name: str
    dense: ClassVar[bool] = False

    @property
    def labels(self) -> list[str]:
        """Names of the columns it becomes."""
        raise NotImplementedError

    def transform(self, column: Any) -> tuple[Any, int, int]:
        """Return the block, how many cells were missing and how many were new."""
        raise NotImplementedError


@dataclass(frozen=True)
class Numbers(Column):
    """Numbers; missing ones become the median, marked by an indicator if training had some."""

    median: float
    marked: bool
    dense: ClassVar[bool] = True

    @classmethod
    def fit(cls, name: str, column: Any) -> Numbers:
        """Return the column as its values say."""
        values = as_numbers(column)
        return cls(name, float(np.nanmedian(values)), bool(np.isnan(values).any()))

    @property
    def labels(self) -> list[str]:
        """The name, and the indicator of missing values."""
        return [self.name] + [f"{self.name} is missing"] * self.marked

    def transform(self, column: Any) -> tuple[Floats, int, int]:
        """Return the numbers."""
        values = as_numbers(column)
        missing = np.isnan(values)
        filled = np.where(missing, self.median, values)
        parts = [filled, missing.astype(float)] if self.marked else [filled]
        return np.column_stack(parts), int(missing.sum()), 0


@dataclass(frozen=True)
class Dates(Column):
    """Days since the first date, and the sine and cosine of the cycles that the data cover."""

    form: str
    first: float
    median: float
    cycles: list[str]
    dense: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if unknown := set(self.cycles) - set(CYCLES):
            raise ValueError(f"dates have no cycles {sorted(unknown)}")

    @classmethod
    def fit(cls, name: str, column: Any, form: str) -> Dates:
        """Return the column as its dates say; a cycle needs two periods and times within it."""
        found = days(column, form)
        found = found[np.isfinite(found)]
        covered = [word for word, period in CYCLES.items() if np.ptp(found) >= 2 * period]
        if np.all(found % 1.0 == found[0] % 1.0):
            covered = [word for word in covered if word != "day"]
        return cls(name, form, float(found.min()), float(np.median(found)), covered)

    @property
    def labels(self) -> list[str]:
        """The days, then the cycles."""
        waves = [
            f"{self.name} ({wave} of {word})" for word in self.cycles for wave in ("sin", "cos")
        ]
        return [f"{self.name} (days)", *waves]

    def transform(self, column: Any) -> tuple[Floats, int, int]:
        """Return the numbers of the dates; missing ones become the median date."""
        found = days(column, self.form)
        missing = np.isnan(found)
        found = np.where(missing, self.median, found)
        parts = [found - self.first]
        for word in self.cycles:
            angle = 2.0 * np.pi * found / CYCLES[word]
            parts += [np.sin(angle), np.cos(angle)]
        return np.column_stack(parts), int(missing.sum()), 0


@dataclass(frozen=True)
class Levels(Column):
    """One indicator per word, or a single one for two words; missing cells are a word if known."""

    levels: list[str]

    @classmethod
    def fit(cls, name: str, column: Any) -> Levels:
        """Return the column with the words of its cells."""
        words = as_words(column)
        known = sorted(words.dropna().unique())
        return cls(name, known + [MISSING] * bool(words.isna().any()))

    @property
    def shown(self) -> list[str]:
        """The words that have an indicator."""
        return self.levels[1:] if len(self.levels) == 2 else self.levels

    @property
    def labels(self) -> list[str]:
        """One name per indicator."""
        return [f"{self.name} = {level}" for level in self.shown]

    def transform(self, column: Any) -> tuple[Any, int, int]:
        """Return the indicators; words that training did not see have none."""
        words = as_words(column)
        missing = words.isna()
        codes = pd.Index(self.levels).get_indexer(words.where(~missing, MISSING))
        new = (codes < 0) & ~missing.to_numpy()
        codes = codes.astype(np.int64) - (len(self.levels) - len(self.shown))
        return indicators(codes, len(self.shown)), int(missing.sum()), int(new.sum())


@dataclass(frozen=True)
class Hashed(Column):
    """Words by the remainder of their CRC-32, for columns with too many of them."""

    buckets: int

    def __post_init__(self) -> None:
        if not 0 < self.buckets <= MOST_BUCKETS:
            raise ValueError(f"buckets must be between 1 and {MOST_BUCKETS}, got {self.buckets}")

    @classmethod
    def fit(cls, name: str, column: Any) -> Hashed:
        """Return the column; its words need not be known."""
        return cls(name, BUCKETS)

    @property
    def labels(self) -> list[str]:
        """One name per bucket."""
        return [f"{self.name} # {bucket}" for bucket in range(self.buckets)]

    def transform(self, column: Any) -> tuple[Any, int, int]:
        """Return the indicators of the buckets; missing cells have none."""
        codes, words = pd.factorize(as_words(column))
        hashed = np.array([zlib.crc32(word.encode()) % self.buckets for word in words], np.int64)
        places = np.where(codes >= 0, np.append(hashed, 0)[codes], -1)
        return indicators(places, self.buckets), int(np.sum(codes < 0)), 0


KINDS: dict[str, type[Column]] = {
    "numbers": Numbers,
    "dates": Dates,
    "levels": Levels,
    "hashed": Hashed,
}


def indicators(codes: Ints, width: int) -> Any:
    """Return the sparse matrix with a one in each row at its code, nothing for negative codes."""
    there = codes >= 0
    ends = np.concatenate([[0], np.cumsum(there)])
    parts = np.ones(int(ends[-1])), codes[there], ends
    return sparse.csr_array(parts, shape=(len(codes), width))
