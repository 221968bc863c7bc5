"""What a run recommends: what its search stands for, the best point seen, or x0."""

from __future__ import annotations

import numpy as np

from scgd.history import mean_and_error
from scgd.run.ledger import Ledger
from scgd.searches import Standing
from scgd.typing import Floats

__all__ = ["chosen", "plausible"]


def chosen(
    standing: Standing, ledger: Ledger, start: Floats, asked: Floats, *, repeats: bool
) -> Standing:
    """Return the best point seen where f repeats itself, else what the search stands for.

    X0 stays where no value is lower than its own: one as low elsewhere is no reason to move.

    Parameters
    ----------
    standing
        What the search stands for.
    ledger
        The best value, and the first.
    start
        X0.
    asked
        F at x0 and beside it, where a recipe asked for it; NaN where it did not.
    repeats
        Whether f repeats itself.
    """
    best, first, (seen, _) = ledger.best, ledger.first, mean_and_error(standing.values)
    origin = Standing(start, np.array([first]), exact=repeats or standing.exact)
    if repeats and best is not None and np.isfinite(best.value):
        if best.value >= first:
            return origin
        if standing.exact and best.value >= seen:
            return standing
        if standing.exact or plausible(best.value, standing.values, asked):
            return Standing(best.x, np.array([best.value]), exact=True)
        return origin if seen >= first else standing
    if standing.exact and seen == first:
        return origin
    unknown = np.isnan(seen) and np.array_equal(standing.x, start)
    return origin if unknown else standing


def plausible(value: float, last: Floats, asked: Floats) -> bool:
    """Tell whether the lowest value fits what was asked at x0 and beside it, and seen last.

    A function that repeats itself most of the time and lies now and then has a lowest value that
    means nothing: one far below all that was gained.
    """
    seen = last[np.isfinite(last)]
    if not seen.size or not np.isfinite(asked[0]):
        return True
    known = np.array([float(np.median(seen)), *asked[np.isfinite(asked)]])
    return bool(value >= known.min() - 2 * np.ptp(known))
