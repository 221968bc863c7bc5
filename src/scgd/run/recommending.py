"""What a run recommends: the best point seen, what its strategy recommends, or x0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scgd.history import mean_and_error
from scgd.run.ledger import Ledger
from scgd.strategies.comparison import deviation
from scgd.typing import Floats


@dataclass(frozen=True)
class Recommendation:
    """A point, observations at it or near it, and whether they are its exact value."""

    x: Floats
    values: Floats
    exact: bool = False


def valued(values: Floats, noise: float | None) -> tuple[float, float]:
    """Return the mean and its standard error, by the pooled noise unless values contradict it."""
    mean, error = mean_and_error(values)
    seen = values[np.isfinite(values)]
    if noise is None or not len(seen):
        return mean, error
    return mean, deviation(seen, float(noise)) / float(np.sqrt(len(seen)))


def chosen(
    found: Recommendation,
    ledger: Ledger,
    start: Floats,
    *,
    deterministic: bool,
    tested: bool = True,
    reported: Floats | None = None,
) -> Recommendation:
    """Return the best point seen where f repeats itself, else what the strategy recommends.

    x0 stays where no value is lower than its own: one as low elsewhere is no reason to move. Its
    value is exact where f was ``tested`` for noise or the user's word stands for that.
    ``reported`` are the values of a run whose best point nobody has evaluated again: then a best
    value far below all of them is an outlier.
    """
    best, first = ledger.best, ledger.first
    if deterministic and reported is not None and best is not None:
        deterministic = plausible(best.value, found.values, np.append(reported, first))
    if deterministic and best is not None and np.isfinite(best.value):
        if best.value >= first:
            return Recommendation(start, np.array([first]), exact=tested)
        return Recommendation(best.x, np.array([best.value]), exact=tested)
    seen, _ = mean_and_error(found.values)
    if np.isnan(seen) and np.array_equal(found.x, start):
        return Recommendation(start, np.array([first]))
    return found


def plausible(value: float, last: Floats, reported: Floats) -> bool:
    """Tell whether a lowest value is no more than twice the whole gain below everything reported.

    A function that repeats itself most of the time and has outliers now and then has a lowest
    value that means nothing.

    Examples
    --------
    >>> reported = np.array([9.0, 8.0, 7.0])
    >>> plausible(5.5, np.array([6.0]), reported), plausible(-1e9, np.array([6.0]), reported)
    (True, False)
    """
    last, reported = last[np.isfinite(last)], reported[np.isfinite(reported)]
    if not len(last) or not len(reported):
        return True
    known = np.array([np.median(last), reported[0], np.median(reported), reported[-1]])
    return bool(value >= known.min() - 2 * np.ptp(known))
