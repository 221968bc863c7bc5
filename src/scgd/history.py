"""What a run reports: its history, its status and the result object."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from scgd.typing import Floats

__all__ = ["History", "Status", "mean_and_error", "robust_deviation"]


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


class History:
    """A bounded record of the run: mean observed value against evaluations, thinned by halves.

    One entry per phase at first; when ``capacity`` is reached, neighbours are averaged and from
    then on each entry stands for twice as many phases.

    Examples
    --------
    >>> history = History(capacity=2)
    >>> for i in range(3):
    ...     history.append(2 * i, float(i))
    >>> history.arrays()
    {'nfev': array([2, 4]), 'fun': array([0.5, 2. ])}
    """

    def __init__(self, capacity: int = 1000) -> None:
        self.capacity = capacity
        self.stride = 1
        self.last = 0
        self.latest = float("nan")
        self.pending: list[float] = []
        self.nfev: list[int] = []
        self.fun: list[float] = []

    def append(self, nfev: int, fun: float) -> None:
        """Add the mean observation of a phase that ended after ``nfev`` evaluations."""
        self.last = nfev
        self.latest = fun
        self.pending.append(fun)
        if len(self.pending) < self.stride:
            return
        if len(self.fun) == self.capacity:
            self._halve()
            if len(self.pending) < self.stride:
                return
        self.nfev.append(nfev)
        self.fun.append(sum(self.pending) / len(self.pending))
        self.pending.clear()

    def _halve(self) -> None:
        self.nfev = self.nfev[1::2]
        self.fun = [(a + b) / 2 for a, b in zip(self.fun[::2], self.fun[1::2], strict=True)]
        self.stride *= 2

    def arrays(self) -> dict[str, Any]:
        """Return the record as arrays, the unfinished entry included."""
        nfev, fun = list(self.nfev), list(self.fun)
        if self.pending:
            nfev.append(self.last)
            fun.append(sum(self.pending) / len(self.pending))
        return {"nfev": np.array(nfev, np.int64), "fun": np.array(fun, np.float64)}

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        return {
            "stride": self.stride,
            "last": self.last,
            "latest": self.latest,
            "pending": np.array(self.pending, np.float64),
            "nfev": np.array(self.nfev, np.int64),
            "fun": np.array(self.fun, np.float64),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up the record of another run."""
        self.stride = int(state["stride"])
        self.last = int(state["last"])
        self.latest = state["latest"]
        self.pending = state["pending"].tolist()
        self.nfev = state["nfev"].tolist()
        self.fun = state["fun"].tolist()
        if len(self.nfev) != len(self.fun) or len(self.fun) > self.capacity:
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


def mean_and_error(observations: Floats) -> tuple[float, float]:
    """Return the mean and its standard error (NaN for fewer than two observations)."""
    seen = observations[np.isfinite(observations)]
    if seen.size == 0:
        return float("nan"), float("nan")
    unit = np.ldexp(1.0, int(np.frexp(np.abs(seen).max())[1]) - 1)  # squares must not overflow
    scaled = seen / unit
    error = scaled.std(ddof=1) / np.sqrt(seen.size) * unit if seen.size > 1 else np.nan
    return float(scaled.mean() * unit), float(error)
