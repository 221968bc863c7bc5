"""What a run recommends: what its search stands for, the best point seen, or x0."""

from __future__ import annotations

import numpy as np

from scgd.history import mean_and_error
from scgd.run.ledger import Ledger
from scgd.searches import Standing
from scgd.typing import Floats

__all__ = ["chosen", "plausible"]


def chosen(
    standing: Standing, ledger: Ledger, start: Floats, level: float, *, repeats: bool
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
    level
        F at x0, where a recipe asked for it; NaN where the best value needs no proof.
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
        if standing.exact or plausible(best.value, standing.values, level):
            return Standing(best.x, np.array([best.value]), exact=True)
        return origin if seen >= first else standing
    if standing.exact and seen == first:
        return origin
    unknown = np.isnan(seen) and np.array_equal(standing.x, start)
    return origin if unknown else standing


def plausible(value: float, last: Floats, first: float) -> bool:
    """Tell whether the lowest value fits what was seen at x0 and last.

    A function that repeats itself most of the time and lies now and then has a lowest value that
    means nothing: one far below all that was gained.
    """
    seen = last[np.isfinite(last)]
    if not seen.size or not np.isfinite(first):
        return True
    middle = float(np.median(seen))
    return bool(value >= min(middle, first) - 2 * abs(middle - first))
