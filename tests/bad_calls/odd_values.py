"""Some forty odd values, and which of them an argument of a kind may take.

A kind is a sum of words, such as ``"count+none"``; a value that is in none of its words must be
refused with an error that names the argument.
"""

import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np


class Sub(np.ndarray):
    """An array of a subclass."""


VALUES = {
    "None": lambda: None,
    "True": lambda: True,
    "0": lambda: 0,
    "1": lambda: 1,
    "-1": lambda: -1,
    "2.5": lambda: 2.5,
    "0.5": lambda: 0.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: -float("inf"),
    "1e300": lambda: 1e300,
    "1e-300": lambda: 1e-300,
    "10**30": lambda: 10**30,
    "empty text": lambda: "",
    "word": lambda: "nonsense",
    "digit": lambda: "1",
    "bytes": lambda: b"1",
    "complex": lambda: 1j,
    "object": object,
    "dict": dict,
    "set": set,
    "empty list": list,
    "list of one": lambda: [1.0],
    "list of nan": lambda: [np.nan] * 3,
    "list of three": lambda: [1.0, 2.0, 3.0],
    "nested": lambda: [[1.0, 2.0], [3.0, 4.0]],
    "ragged": lambda: [[1.0], [2.0, 3.0]],
    "words": lambda: ["a", "b", "c"],
    "scalar array": lambda: np.array(1.0),
    "empty array": lambda: np.empty(0),
    "array": lambda: np.ones(3),
    "matrix": lambda: np.ones((3, 3)),
    "np.matrix": lambda: np.asmatrix(np.ones(3)),
    "subclass": lambda: np.ones(3).view(Sub),
    "masked": lambda: np.ma.masked_array(np.ones(3), [False, True, False]),
    "complex array": lambda: np.ones(3) * 1j,
    "dates": lambda: np.array(["2020-01-01"] * 3, "M8[D]"),
    "lengths of time": lambda: np.ones(3).astype("m8[s]"),
    "objects": lambda: np.array([object()] * 3),
    "truths": lambda: np.ones(3, bool),
    "records": lambda: np.zeros(3, [("a", float)]),
    "float32": lambda: np.float32(1.0),
    "Decimal": lambda: Decimal("1"),
    "Fraction": lambda: Fraction(1, 1),
    "date": lambda: datetime.date(2020, 1, 1),
    "path": lambda: Path("nowhere/at/all.npz"),
    "range": lambda: range(3),
    "generator": lambda: (float(i) for i in range(3)),
    "class": lambda: int,
    "function": lambda: lambda *_, **__: None,
    "tensor": lambda: torch_tensor(False),
    "tensor with gradient": lambda: torch_tensor(True),
    "pandas": lambda: frame("pandas"),
    "polars": lambda: frame("polars"),
}  # fmt: skip


def torch_tensor(wanted):
    import torch

    return torch.ones(3, requires_grad=wanted)


def frame(library):
    return __import__(library).Series([1.0, 1.0, 1.0])


POSITIVE = {
    "1",
    "2.5",
    "0.5",
    "1e300",
    "1e-300",
    "10**30",
    "scalar array",
    "float32",
    "Decimal",
    "Fraction",
}
NUMBERS = POSITIVE | {"0", "-1"}
CALLABLE = {"class", "function"}
VECTOR = {
    "list of three", "array", "subclass", "tensor", "tensor with gradient", "pandas", "polars",
    "range",
}  # fmt: skip
WORDS = {
    "none": {"None"},
    "count": {"1", "10**30", "scalar array", "float32", "Decimal", "Fraction"},
    "whole": {"0", "1", "-1", "10**30", "scalar array", "float32", "Decimal", "Fraction"},
    "positive": POSITIVE,
    "fraction": POSITIVE - {"2.5", "1e300", "10**30"} | {"0"},
    "limit": POSITIVE | {"inf"},
    "natural": {"0", "1", "10**30", "scalar array", "float32", "Decimal", "Fraction"},
    "nonnegative": POSITIVE | {"0"},
    "number": NUMBERS,
    "target": NUMBERS | {"inf", "-inf"},
    "flag": {"True"},
    "callable": CALLABLE,
    "vector": VECTOR,
    "one": {"list of one"},
    "matrix": {"matrix", "nested"},
    "np.matrix": {"np.matrix"},
    "name": {"word", "empty text", "digit"},
    "path": {"path", "word", "digit"},
    "choice": set(),
    "seeds": {"0", "1", "10**30", "empty list", "empty array", "range"},
    "workers": {"1", "-1"},
    "nothing": {"empty list", "empty array"},
    "dict": {"dict"},
    "lost": {"nan", "inf", "-inf"},
    "patterns": {
        "empty list",
        "empty array",
        "dict",
        "set",
        "digit",
        "word",
        "empty text",
        "words",
    },
    "anything": set(VALUES),
}


def allowed(kind):
    return set().union(*(WORDS[word] for word in kind.split("+")))
