r"""A quadratic seen through noise: Bayesian regression whose prior sizes the data choose.

The model is :math:`f(u) = c + g^\top u + u^\top H u / 2` with independent Gaussian priors on the
slope, on a curvature common to all coordinates, on each coordinate's own and on the mixed ones. In
dual form, with :math:`G = U U^\top / D` and :math:`q_i = |u_i|^2 / D`, values have the covariance

.. math:: e_0 G + e_1 q q^\top + e_2 U^{\circ 2} (U^{\circ 2})^\top / D + e_3 G \circ G + e_c
          + e_4 \operatorname{diag}(w)

times a variance that is profiled out, so a fit costs one Cholesky factor of as many rows as there
are points, whatever the dimension. The five sizes climb the marginal likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy  # whose rooms load when they are used

from scgd.blas import one_thread
from scgd.history import robust_deviation
from scgd.typing import Floats

FIRST = (0.0, 0.0, -2.0, -1.0)
PLAIN = (0.0, 0.0, -2.0, -4.0)
"""Decimal exponents of the four sizes to start from, with mixed curvatures and without."""
ORDER = (4, 1, 3, 0, 2)
"""Noise and common curvature first: they matter most."""
LOWEST, HIGHEST = -9.0, 5.0
LEVEL = 100.0
"""The constant's variance in units of the largest other size: as good as free."""
GAIN = 0.05
"""What a step up the likelihood must bring."""
OUTLIER = 5.0
"""Leave-one-out residuals, in robust deviations, from which a value counts as an outlier."""
LOOKS = 3
"""How often outliers are looked for: without the largest, others show."""
FARTHEST = 1e4
"""Values are clipped so many robust deviations from their median."""
CLIMBED = 120
"""Points whose likelihood the sizes climb: five numbers need no more, and each step costs the cube
of it. The quadratic itself is fitted to all."""


class Evaluations:
    """The last points that were evaluated, and their values.

    Parameters
    ----------
    n_coords
        The dimension.
    size
        How many are kept; 0 for none.
    """

    def __init__(self, n_coords: int, size: int = 1000) -> None:
        self.points, self.values = np.zeros((size, n_coords)), np.full(size, np.nan)
        self.size, self.count = size, 0

    def __len__(self) -> int:
        """Return how many points there are."""
        return min(self.count, self.size)

    def add(self, points: Floats, values: Floats) -> None:
        """Add points; a failed evaluation is left out."""
        if not self.size:
            return
        for x, value in zip(points, values.tolist(), strict=True):
            if abs(value) < np.inf:
                place = self.count % self.size
                self.points[place], self.values[place] = x, value
                self.count += 1

    def near(self, x: Floats, unit: Floats, most: int, within: float) -> tuple[Floats, Floats]:
        """Return the nearest points, seen from x in a unit, and their values.

        ``within`` bounds the root mean square of a point's coordinates.
        """
        n = len(self)
        away = (self.points[:n] - x) / unit
        distance = np.sqrt(np.mean(away**2, axis=1))
        nearest = np.argsort(distance, kind="stable")[:most]
        nearest = nearest[(distance[nearest] < within)]
        return away[nearest], self.values[nearest]


@dataclass(frozen=True)
class Quadratic:
    r"""A fitted quadratic, in the units of the points it was fitted to.

    Attributes
    ----------
    level, slope, bend
        Its value, gradient and Hessian at the origin.
    sizes
        The five decimal exponents, from which a later fit may start.
    effects, errors
        What f changes along each coordinate, :math:`\sqrt{g_k^2 + H_{kk}^2 / 2}` (the standard
        deviation of the quadratic over normal moves of length 1), and a bound of its standard
        error. They are those of a fit that expects each coordinate to bend as much by itself as all
        do in common: a curvature that only their sum shows tells nothing of any one of them, and
        its error then is as large as itself.
    """

    level: float
    slope: Floats
    bend: Floats
    sizes: Floats
    effects: Floats = field(default_factory=lambda: np.empty(0))
    errors: Floats = field(default_factory=lambda: np.empty(0))

    def minimiser(self, radius: float) -> Floats:
        """Return about where it is lowest within so far of the origin (Levenberg's damping)."""
        bends, axes = np.linalg.eigh(self.bend)
        slopes = axes.T @ self.slope
        size = max(float(np.abs(bends).max()), float(np.linalg.norm(slopes)) / radius, 1e-290)
        dampings = max(0.0, -bends[0]) + size * np.append(0.0, np.geomspace(1e-10, 10.0, 300))
        steps = -slopes / np.maximum(bends + dampings[:, None], 1e-12 * size)
        inside = np.linalg.norm(steps, axis=1) <= radius
        return np.asarray(axes @ steps[np.argmax(inside)])


