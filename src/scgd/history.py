"""What a run reports: its history, its status and the result object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from scgd.typing import Floats

Entry = tuple[float, float, float]


class Status(IntEnum):
    """Why a run ended."""

    TARGET = 0
    BUDGET = 1
    TIME = 2
    CALLBACK = 3
    INTERRUPTED = 4
    TOO_SMALL = 5
    RUNNING = 6
    FAILED = 7
    FINISHED = 8
    CONVERGED = 9
    DIVERGED = 10

    @property
    def message(self) -> str:
        """Return one sentence for people."""
        return MESSAGES[self]


MESSAGES = {
    Status.TARGET: "The mean of the last observations reached the target.",
    Status.BUDGET: "Budget exhausted: all evaluations were used.",
    Status.TIME: "The time limit was reached.",
    Status.CALLBACK: "The callback asked to stop.",
    Status.INTERRUPTED: "Interrupted; this is the result so far.",
    Status.TOO_SMALL: "The budget does not pay for a single step of this method.",
    Status.RUNNING: "The run has not ended.",
    Status.FAILED: "No evaluation gave a finite value; see what fun returns at x0.",
    Status.FINISHED: "Nothing was left to do before the budget was used.",
    Status.CONVERGED: "Converged: nothing was left to gain.",
    Status.DIVERGED: (
        "Diverged: values rose beyond all measure; give a smaller learning_rate, a relative one, "
        "or method='auto'."
    ),
}


@dataclass
class History:
    """A bounded record of the run against evaluations, thinned by halves.

    One entry per phase at first; when ``capacity`` is reached, neighbours are averaged and from
    then on each entry stands for twice as many phases. An entry has the mean observed value
    (``fun``), and of the point that would have been returned then the value (``incumbent``) and its
    standard error (``error``); NaN where these are not known. ``n_reports`` counts phases.

    Examples
    --------
    >>> history = History(capacity=2)
    >>> for i in range(3):
    ...     history.append(2 * i, float(i), 0.0, 1.0)
    >>> history.arrays()["nfev"], history.arrays()["fun"]
    (array([2, 4]), array([0.5, 2. ]))
    """

    capacity: int = 1000
    stride: int = 1
    last: int = 0
    n_reports: int = 0
    pending: list[Entry] = field(default_factory=list)
    nfev: list[int] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    def append(self, nfev: int, fun: float, incumbent: float, error: float) -> None:
        """Add what was seen in a phase that ended after ``nfev`` evaluations."""
        self.last, entry = nfev, (fun, incumbent, error)
        self.n_reports += 1
        self.pending.append(entry)
        if len(self.pending) < self.stride:
            return
        if len(self.entries) == self.capacity:
            self._halve()
            if len(self.pending) < self.stride:
                return
        self.nfev.append(nfev)
        self.entries.append(entry if self.stride == 1 else average(self.pending))
        self.pending.clear()

    def _halve(self) -> None:
        self.nfev = self.nfev[1::2]
        pairs = zip(self.entries[::2], self.entries[1::2], strict=True)
        self.entries = [average(pair) for pair in pairs]
        self.stride *= 2

    def arrays(self, sign: float = 1.0) -> dict[str, Any]:
        """Return the record as arrays, the unfinished entry included; values times ``sign``."""
        nfev, entries = list(self.nfev), list(self.entries)
        if self.pending:
            nfev.append(self.last)
            entries.append(average(self.pending))
        fun, incumbent, error = table(entries).T
        return {
            "nfev": np.array(nfev, np.int64), "fun": sign * fun, "incumbent": sign * incumbent,
            "error": error.copy(),
        }  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        return {
            "stride": self.stride,
            "last": self.last,
            "pending": table(self.pending),
            "nfev": np.array(self.nfev, np.int64),
            "entries": table(self.entries),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up the record of another run."""
        self.stride = int(state["stride"])
        self.last = int(state["last"])
        self.pending = [tuple(row) for row in state["pending"].tolist()]
        self.nfev = state["nfev"].tolist()
        self.entries = [tuple(row) for row in state["entries"].tolist()]
        if len(self.nfev) != len(self.entries) or len(self.entries) > self.capacity:
            raise ValueError("the history has another length")
        if not 1 <= self.stride <= 2**40 or len(self.pending) >= self.stride:
            raise ValueError(f"the history's stride is {self.stride}")


def robust_deviation(away: Any) -> float:
    """Return the standard deviation that the median size of deviations stands for.

    Of normal values half lie within 0.6745 standard deviations; outliers do not count.

    Examples
    --------
    >>> robust_deviation([-0.6745, 0.6745, 100.0]).__round__(3)
    1.0
    """
    return 1.4826 * float(np.median(np.abs(away)))


def average(entries: Sequence[Entry]) -> Entry:
    """Return the mean of entries, column by column."""
    fun, incumbent, error = (sum(column) / len(entries) for column in zip(*entries, strict=True))
    return fun, incumbent, error


def table(entries: Sequence[Entry]) -> Floats:
    """Return entries as rows."""
    return np.array(entries, np.float64).reshape(-1, 3)


def with_error(value: float, error: float, digits: int = 8) -> str:
    """Return a value with its standard error, in as many digits as that leaves.

    Examples
    --------
    >>> with_error(0.0174307, 0.0523), with_error(1234.5678, 0.0), with_error(1e9, 2.3e7)
    ('0.017 +- 0.052', '1234.5678', '1e+09 +- 2.3e+07')
    """
    if not error > 0 or not np.isfinite(error):
        return f"{value:.{digits}g}"
    size = np.floor(np.log10(abs(value))) if value else -np.inf
    n = np.clip(size - np.floor(np.log10(error)) + 2, 1, digits) if np.isfinite(value) else 1
    return f"{value:.{int(n)}g} +- {error:.2g}"


def mean_and_error(observations: Floats) -> tuple[float, float]:
    """Return the mean and its standard error (NaN for fewer than two observations)."""
    seen = observations[np.isfinite(observations)]
    if seen.size == 0:
        return float("nan"), float("nan")
    unit = np.ldexp(1.0, int(np.frexp(np.abs(seen).max())[1]) - 1)  # squares must not overflow
    scaled = seen / unit
    error = scaled.std(ddof=1) / np.sqrt(seen.size) * unit if seen.size > 1 else np.nan
    return float(scaled.mean() * unit), float(error)
