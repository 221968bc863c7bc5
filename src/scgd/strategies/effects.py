r"""Which inputs have an effect: a random design in mirrored pairs, sparse regression, honest tests.

Each input stands at one of a few levels, drawn at random. A pair is a point and its mirror image,
in which every input has the opposite level. Half the difference of the two values holds what is odd
in the inputs, half the sum what is even, and each is a sum of orthonormal polynomial contrasts
:math:`\varphi_d` (linear, quadratic, cubic) of single inputs and of their products.

An effect :math:`c = E[y \varphi]` is estimated by cross-fitting. With :math:`\hat g` a sparse model
fitted to other pairs and :math:`\hat\beta` its mean coefficient of this term,

.. math:: \hat c = \hat\beta + \frac1n \sum_i (y_i - \hat g(x_i)) \varphi_i .

The levels are independent of each other, so this is unbiased whatever the model is; a good one only
makes the residuals small. For an input without effect the sum is one of random signs, whatever the
distribution of the noise, and its p-value holds. (Chernozhukov et al. 2018, double machine
learning, with a design whose propensities are known.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # whose rooms load when they are used

from scgd.strategies.pursuit import EPSILON, Part, universal_threshold
from scgd.strategies.random_design import Design
from scgd.typing import Floats, Ints

PARTNERS, PRODUCTS = 16, 40_000
"""Inputs whose products with all others are looked at, at least, and products in all."""
SCANNED = 5e9
"""Multiplications that a look at all products of two inputs may take: a second or less."""


@dataclass(frozen=True)
class Effects:
    """What was estimated of each input.

    Attributes
    ----------
    contrasts
        Effects, a row per degree from 1 on; 0 where an input has none.
    errors
        Their standard errors, by degree.
    counts
        The contrasts of each input.
    p_values
        Of no effect at all, neither alone nor together with another.
    interactions
        The clearest: two ``inputs``, the ``size`` of what they do together beyond what each does
        alone, its ``error``, and a ``p_value`` adjusted for all products that were looked at.
    freedom
        Degrees of freedom of the errors.
    left, total
        Standard deviations of what the model leaves of a pair's odd and even part, and of these.
    """

    contrasts: Floats
    errors: Floats
    counts: Ints
    p_values: Floats
    interactions: tuple[dict[str, Any], ...] = ()
    freedom: float = 1.0
    left: tuple[float, ...] = (0.0,)
    total: tuple[float, ...] = (0.0,)

    @property
    def sizes(self) -> Floats:
        """Standard deviations of the values that each input makes by itself."""
        return np.asarray(np.sqrt(np.sum(self.contrasts**2, axis=0)))

    @property
    def error(self) -> float:
        """The larger standard error of a contrast: no size has a larger one, to first order."""
        return float(self.errors[: max(int(self.counts.max(initial=0)), 1)].max(initial=0.0))

    def shares(self, inputs: Ints) -> tuple[Floats, Floats] | None:
        """Return the parts that some inputs have in the effects of all of them, and errors."""
        sizes = np.zeros(self.counts.size)
        sizes[inputs] = self.sizes[inputs]
        total = float(sizes.sum())
        return (sizes / total, np.full(sizes.size, self.error / total)) if total > 0 else None


def estimate(design: Design, *, products: bool = True, exact: bool = False) -> Effects:
    """Estimate the effects of all inputs from pairs.

    Parameters
    ----------
    design
        The pairs and their values.
    products
        Whether to look at products of inputs.
    exact
        Whether values have no noise: then none is an outlier.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> design = Design(np.tile([-1.0, 1.0], (1000, 1)), np.full(1000, 2))
    >>> for _ in range(200):
    ...     levels = design.draw(rng)
    ...     x = design.point(levels)
    ...     odd = x[7] - 3 * x[40] + 0.1 * rng.standard_normal()
    ...     design.add(levels, [odd, -odd])
    >>> found = estimate(design, products=False)
    >>> np.flatnonzero(adjusted(found.p_values) < 0.1), np.round(found.contrasts[0, [7, 40]], 1)
    (array([ 7, 40]), array([ 1., -3.]))
    """
    n, p, counts = len(design.values), design.n_inputs, design.counts - 1
    contrasts = np.zeros((max(design.most - 1, 1), p))
    errors = np.full(len(contrasts), np.inf)
    if n < 4 or design.most < 2:
        return Effects(contrasts, errors, counts, np.ones(p))
    first, second = np.array(design.values).T / 2
    halves = ((1, first - second), (0, first + second))
    parts = [Part(design, values, parity, exact=exact) for parity, values in halves]
    parts = [part for part in parts if part.blocks or products]
    floor = 2 * EPSILON * float(max(np.abs(first).max(), np.abs(second).max()))

    def pursue() -> None:
        for part in parts:
            part.pursue()
            for i, (_, _, d) in enumerate(part.blocks[: part.n_alone]):
                contrasts[d - 1], errors[d - 1] = part.effects[i], max(part.error, floor)

    pursue()
    if products:
        most = min(p, max(PARTNERS, PRODUCTS // p))
        clear = np.sum((contrasts / errors[:, None]) ** 2, axis=0)
        partners = {*np.argsort(-clear, kind="stable")[:most].tolist()}
        partners |= pairs_seen(design, parts[-1].left)
        for part in parts:
            part.add_products(sorted(partners))
        pursue()
    contrasts[np.abs(contrasts) <= floor] = 0.0  # rounding
    freedom = float(min(part.freedom for part in parts))
    left = tuple(float(np.sqrt(np.mean(part.left**2))) for part in parts)
    total = tuple(float(np.std(part.values)) for part in parts)
    p_values = main_p_values(contrasts, errors, counts, freedom)
    clearest: tuple[dict[str, Any], ...] = ()
    if products:
        together, clearest = product_p_values(parts, floor, freedom, counts)
        p_values = np.minimum(1.0, 2 * np.minimum(p_values, together))
    return Effects(contrasts, errors, counts, p_values, clearest, freedom, left, total)


def pairs_seen(design: Design, last: Floats, most: int = 16) -> set[int]:
    """Return inputs that show together only: of all products of linear contrasts the clearest."""
    n, p = len(last), design.n_inputs
    unit = float(np.sqrt(last @ last))
    if n * p * p > SCANNED or not unit > 0:
        return set()
    every = slice(0, p)
    linear = design.contrast(1, design.levels(every), every).astype(np.float32)
    weighted, bar = (linear * last[:, None] / unit).astype(np.float32), universal_threshold(p * p)
    found: list[tuple[float, int, int]] = []
    for first in range(0, p, 256):
        z = np.abs(weighted[:, first : first + 256].T @ linear)
        for i, j in np.argwhere(z > bar).tolist():
            if first + i < j:
                found.append((float(z[i, j]), first + i, j))
    found.sort(reverse=True)
    return {k for _, i, j in found[:most] for k in (i, j)}


def main_p_values(contrasts: Floats, errors: Floats, counts: Ints, freedom: float) -> Floats:
    """Return p-values of inputs by themselves.

    The smaller one, doubled, of two: of a t test of the linear contrast, which most effects have,
    and of an F test of all contrasts.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.nan_to_num((contrasts / errors[:, None]) ** 2, nan=0.0)
    n = np.maximum(counts, 1)
    every = scipy.special.fdtrc(n, freedom, z.sum(axis=0) / n)
    linear = 2 * scipy.special.stdtr(freedom, -np.sqrt(z[0]))
    both = np.minimum(1.0, 2 * np.minimum(every, linear))
    return np.where(counts > 1, both, np.where(counts > 0, linear, 1.0))