class Regression:
    """Points, values, and the likelihood of sizes.

    Parameters
    ----------
    points
        One per row, in units in which they are about 1.
    values
        What was seen there, in any unit.
    """

    def __init__(self, points: Floats, values: Floats) -> None:
        self.points, n = points, points.shape[1]
        self.middle = float(np.median(values))
        spread = robust_deviation(values - self.middle)
        self.spread = max(spread, 1e-14 * abs(self.middle), 1e-290)
        self.y = np.clip((values - self.middle) / self.spread, -FARTHEST, FARTHEST)
        self.squares = points * points
        self.length = self.squares.sum(1) / n
        parts = np.empty((4, len(values), len(values)))
        np.matmul(points, points.T, out=parts[0])
        np.multiply(self.length[:, None], self.length, out=parts[1])
        np.matmul(self.squares, self.squares.T, out=parts[2])
        parts[0] /= n
        parts[2] /= n
        np.multiply(parts[0], parts[0], out=parts[3])
        self.parts = parts.reshape(4, -1)
        self.noise = np.ones(len(values))  # w: outliers are given more
        self.solved: tuple[float, Floats, Any] | None = None  # when outliers were last looked for

    def likelihood(self, sizes: Floats) -> tuple[float, Floats, Any]:
        """Return the log marginal likelihood, the dual weights and the Cholesky factor."""
        e = 10.0**sizes
        n = len(self.y)
        matrix = (e[:4] @ self.parts).reshape(n, n) + level_of(e)
        matrix.flat[:: n + 1] += e[4] * self.noise
        nothing = -np.inf, np.zeros(n), None
        # LAPACK itself: around matrices this small, checks cost as much as the factor
        factor, failed = scipy.linalg.lapack.dpotrf(matrix.T, lower=1, overwrite_a=1)
        if failed:
            return nothing
        alpha = scipy.linalg.lapack.dpotrs(factor, self.y, lower=1)[0]
        variance = float(self.y @ alpha) / n
        if not variance > 0:
            return nothing
        log_det = 2 * float(np.log(factor.diagonal()).sum())
        return -0.5 * (n * np.log(variance) + log_det), alpha, factor

    def climb(self, sizes: Floats, steps: tuple[float, ...]) -> tuple[float, Floats]:
        """Move one size at a time while the likelihood grows, by steps that get smaller."""
        best = self.likelihood(sizes)[0]
        for step in steps:
            for i in ORDER:
                for move in (step, -step):
                    before = best
                    while True:
                        other = sizes.copy()
                        other[i] += move
                        if not LOWEST <= other[i] <= HIGHEST:
                            break
                        value = self.likelihood(other)[0]
                        if not value > best + GAIN:
                            break
                        best, sizes = value, other
                    if best > before:
                        break
        return best, sizes

    def find_outliers(self, sizes: Floats) -> bool:
        """Give values that the others do not expect more noise; tell whether there are new ones."""
        self.solved = _, alpha, factor = self.likelihood(sizes)
        if factor is None:
            return False
        inverse = scipy.linalg.lapack.dtrtri(factor, lower=1)[0]
        left_out = alpha / np.einsum("ij,ij->j", inverse, inverse)
        usual = robust_deviation(left_out)
        out = np.abs(left_out) > OUTLIER * usual
        known = self.noise > 1.0
        if usual <= 0 or out.mean() >= 0.4 or np.array_equal(out, known):
            return False
        self.noise, self.solved = np.where(out, (left_out / usual) ** 2, 1.0), None
        return True

    def quadratic(self, sizes: Floats) -> Quadratic:
        """Return the posterior mean under given sizes, in units of the values."""
        _, alpha, _ = self.solved or self.likelihood(sizes)
        e, n = 10.0**sizes, self.points.shape[1]
        slope, own = self.along(e, alpha)
        bend = 2 * e[3] / n**2 * (self.points.T * alpha) @ self.points
        bend = (bend + bend.T) / 2
        np.fill_diagonal(bend, own)
        level = self.middle + self.spread * level_of(e) * float(alpha.sum())
        return Quadratic(
            level, self.spread * slope, self.spread * bend, sizes, *self.effects(sizes)
        )

    def along(self, e: Floats, alpha: Floats) -> tuple[Floats, Floats]:
        """Return slopes and curvatures along the coordinates."""
        n = self.points.shape[1]
        slope = e[0] * (self.points.T @ alpha) / n
        own = (e[2] / n + e[3] / n**2) * (self.squares.T @ alpha)
        return slope, 2 * (own + e[1] / n * float(self.length @ alpha))

    def effects(self, sizes: Floats) -> tuple[Floats, Floats]:
        """Return effects and bounds of their errors, in units of the values."""
        wide = sizes.copy()
        wide[2] = max(wide[2], wide[1] - np.log10(self.points.shape[1]))
        (_, alpha, factor), e = self.likelihood(wide), 10.0**wide
        slope, own = self.along(e, alpha)
        return (
            self.spread * np.sqrt(slope**2 + own**2 / 2),
            self.spread * self.errors(e, alpha, factor),
        )

    def errors(self, e: Floats, alpha: Floats, factor: Any) -> Floats:
        """Return a bound of the effects' posterior standard deviations.

        An effect is the length of the vector of a slope and a bend over the root of 2, so its
        deviation is at most the larger one of theirs.
        """
        n = self.points.shape[1]
        if factor is None:
            return np.full(n, np.inf)
        slopes, bends = e[0] / n * self.points, (e[2] / n + e[3] / n**2) * self.squares
        bends = 2 * (bends + e[1] / n * self.length[:, None])  # covariances with the values
        before = e[0] / n, 4 * (e[1] / n**2 + e[2] / n + e[3] / n**2)

        def after(prior: float, part: Floats) -> Floats:
            solved = scipy.linalg.lapack.dpotrs(factor, part, lower=1)[0]
            told = np.einsum("ij,ij->j", part, solved)
            return np.asarray(np.maximum(prior - told, 0.0))

        slope, bend = after(before[0], slopes), after(before[1], bends)
        variance = float(self.y @ alpha) / len(self.y)
        return np.sqrt(variance * np.maximum(slope, bend / 2))


