"""From a table to the matrix of a linear model, and back from a model file to the same steps."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import numpy as np
from scipy import sparse

from scgd.errors import nearest
from scgd.linear.tables.choosing import Options, choose
from scgd.linear.tables.columns import KINDS, Column
from scgd.typing import Array, Floats

DENSE_CELLS = 1_000_000
"""Matrices of at most so many cells (8 MB) are dense; larger ones keep indicators sparse."""
NORMAL = 3.29
"""Standard deviations from the 5th to the 95th of 100 normal values."""
FARTHEST = 4.0
"""Scales from the median that robust scaling allows: of normal values one in 16,000 is beyond."""


class TablePreparation:
    r"""Columns by name, filled and scaled: real ones become :math:`(x - \bar x) / s`.

    Robust scaling takes the median and the distance of two quantiles instead, and no value counts
    as farther out than four such scales. Indicators of words stay 0 and 1. ``notes`` tells what was
    done to the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [1.0, None, 3.0], "colour": ["red", "blue", "red"]})
    >>> preparation = TablePreparation().fit(table)
    >>> preparation.labels
    ['size', 'size is missing', 'colour = red']
    >>> preparation.transform(table)[0].round(2) + 0.0
    array([[-1.22, -0.71,  1.  ],
           [ 0.  ,  1.41,  0.  ],
           [ 1.22, -0.71,  1.  ]])
    """

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.columns: list[Column] = []
        self.notes: list[str] = []
        self.center = self.scale = np.empty(0)

    @property
    def labels(self) -> list[str]:
        """Names of the columns of the matrix: real ones first."""
        return [label for column in self._ordered() for label in column.labels]

    def _ordered(self) -> list[Column]:
        return sorted(self.columns, key=lambda column: not column.dense)

    def fit(self, frame: Any) -> TablePreparation:
        """Choose what becomes of each column and measure the real ones."""
        self.notes = []
        chosen = (choose(n, frame[n], self.options, self.notes.append) for n in frame.columns)
        self.columns = [column for column in chosen if column is not None]
        if not self.columns:
            reasons = "; ".join(self.notes) or "there are none beside the target"
            raise ValueError(f"no column is left to learn from: {reasons}")
        real, _, notes = self._blocks(frame)
        self.notes += [f"{note} (--missing refuse stops instead)" for note in notes]
        self.center, spread = real.mean(axis=0), real.std(axis=0)
        if self.options.scale == "robust":
            low, self.center, high = np.quantile(real, [0.05, 0.5, 0.95], axis=0)
            spread = np.where(high > low, (high - low) / NORMAL, spread)
        self.scale = np.where(spread > 0, spread, 1.0)
        return self

    def transform(self, frame: Any) -> tuple[Any, list[str]]:
        """Return the matrix of a table with these columns, and what is to be said about it."""
        names = [str(name) for name in frame.columns]
        for column in self.columns:
            if column.name not in names:
                raise ValueError(f"no column {column.name!r}{nearest(column.name, names)}")
        real, words, notes = self._blocks(frame)
        real = (real - self.center) / self.scale
        if self.options.scale == "robust":
            real = np.clip(real, -FARTHEST, FARTHEST)
        if len(frame) * len(self.labels) <= DENSE_CELLS:
            return np.hstack([real, *(block.toarray() for block in words)]), notes
        return sparse.hstack([sparse.csc_array(real), *words], format="csc"), notes

    def _blocks(self, frame: Any) -> tuple[Floats, list[Any], list[str]]:
        """Return the real columns, the blocks of indicators, and notes on cells."""
        real, words, notes = [np.empty((len(frame), 0))], list[Any](), list[str]()
        for column in self._ordered():
            block, n_missing, n_new = column.transform(frame[column.name])
            (real if column.dense else words).append(block)
            if n_missing:
                notes.append(self._missing(column, n_missing, len(frame)))
            if n_new:
                notes.append(f"{column.name!r}: {n_new} cells hold words that training did not see")
        return np.hstack(real), words, notes

    def _missing(self, column: Column, n_missing: int, n_rows: int) -> str:
        """Return what is done about missing cells, or refuse them."""
        told = f"{column.name!r}: {n_missing} of {n_rows} cells are missing"
        if self.options.missing == "refuse":
            raise ValueError(f"{told}; fill them, drop the column, or allow --missing impute")
        way = "the median" if column.dense else "a level of their own or none"
        return f"{told}; they become {way}"

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return plain values for JSON, and arrays."""
        kinds = {cls: kind for kind, cls in KINDS.items()}
        columns = [{"kind": kinds[type(column)], **asdict(column)} for column in self.columns]
        plain = {"kind": "table", "options": asdict(self.options), "columns": columns}
        return plain, {"center": self.center, "scale": self.scale}

    @classmethod
    def restore(cls, plain: dict[str, Any], arrays: dict[str, Array]) -> TablePreparation:
        """Undo :meth:`state`; anything that does not fit is refused."""
        options = asdict(Options()) | plain["options"]
        options["categorical"] = tuple(options["categorical"])
        self = cls(made(Options, options))
        for words in plain["columns"]:
            words = dict(words)
            self.columns.append(made(KINDS[words.pop("kind")], words))
        n_real = sum(len(column.labels) for column in self.columns if column.dense)
        self.center, self.scale = arrays["center"], checked_scale(arrays["scale"])
        if not self.center.shape == self.scale.shape == (n_real,):
            raise ValueError("center and scale do not fit the columns")
        if not np.all(np.isfinite(self.center)):
            raise ValueError("the center of a column is not finite")
        return self