def product_p_values(
    parts: Sequence[Part], floor: float, freedom: float, counts: Ints
) -> tuple[Floats, tuple[dict[str, Any], ...]]:
    """Return p-values of products with any partner, and the clearest products.

    Levels of an input without effect are independent of which partners were chosen, so its tests
    are as many as the partners times the kinds of products.
    """
    partners, n_inputs = parts[0].partners, counts.size
    best = np.zeros(n_inputs)
    rows: list[tuple[float, dict[str, Any]]] = []
    n_products = sum(len(part.blocks) - part.n_alone for part in parts)
    for part in parts:
        error = max(part.error, floor, 1e-300)
        for (_, j, _), effects in zip(part.blocks[part.n_alone :], part.effects[part.n_alone :],
                                      strict=True):  # fmt: skip
            z = np.abs(effects) / error
            best = np.maximum(best, z)
            best[j] = max(best[j], z.max())
            for k in np.flatnonzero(z > 3.0).tolist():
                tail = float(2 * scipy.special.stdtr(freedom, -z[k])) * n_products * n_inputs
                found = {"inputs": (j, k), "size": abs(float(effects[k])), "error": error,
                         "p_value": min(1.0, tail)}  # fmt: skip
                rows.append((-float(z[k]), found))
    # a partner was compared with all inputs, and any other input with all partners
    factor = np.full(n_inputs, float(n_products))
    factor[partners] = n_products / len(partners) * n_inputs
    rows.sort(key=lambda row: row[0])
    clearest = tuple(found for _, found in rows[:50] if found["p_value"] < 0.1)
    return np.minimum(1.0, 2 * factor * scipy.special.stdtr(freedom, -best)), clearest