def level_of(e: Floats) -> float:
    """Return the constant's variance."""
    return LEVEL * max(1.0, float(e[:4].max()))


@one_thread()
def fit(points: Floats, values: Floats, noise: float, sizes: Floats | None = None) -> Quadratic:
    """Fit a quadratic whose sizes have the largest likelihood that a climb finds.

    Parameters
    ----------
    points, values
        As for :class:`Regression`.
    noise
        About the standard deviation of the values; 0 where nothing is known.
    sizes
        Those of an earlier fit nearby, to start from.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> points = rng.standard_normal((80, 3))
    >>> values = np.sum((points - 0.5) ** 2, axis=1) + 0.01 * rng.standard_normal(80)
    >>> np.round(fit(points, values, 0.01).minimiser(2.0), 1)
    array([0.5, 0.5, 0.5])
    """
    data = Regression(points, values)
    every = -(-len(values) // CLIMBED)
    some = data if every == 1 else Regression(points[::every], values[::every])
    last = 2 * np.log10(noise / some.spread) if noise > 0 else -1.0
    last = float(np.clip(last, -8, 2))
    if sizes is not None:
        chosen = some.climb(sizes, (1.0, 0.5))[1]
    else:
        climbs = [some.climb(np.array([*start, last]), (2.0, 1.0, 0.5)) for start in (FIRST, PLAIN)]
        chosen = max(climbs, key=lambda climb: climb[0])[1]
    for _ in range(LOOKS):
        if not data.find_outliers(chosen):
            break
        some.noise = data.noise[::every]
        chosen = some.climb(chosen, (1.0,))[1]
    return data.quadratic(chosen)