class MatrixPreparation:
    """A sparse matrix without names: each column is divided by its standard deviation."""

    def __init__(self, options: Options | None = None) -> None:
        self.scale = np.empty(0)
        self.notes: list[str] = []

    @property
    def labels(self) -> list[str]:
        """Numbers of the columns."""
        return [f"x{k}" for k in range(len(self.scale))]

    def fit(self, matrix: Any) -> MatrixPreparation:
        """Measure the columns."""
        means, squares = matrix.mean(axis=0), matrix.multiply(matrix).mean(axis=0)
        spread = np.sqrt(np.maximum(np.ravel(squares) - np.ravel(means) ** 2, 0.0))
        self.scale = np.where(spread > 0, spread, 1.0)
        return self

    def transform(self, matrix: Any) -> tuple[Any, list[str]]:
        """Return the scaled matrix."""
        return sparse.csc_array(matrix @ sparse.diags_array(1.0 / self.scale)), []

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return plain values for JSON, and arrays."""
        return {"kind": "matrix"}, {"scale": self.scale}

    @classmethod
    def restore(cls, plain: dict[str, Any], arrays: dict[str, Array]) -> MatrixPreparation:
        """Undo :meth:`state`."""
        self = cls()
        self.scale = checked_scale(arrays["scale"])
        return self


PREPARATIONS: dict[str, Any] = {"table": TablePreparation, "matrix": MatrixPreparation}


def made(cls: Any, words: dict[str, Any]) -> Any:
    """Return a dataclass made of plain values, each of the type it is declared with."""
    kinds: dict[str, Any] = {"str": str, "float": (int, float), "int": int, "bool": bool}
    for field in fields(cls):
        value = words[field.name]
        fits = isinstance(value, kinds.get(str(field.type), (list, tuple)))
        if isinstance(value, list | tuple):
            fits = fits and all(isinstance(part, str) for part in value)
        if isinstance(value, float):
            fits = fits and bool(np.isfinite(value))
        if not fits:
            raise ValueError(f"{field.name} of {cls.__name__} is {value!r}")
    return cls(**words)


def checked_scale(scale: Array) -> Floats:
    """Return what columns are divided by; refuse anything but positive numbers."""
    if not (scale.dtype.kind == "f" and np.all(scale > 0) and np.all(np.isfinite(scale))):
        raise ValueError("the scale of a column is not a positive number")
    return scale
