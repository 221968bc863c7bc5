r"""Anderson extrapolation of sweeps that repeat one order.

Sweeps in a fixed order are, once the signs are settled, a linear map; the affine combination of the
last iterates whose steps cancel best is then far ahead of them (Bertrand and Massias, 2021). Slopes
are affine in the coefficients, so those of the combination are the combination of the slopes.
"""

from __future__ import annotations

import numpy as np

from scgd.typing import Floats

DEPTH = 5


class Extrapolation:
    """The last iterates of a working set, the intercept's offset last, and their slopes."""

    def __init__(self) -> None:
        self.points: list[Floats] = []
        self.slopes: list[Floats] = []

    def add(self, point: Floats, slopes: Floats) -> tuple[Floats, Floats] | None:
        """Remember an iterate; after enough of them return the extrapolated one and its slopes."""
        self.points.append(point.copy())
        self.slopes.append(slopes.copy())
        if len(self.points) <= DEPTH:
            return None
        steps = np.diff(np.array(self.points), axis=0)
        gram = steps @ steps.T
        gram[np.diag_indices(DEPTH)] += 1e-12 * np.trace(gram) + 1e-300
        weights = np.linalg.solve(gram, np.ones(DEPTH))
        weights /= weights.sum()
        point = np.asarray(weights @ np.array(self.points[1:]), np.float64)
        there = np.asarray(weights @ np.array(self.slopes[1:]), np.float64)
        self.points, self.slopes = [], []
        return (point, there) if np.all(np.isfinite(point)) else None
