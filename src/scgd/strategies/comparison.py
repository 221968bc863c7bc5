"""Is one point better than another? Evaluate both, with common samples where there are any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scgd.history import robust_deviation
from scgd.strategies.asks import Asking
from scgd.typing import Floats

__all__ = ["Comparison", "compare", "compared", "deviation", "standard_error"]

MOST_FAILED = 3
"""Failed evaluations of a point from which it may count as infeasible: one or two happen
anywhere."""
MEDIAN = (np.pi / 2) ** 0.5
"""The standard error of a median of normal values, in those of their mean."""
DOUBT = 3.0
"""Standard deviations by which values contradict a pooled noise level: once in a thousand times."""


@dataclass(frozen=True)
class Comparison:
    """The mean difference f(x) - f(reference) and its standard error.

    Attributes
    ----------
    mean, error
        Mean difference and its standard error; infinite where x itself mostly failed.
    against
        By how many standard errors more pairs are against x than for it (sign test); without pairs,
        its median lies higher.
    values, others
        The values of x and those of the reference.
    """

    mean: float
    error: float
    against: float
    values: Floats
    others: Floats

    def better(self, n_errors: float) -> bool:
        """Tell whether x is better by more than so many standard errors."""
        return self.mean < -n_errors * self.error

    def worse(self, n_errors: float) -> bool:
        """Tell whether x is worse by the mean, or by the pairs where the mean tells nothing.

        Heavy tails make the error of a mean as large as the mean; they do not touch signs.
        """
        by_sign = self.against > n_errors and not self.better(1)
        return self.mean > n_errors * self.error or by_sign


def compared(here: Floats, there: Floats, *, paired: bool = True) -> Comparison:
    """Return what values of two points tell; NaN is a failed evaluation and costs itself only.

    Pairs have a sample in common. Where they have not, or most are incomplete, means and medians
    are compared as those of independent values.

    Examples
    --------
    >>> compared(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 4.0])).better(2)
    True
    >>> compared(np.array([1.0, np.nan]), np.array([np.nan, 2.0])).mean
    -1.0
    """
    values, others = here[np.isfinite(here)], there[np.isfinite(there)]
    n_failed = len(here) - len(values)
    if n_failed >= MOST_FAILED and n_failed > len(values) + 2 * (len(there) - len(others)):
        return Comparison(np.inf, 0.0, np.inf, values, others)
    if not len(values) or not len(others):
        return Comparison(0.0, np.inf, 0.0, values, others)
    if paired:
        pairs = np.isfinite(here) & np.isfinite(there)
        off = here[pairs] - there[pairs]
        if 2 * len(off) >= len(here):
            error = float(np.std(off, ddof=1) / np.sqrt(len(off))) if len(off) > 1 else 0.0
            against = float(np.sign(off).sum() / np.sqrt(max(1, int(np.count_nonzero(off)))))
            return Comparison(float(off.mean()), error, against, values, others)
    medians = float(np.median(values)), float(np.median(others))
    off = np.concatenate([values - medians[0], others - medians[1]])
    spread = MEDIAN * robust_deviation(off) * np.sqrt(1 / len(values) + 1 / len(others))
    away = medians[0] - medians[1]
    against = away / spread if spread > 0 else np.inf * away if away else 0.0
    mean, error = float(values.mean() - others.mean()), standard_error(values, others)
    return Comparison(mean, error, against, values, others)


def compare(x: Floats, reference: Floats, n_samples: int) -> Asking:
    """Evaluate two points so many times, in one batch, and return a :class:`Comparison`."""
    both = np.stack([x, reference])
    values = yield np.broadcast_to(both, (n_samples, *both.shape))
    return compared(values[:, 0], values[:, 1])


def deviation(values: Floats, pooled: float = 0.0) -> float:
    """Return the standard deviation of one value, of which these are repeats.

    A pooled noise level counts for more than few values do, unless they contradict it (by the
    cube root of chi-squared, which is nearly normal: Wilson and Hilferty 1931): noise may differ
    from place to place.

    Examples
    --------
    >>> repeats = np.array([1.0, 2.0, 3.0])
    >>> deviation(repeats), deviation(repeats, 1.5), deviation(repeats, 0.01)
    (1.0, 1.5, 1.0)
    """
    free = len(values) - 1
    if free < 1:
        return pooled
    largest = float(np.abs(values).max())  # squares must not overflow
    own = largest * float(np.std(values / largest, ddof=1)) if largest > 0 else 0.0
    if not 0 < pooled < np.inf:
        return own
    spread = 2 / (9 * free)
    away = (own / pooled) ** (2 / 3) - (1 - spread)
    return own if abs(away) > DOUBT * spread**0.5 else pooled


def standard_error(first: Floats, second: Floats, pooled: float = 0.0) -> float:
    """Return that of the difference of two means, each with a noise of its own (Welch 1947).

    Without a pooled noise level that of both is one.
    """
    if not pooled:
        free = sum(max(0, len(part) - 1) for part in (first, second))
        squares = sum(deviation(part) ** 2 * max(0, len(part) - 1) for part in (first, second))
        pooled = (squares / free) ** 0.5 if free else 0.0
    parts = [(deviation(part, pooled), max(1, len(part))) for part in (first, second)]
    return float(np.sqrt(sum(own**2 / n for own, n in parts)))