def adjusted(p_values: Floats) -> Floats:
    """Return p-values adjusted for the false-discovery rate (Benjamini and Hochberg).

    ``scipy.stats`` has it, too, but takes half a second to load.

    Examples
    --------
    >>> adjusted(np.array([0.01, 0.5, 0.02]))
    array([0.03, 0.5 , 0.03])
    """
    n, order = len(p_values), np.argsort(-p_values)
    scaled = p_values[order] * n / np.arange(n, 0, -1)
    return np.asarray(np.minimum.accumulate(scaled)[np.argsort(order)])


def interval(effects: Effects, level: float) -> tuple[Floats, Floats]:
    """Return confidence limits of the sizes.

    What is odd and what is even in an input has an error of its own. Limits of the square of each
    are those of the noncentral chi-square distribution. Lower ones add up; distances of the upper
    ones add up as standard deviations do (MOVER, Zou and Donner 2008). Errors that are estimated
    are as much larger as Student's quantile is than the normal one.
    """
    own, alpha = effects.counts > 0, (1 - level) / 2
    if not np.isfinite(effects.error):
        return np.zeros(own.size), np.full(own.size, np.inf)
    wider = scipy.special.stdtrit(effects.freedom, alpha) / scipy.special.ndtri(alpha)
    low, middle, above = np.zeros((3, own.size))  # of squared sizes
    for first in range(min(2, len(effects.errors))):  # the odd degrees; the even ones
        error, n = effects.errors[first] * wider, (effects.counts + 1 - first) // 2
        q = squares(np.hypot.reduce(effects.contrasts[first::2], axis=0), error)
        limits = [noncentrality(q, np.maximum(n, 1), s) for s in (1 - alpha, 0.5, alpha)]
        lowest, median, highest = np.where(n > 0, limits, 0.0) * error**2
        low, middle, above = low + lowest, middle + median, np.hypot(above, highest - median)
    return np.where(own, np.sqrt(low), 0.0), np.where(own, np.sqrt(middle + above), np.inf)


def squares(sizes: Floats, error: float) -> Floats:
    """Return squared sizes in units of a squared error; 0 where both are."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num((sizes / error) ** 2, nan=0.0)


def noncentrality(q: Floats, n: Ints, share: float) -> Floats:
    """Return the noncentrality with which a chi-square stays below q with some probability.

    Far out its root is normal with standard deviation 1.
    """
    z = float(scipy.special.ndtri(share))
    far = np.maximum(np.sqrt(np.maximum(q - (n - 1), 0.0)) - z, 0.0) ** 2
    near = np.round(scipy.special.chndtrinc(np.clip(q, 1e-12, 300.0), n, share), 12)  # 1e-315: 0
    return np.asarray(np.where(q > 300, far, near))


def below_threshold(effects: Effects, threshold: float) -> Floats:
    """Return the probability of estimates as small as these, were all effects at a threshold."""
    error = effects.error
    if not np.isfinite(error):
        return np.ones(effects.counts.size)
    if threshold == error == 0.0:  # nothing changes f at all
        return np.zeros(effects.counts.size)
    q, far = squares(effects.sizes, error), float(squares(np.array(threshold), error))
    if far > 400:  # far out the root is normal with standard deviation 1
        z = np.sqrt(q) - np.sqrt(far)
        return np.asarray(scipy.special.ndtr(np.maximum(z, -40.0)))
    n = np.maximum(effects.counts, 1)
    return np.asarray(scipy.special.chndtr(np.minimum(q, 1e5), n, far))
