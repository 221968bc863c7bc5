r"""Function noise: simulators solve to a tolerance, sum in single precision, round what they print.

Such a function repeats itself exactly, and yet neighbouring values differ for no reason. Finite
differences over too small a step tell nothing (Moré and Wild 2011, 2012).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from math import cbrt, comb, inf, sqrt
from typing import Any

import numpy as np

from scgd.strategies.box import Box
from scgd.typing import Floats

__all__ = ["EPS", "ROUNDED", "Precision", "measure_precision", "noise_level", "single_precision"]

EPS = 2.0**-52
ROUNDED, DOUBTFUL = 64 * EPS, 5.0
"""The rounding of a value, relative to it: sums of thousands of terms lose six bits; and a change
that noise does not explain, in its standard deviations: one in a million."""
FINEST, COARSEST = 1e-8, 0.1
"""Radii of differences, in units of the length scale: in double precision, and at most."""
WIDER = 10.0
"""How much wider central differences are than forward ones in double precision."""
SPACING = 1e-7
"""Distance of the points that tell the precision, in units of the length scale."""
N_POINTS, BENT, JUMP = 7, 10.0, 1e-3
"""How many they are, the bend that the first three may have, in changes of f, and that of all but
the first, beside the noise of all, below which f only jumps at x, as steps do at round numbers."""
AGREE = 4.0
"""The factor within which three orders of differences must tell the same noise."""
SINGLE = 3e-8
"""The precision of numbers in single precision, relative to them."""
LOOKS, NEARER, STRIDE = 2, 3.0, 100.0
"""How often it is measured, how much nearer than differences will be, and how much farther out the
next place is where f is flat."""


@dataclass(frozen=True)
class Precision:
    r"""The size of changes of f that tell nothing, and the radii of differences that it asks for.

    A difference over h errs by about :math:`\varepsilon / h`; and by :math:`h \Delta / s^2`, where
    f changes by :math:`\Delta` over the length s, or by :math:`h^2 \Delta / s^3` if it is central.
    Together that is least near :math:`h = s (\varepsilon / \Delta)^{1/2}`, or with the power 1/3.

    Parameters
    ----------
    noise
        The standard deviation of what tells nothing; 0 where it is rounding in double precision.
    change
        What f changes by over the length scale.

    Examples
    --------
    >>> precision = Precision(1e-6, change=1.0)
    >>> precision.forward, round(precision.central, 9), round(precision.level(0.0), 9)
    (0.001, 0.01, 5e-06)
    >>> Precision().forward, Precision().central, Precision().level(1.0) == 4 * EPS
    (1e-08, 1e-07, True)
    """

    noise: float = 0.0
    change: float = inf

    @property
    def forward(self) -> float:
        """The radius of forward differences, in units of the length scale."""
        return min(max(sqrt(self._share), FINEST), COARSEST)

    @property
    def central(self) -> float:
        """That of central differences."""
        return min(max(cbrt(self._share), WIDER * FINEST), COARSEST)

    @property
    def _share(self) -> float:
        return self.noise / max(self.change, self.noise) if self.noise > 0 else 0.0

    def level(self, f: float) -> float:
        """Return the change of f, near a value, up to which nothing has changed."""
        return 4 * EPS * abs(f) + DOUBTFUL * self.noise  # rounding of a difference


def noise_level(values: Floats) -> float:
    r"""Return the noise in equally spaced values, or 0 where they look smooth.

    Differences of order k of a smooth function vanish as k grows, those of noise grow as
    :math:`\sqrt{(2k)!} / k!`; three orders in a row that tell the same noise are believed
    (ECNoise, Moré and Wild 2011).

    Examples
    --------
    >>> noise_level(np.exp(1e-3 * np.arange(7.0))) < 1e-15
    True
    >>> round(noise_level(np.array([0.3, -1.0, 1.4, 0.2, -0.9, 1.0, -0.6])), 2)
    1.16
    """
    levels, signs = [], []
    unit = 2.0 ** (np.frexp(np.abs(values).max())[1] - 1)  # squares of huge values overflow
    for k in range(1, len(values)):
        differences = np.diff(values / unit, k)
        levels.append(float(np.sqrt(np.mean(differences**2) / comb(2 * k, k))))
        signs.append(differences.min() < 0 < differences.max())
    for k in range(len(levels) - 2):
        three = levels[k : k + 3]
        if signs[k] and max(three) <= AGREE * min(three):
            return three[0] * float(unit)
    return 0.0


def measure_precision(
    x: Floats, f: float, s: float, change: float, rng: np.random.Generator, box: Box
) -> Generator[Any, Any, Precision]:
    """Return the precision of f around x, where it changes by ``change`` over the length s.

    Two points tell whether f is smooth; only where it is not, more are asked, and again over the
    distance that differences will have.
    """
    direction = s * rng.standard_normal(x.size)
    direction = np.where(x + direction > box.upper, -direction, direction)
    size, looks, flat, spacing = 0.0, 0, False, SPACING
    while spacing < COARSEST and looks < LOOKS:
        values = [f]
        for i in (1, 2):
            values.append((yield box.clip(x + i * spacing * direction)))
        if values[1] == values[2] == f:
            flat, spacing = True, STRIDE * spacing
            continue
        if flat:  # nearer by, changes were rounded away
            size = max(size, abs(values[1] - f) / STRIDE)
        if not size and not is_single_precision(values) and is_smooth(values, spacing, change):
            return Precision()
        for i in range(3, N_POINTS):
            values.append((yield box.clip(x + i * spacing * direction)))
        if not np.all(np.isfinite(values)):
            return Precision()
        level, bend = noise_level(np.array(values)), np.abs(np.diff(values[1:], 2)).max()
        size = max(size, level if bend > JUMP * level else 0.0)
        if is_single_precision(values):
            size = max(size, SINGLE * max(map(abs, values)))
        if size <= ROUNDED * abs(f):
            return Precision()
        looks, radius = looks + 1, Precision(size, change).forward
        if radius <= NEARER * spacing:
            break
        spacing = radius / NEARER
    return Precision(size, change)


def is_smooth(values: list[float], spacing: float, change: float) -> bool:
    """Tell whether three values bend no more than a function that changes by so much may."""
    first, second, third = values
    bend = abs(first - 2 * second + third)
    return not bend > BENT * spacing**2 * change + ROUNDED * abs(first)


def is_single_precision(values: list[float]) -> bool:
    """Tell whether all values are numbers of single precision, and not whole ones."""
    seen = np.array(values)
    with np.errstate(over="ignore"):
        single = np.array_equal(seen.astype(np.float32), seen)
    return single and not np.array_equal(seen, np.round(seen))


def single_precision(f: float) -> float:
    """Return the noise of a value that is a number of single precision; 0 of any other."""
    return SINGLE * abs(f) if is_single_precision([f]) else 0.0
