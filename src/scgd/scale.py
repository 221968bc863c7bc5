"""A short search for the typical size of x when neither scale, bounds nor x0 tell it."""

from __future__ import annotations

from typing import Any

import numpy as np

from scgd.estimators import BASE, Probes
from scgd.problem import Problem
from scgd.typing import Floats

__all__ = ["ScaleSearch"]

SETTLE, MEASURE = 4, 4
RANGE = 1e8


class ScaleSearch:
    r"""Measure the length at which f stops being a straight line.

    Along random signs u, slope :math:`g = |f(x + hu) - f(x - hu)| / 2h` and curvature
    :math:`c = |f(x + hu) + f(x - hu) - 2 f(x)| / h^2` give the Newton length g / c, which does not
    change when f is scaled or shifted and follows when x is rescaled. Four rounds let h settle at a
    tenth of it, four measure. f(x) is taken twice per round with the same sample: if it differs,
    the noise is nobody's to control, differences of this size mean nothing, and the scale stays 1.
    """

    n_points = 4
    cost = n_points * (SETTLE + MEASURE)

    def __init__(self, n_coords: int) -> None:
        self.n_coords = n_coords
        self.h = 1e-3
        self.scale = 1.0
        self.n_asked = 0
        self.slopes: list[float] = []
        self.bends: list[float] = []

    @property
    def finished(self) -> bool:
        """Whether the scale is settled."""
        return self.n_asked == SETTLE + MEASURE

    def probe(self, theta: Floats, problem: Problem, rng: np.random.Generator) -> Probes:
        """Return f(x) twice and a pair of points along random signs."""
        moves = self.h * (rng.integers(0, 2, self.n_coords) * 2.0 - 1.0)
        entries = np.stack([theta, theta, theta + moves, theta - moves])
        if problem.lower.size:
            entries = np.clip(entries, problem.lower, problem.upper)
        everywhere = np.arange(self.n_coords)
        radius = np.array([0.0, 0.0, self.h, -self.h])
        radii = np.full(self.n_coords, self.h)
        return Probes(theta, everywhere, radii, np.full(4, BASE), entries, radius)

    def learn(self, values: Floats | None) -> None:
        """Take the values of a round; None when one was not finite."""
        self.n_asked += 1
        if values is None:
            self.h *= 1e-2
            return
        base, repeat, up, down = values.tolist()
        if base != repeat:
            self.n_asked = SETTLE + MEASURE
            self.scale = 1.0
            return
        slope = abs(up - down) / (2.0 * self.h)
        bend = abs(up + down - 2.0 * base) / self.h**2
        if self.n_asked <= SETTLE:
            self._settle(slope, bend)
        else:
            self.slopes.append(slope)
            self.bends.append(bend)
        if self.finished and sum(self.slopes) > 0 and sum(self.bends) > 0:
            self.scale = float(np.clip(sum(self.slopes) / sum(self.bends), 1 / RANGE, RANGE))

    def _settle(self, slope: float, bend: float) -> None:
        if slope == 0.0 and bend == 0.0:
            self.h *= 10.0
        elif bend == 0.0:
            self.h *= 1e2
        else:
            self.h *= float(np.clip(0.1 * slope / bend / self.h, 1e-3, 1e3))

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on."""
        return {
            "h": self.h,
            "n_asked": self.n_asked,
            "slopes": np.array(self.slopes),
            "bends": np.array(self.bends),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up another search."""
        self.h = float(state["h"])
        self.n_asked = int(state["n_asked"])
        self.slopes = state["slopes"].tolist()
        self.bends = state["bends"].tolist()
